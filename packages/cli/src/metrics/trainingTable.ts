/** Metrics from the output of jobs in short: those of one job, or one metric of several. Pure. */
import type { TrainingMetricName, TrainingSummary } from '@muster/common/training';
import { type Column, formatTable, type TextOptions } from '../output/table.ts';
import { bytesText } from '../output/times.ts';
import { absent, valueText } from '../output/units.ts';

/** A line per metric. */
export function formatTraining(metrics: readonly TrainingSummary[], options: TextOptions): string {
  const columns: readonly Column<TrainingSummary>[] = [
    { header: 'METRIC', cell: ({ name }) => name },
    ...valueColumns((summary: TrainingSummary) => summary),
  ];
  return formatTable(metrics, columns, options);
}

export interface ComparedJob {
  /** In front of the name, two columns wide: how its curve is drawn; empty: there is none. */
  readonly key: string;
  readonly id: string;
  readonly name: string;
  readonly state: string;
  /** null: its output tells nothing of the metric. */
  readonly summary: TrainingSummary | null;
}

/** A line per job. */
export function formatComparison(jobs: readonly ComparedJob[], options: TextOptions): string {
  const columns: readonly Column<ComparedJob>[] = [
    { header: 'NAME', cell: ({ name }) => name, narrow: { cutTo: 10 } },
    { header: 'JOB', cell: ({ id }) => id },
    { header: 'STATE', cell: ({ state }) => state, narrow: 'drop' },
    ...valueColumns(({ summary }: ComparedJob) => summary),
  ];
  const table = formatTable(jobs, columns, options);
  if (jobs.every(({ key }) => key === '')) return table;
  // Beside the table, because a table paints whole columns only.
  const [header = '', ...lines] = table.split('\n');
  const keyed = lines.map((line, index) => (line === '' ? '' : `${jobs[index]?.key || '  '} ${line}`));
  return [`   ${header}`, ...keyed].join('\n');
}

function valueColumns<Row>(summaryOf: (row: Row) => TrainingSummary | null): readonly Column<Row>[] {
  const cell = (text: (summary: TrainingSummary) => string) => (row: Row) => {
    const summary = summaryOf(row);
    return summary === null ? absent : text(summary);
  };
  return [
    { header: 'LAST', cell: cell(lastText), align: 'right' },
    { header: 'BEST', cell: cell(({ best, unit }) => valueText(best, unit)), align: 'right' },
    { header: 'AT STEP', cell: cell(({ bestStep }) => stepText(bestStep)), align: 'right' },
    {
      header: 'STEPS',
      cell: cell(({ firstStep, lastStep }) => stepsText(firstStep, lastStep)),
      align: 'right',
    },
    { header: 'ROWS', cell: cell(({ rows }) => String(rows)), align: 'right', narrow: 'drop' },
  ];
}

function lastText({ last, notFinite, unit }: TrainingSummary): string {
  return last === null && notFinite > 0 ? 'NaN' : valueText(last, unit);
}

function stepText(step: number | null): string {
  return step === null ? absent : String(step);
}

function stepsText(first: number | null, last: number | null): string {
  if (first === null || last === null) return stepText(last);
  return first === last ? String(last) : `${first} to ${last}`;
}

/** What is known of the rows of a job beside its metrics. */
export interface RowsKept {
  readonly thinned: boolean;
  /** Output that was never read for metrics. */
  readonly unreadBytes: number;
}

/** What somebody who looks at the numbers has to know beside them; empty: nothing. */
export function trainingNotes(
  job: string,
  metrics: readonly TrainingSummary[],
  { thinned, unreadBytes }: RowsKept,
): readonly string[] {
  const notes: string[] = [];
  for (const { name, notFinite, notFiniteStep } of metrics) {
    if (notFinite === 0) continue;
    const from = notFiniteStep === null ? '' : `, first at step ${notFiniteStep}`;
    notes.push(
      `${job}: ${nameOfValue(name)} is not a finite number in ${notFinite} row${notFinite === 1 ? '' : 's'}${from}.`,
    );
  }
  const omitted = metrics.filter((each) => each.omitted > 0);
  const merged = metrics.filter(({ mergedPoints }) => mergedPoints > 0);
  if (omitted.length > 0) {
    const counts = omitted.map((each) => `${each.omitted} of ${each.omitted + each.rows} (${each.name})`);
    notes.push(
      `${job}: rows that came too fast to be sent, or were thinned to fit the coordinator's --metrics-budget, are not kept: ` +
        `${counts.join(', ')}. First, last, least and greatest values and the first NaN are exact.`,
    );
  }
  if (merged.length > 0) {
    const counts = merged.map(({ name, mergedPoints }) => `${mergedPoints} (${name})`);
    notes.push(`${job}: some points stand for several rows: ${counts.join(', ')}.`);
  }
  if (thinned && omitted.length === 0 && merged.length === 0)
    notes.push(`${job}: rows were thinned to fit the coordinator's --metrics-budget.`);
  if (unreadBytes > 0)
    notes.push(
      `${job}: ${bytesText(unreadBytes)} of its output were written faster than an agent reads, and never read for metrics.`,
    );
  return notes;
}

function nameOfValue(name: TrainingMetricName): string {
  return name === 'train_loss' ? 'the loss' : name;
}
