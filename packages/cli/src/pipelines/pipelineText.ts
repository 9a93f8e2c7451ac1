/** Runs of pipelines as text for people. */
import type {
  LineageStepView,
  LineageView,
  PipelineRunView,
  PipelineStepView,
} from '@muster/common/pipelines';
import type { Style } from '../output/colours.ts';
import { type Column, formatTable, type View } from '../output/table.ts';
import { agoText, durationText } from '../output/times.ts';

const runStyles: Readonly<Record<PipelineRunView['state'], Style | null>> = {
  running: 'bold',
  stopping: 'yellow',
  succeeded: null,
  failed: 'red',
  stopped: null,
};

const stepStyles: Readonly<Record<PipelineStepView['state'], Style | null>> = {
  waiting: null,
  running: 'bold',
  succeeded: null,
  cached: null,
  failed: 'red',
  skipped: null,
  blocked: 'yellow',
  stopped: 'yellow',
};

export function pipelineTable(runs: readonly PipelineRunView[], view: View): string {
  const columns: readonly Column<PipelineRunView>[] = [
    { header: 'ID', cell: ({ id }) => id },
    { header: 'NAME', cell: ({ name }) => name, narrow: { cutTo: 10 } },
    { header: 'STATE', cell: ({ state }) => state, style: ({ state }) => runStyles[state] },
    { header: 'USER', cell: ({ user }) => user, narrow: 'drop' },
    { header: 'AGE', cell: ({ createdAtMs }) => agoText(createdAtMs, view.nowMs) },
    { header: 'REASON', cell: ({ reason }) => reason ?? '-', narrow: 'drop' },
  ];
  return formatTable(runs, columns, view);
}

/** @param waits why jobs of steps are in the queue, by job */
export function pipelineDetail(
  run: PipelineRunView,
  view: View,
  waits: ReadonlyMap<string, string> = new Map(),
): string {
  const { id, name, state, reason, user, project, params, rerunOf, trigger, createdAtMs, endedAtMs, steps } =
    run;
  const values = Object.entries(params).map(
    ([key, value]) => `${key}=${Array.isArray(value) ? value.join(',') : String(value)}`,
  );
  const lines = [
    ['Run', `${id} (${name})`],
    ['State', reason === null ? state : `${state}: ${reason}`],
    ...(values.length === 0 ? [] : [['Params', values.join(' ')]]),
    ['User', `${user}, project ${project}`],
    ['Started', agoText(createdAtMs, view.nowMs)],
    ...(endedAtMs === null ? [] : [['Took', durationText(endedAtMs - createdAtMs)]]),
    ...(rerunOf === null ? [] : [['Repeats', rerunOf]]),
    ...(trigger === null ? [] : [['Trigger', trigger]]),
  ].map(([label = '', value = '']) => `${`${label}:`.padEnd(10)}${value}\n`);
  const next =
    state === 'failed'
      ? `\nNext: ${view.programName} pipeline rerun ${id}    repeat what has not succeeded\n`
      : '';
  return `${lines.join('')}\n${stepTable(steps, view, waits)}${next}`;
}

function stepTable(
  steps: readonly PipelineStepView[],
  view: View,
  waits: ReadonlyMap<string, string>,
): string {
  const columns: readonly Column<PipelineStepView>[] = [
    { header: 'STEP', cell: stepText },
    { header: 'STATE', cell: ({ state }) => state, style: ({ state }) => stepStyles[state] },
    {
      header: 'TRIES',
      cell: ({ tries }) => (tries === 0 ? '-' : String(tries)),
      align: 'right',
      narrow: 'drop',
    },
    { header: 'TOOK', cell: tookText, align: 'right' },
    { header: 'JOB', cell: ({ jobId, sweepId, cachedFrom }) => jobId ?? sweepId ?? cachedFrom ?? '-' },
    {
      header: 'REASON',
      cell: ({ reason, jobId }) => reason ?? waits.get(jobId ?? '') ?? '-',
      narrow: 'drop',
    },
  ];
  return formatTable(steps, columns, view);
}

function stepText({ step, item, group }: PipelineStepView): string {
  const named = item === null ? step : `${step}[${item}]`;
  return group === 'steps' ? named : `${named} (${group})`;
}

function tookText({ startedAtMs, endedAtMs, tries }: PipelineStepView): string {
  if (tries === 0 || startedAtMs === null || endedAtMs === null) return '-';
  return durationText(endedAtMs - startedAtMs);
}

export function lineageText({ subject, kind, madeBy, usedBy }: LineageView, view: View): string {
  const [maker] = madeBy.toReversed();
  const facts =
    kind === 'run' || maker === undefined
      ? []
      : [
          [
            'Params',
            Object.entries(maker.params)
              .map(([key, value]) => `${key}=${String(value)}`)
              .join(' ') || '-',
          ],
          ['Code', maker.code ?? '-'],
        ];
  const lines = [[kind === 'run' ? 'Run' : kind === 'job' ? 'Job' : 'Artifact', subject], ...facts];
  const head = lines.map(([label = '', value = '']) => `${`${label}:`.padEnd(10)}${value}\n`).join('');
  const used = usedBy.length === 0 ? '\nNo step has used it.\n' : `\nUsed by:\n${lineageTable(usedBy, view)}`;
  return `${head}\nMade by:\n${lineageTable(madeBy, view)}${used}`;
}

function lineageTable(steps: readonly LineageStepView[], view: View): string {
  const columns: readonly Column<LineageStepView>[] = [
    { header: 'RUN', cell: ({ run }) => run },
    { header: 'STEP', cell: ({ step, item }) => (item === null ? step : `${step}[${item}]`) },
    { header: 'STATE', cell: ({ state }) => state, style: ({ state }) => stepStyles[state] },
    { header: 'JOB', cell: ({ jobId }) => jobId ?? '-' },
    { header: 'NODES', cell: ({ nodes }) => nodes.join(',') || '-', narrow: 'drop' },
    { header: 'INPUTS', cell: ({ inputs }) => artifactsText(inputs), narrow: 'drop' },
    { header: 'OUTPUTS', cell: ({ outputs }) => artifactsText(outputs), narrow: 'drop' },
  ];
  return formatTable(steps, columns, view);
}

/** Twelve digits tell digests apart. */
function artifactsText(artifacts: LineageStepView['inputs']): string {
  return (
    artifacts.map(({ name, digest }) => `${name}@${digest.replace('sha256:', '').slice(0, 12)}`).join(' ') ||
    '-'
  );
}
