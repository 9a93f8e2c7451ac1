/** A whole array for a person: `muster job` and `muster explain` of one. Pure. */
import { causeOfMany, evidenceShownMax, shortened } from '@muster/common/causeText';
import { stateStyles } from '../jobs/summary.ts';
import { ledgerText } from '../jobs/trainingText.ts';
import { type Column, formatFields, formatTable, type View } from '../output/table.ts';
import { count, fitText, printable, rangesText, wrapText } from '../output/text.ts';
import { agoText, clockText, durationText } from '../output/times.ts';
import { type ArraySummary, countsText, type LongRun } from './arraySummary.ts';

/** More groups say nothing more to a person; `-o json` has all. */
const groupsShown = 5;
/** Of a list of indexes where there is no terminal. */
const indexesWidth = 72;

/** What `muster job` shows. */
export function formatArraySummary(summary: ArraySummary, options: View): string {
  const { colours, width, nowMs } = options;
  const { submittedAtMs, ledger, longest, marks } = summary;
  const fields = formatFields(
    [
      ['State', countsText(summary.counts)],
      ['Not listed', notListedText(summary)],
      [
        'Submitted',
        submittedAtMs === null ? null : `${clockText(submittedAtMs)} (${agoText(submittedAtMs, nowMs)})`,
      ],
      ['Signs', marks.map(({ mark, indexes }) => `${mark}: ${indexText(indexes, width)}`).join('\n')],
      ['GPU time', ledgerText(ledger)],
    ],
    colours,
    width,
  );
  const runs =
    longest.length < 2 ? '' : `${colours.dim('Longest runs')}\n${formatTable(longest, runColumns, options)}`;
  return blocks([
    headingOf(summary, options) + fields,
    ...groupBlocks(summary, options),
    runs,
    nextBlock(summary, options),
  ]);
}

/** What `muster explain` shows: advice first. */
export function formatArrayExplained(summary: ArraySummary, options: View): string {
  const { width } = options;
  const head = `${headingOf(summary, options)}${wrapText(printable(sentenceOf(summary)), width)}\n`;
  return blocks([head, nextBlock(summary, options), ...groupBlocks(summary, options)]);
}

/** `2 of 10 jobs did not succeed; most common cause: CUDA OOM (1 job). 3 jobs wait: no GPUs are free.` */
export function sentenceOf({ array, counts, causes, waits }: ArraySummary): string {
  const { succeeded, failed, cancelled, queued } = counts;
  const bad = failed + cancelled;
  const [cause] = causes;
  const label = causes.length === 1 ? 'cause' : 'most common cause';
  const why = cause === undefined ? '' : `; ${label}: ${causeOfMany(cause)} (${count(cause.count, 'job')})`;
  const [wait] = waits;
  const parts = [
    bad === 0 ? null : `${bad} of ${count(array.size, 'job')} did not succeed${why}`,
    queued === 0 || wait === undefined ? null : `${count(queued, 'job waits', 'jobs wait')}: ${wait.message}`,
    succeeded === array.size ? `all ${count(array.size, 'job')} succeeded` : null,
  ].filter((part) => part !== null);
  return parts.length === 0 ? `${countsText(counts)}.` : `${parts.join('. ')}.`;
}

/** A large array is stored some jobs at a time, and ended jobs are removed in the end. */
function notListedText({ array: { size }, counts }: ArraySummary): string | null {
  const others = size - Object.values(counts).reduce((sum, jobs) => sum + jobs, 0);
  return others <= 0 ? null : `${count(others, 'job')}: not stored yet, or removed by retention`;
}

function headingOf({ array: { id, name, size } }: ArraySummary, { colours }: View): string {
  return `${colours.bold(printable(name))}  ${id}  array of ${count(size, 'job')}\n`;
}

function groupBlocks({ causes, waits }: ArraySummary, options: View): readonly string[] {
  return [groupBlock('Causes', causes, options), groupBlock('Waiting', waits, options)];
}

interface Group {
  readonly kind: string;
  readonly message: string;
  readonly indexes: readonly number[];
}

function groupBlock(title: string, groups: readonly Group[], { colours, width }: View): string {
  if (groups.length === 0) return '';
  const lines = groups
    .slice(0, groupsShown)
    .flatMap(({ kind, message, indexes }) => [
      wrapText(
        `  ${count(indexes.length, 'job')}: ${printable(shortened(message, evidenceShownMax))} (${kind})`,
        width,
        2,
      ),
      `    ${indexText(indexes, width)}`,
    ]);
  const more = groups.length - groupsShown;
  if (more > 0) lines.push(`  … and ${more} more; -o json lists them`);
  return `${colours.dim(title)}\n${lines.map((line) => `${line}\n`).join('')}`;
}

/** `index 3`, `indexes 0-3,7`. */
function indexText(indexes: readonly number[], width: number | null): string {
  const text = `${indexes.length === 1 ? 'index' : 'indexes'} ${rangesText(indexes)}`;
  return fitText(text, Math.max(20, (width ?? indexesWidth + 4) - 4));
}

const runColumns: readonly Column<LongRun>[] = [
  { header: 'NAME', cell: ({ name }) => name, narrow: { cutTo: 14 } },
  { header: 'JOB', cell: ({ jobId }) => jobId },
  { header: 'STATE', cell: ({ state }) => state, style: ({ state }) => stateStyles[state] },
  { header: 'RAN', cell: ({ ranMs }) => durationText(ranMs), align: 'right' },
];

function nextBlock({ nextSteps }: ArraySummary, { colours, width }: View): string {
  if (nextSteps.length === 0) return '';
  const lines = nextSteps.map((step) => `${wrapText(`  ${printable(step)}`, width, 2)}\n`);
  return `${colours.dim('Next')}\n${lines.join('')}`;
}

function blocks(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('\n');
}
