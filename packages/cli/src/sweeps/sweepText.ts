/** Sweeps and their trials as text for people, and as CSV. */
import type { SweepUseView, SweepView, TrialView } from '@muster/common/sweeps';
import type { Style } from '../output/colours.ts';
import { type Column, formatTable, type View } from '../output/table.ts';
import { agoText, durationText } from '../output/times.ts';

const sweepStyles: Readonly<Record<SweepView['state'], Style | null>> = {
  running: 'bold',
  stopping: 'yellow',
  done: null,
  stopped: null,
  failed: 'red',
};

const trialStyles: Readonly<Record<TrialView['state'], Style | null>> = {
  running: 'bold',
  paused: 'cyan',
  complete: null,
  incomplete: 'yellow',
  pruned: null,
  infeasible: 'yellow',
  failed: 'red',
  stopped: null,
};

export function sweepTable(sweeps: readonly SweepView[], view: View): string {
  const columns: readonly Column<SweepView>[] = [
    { header: 'ID', cell: ({ id }) => id },
    { header: 'NAME', cell: ({ name }) => name, narrow: { cutTo: 10 } },
    { header: 'STATE', cell: ({ state }) => state, style: ({ state }) => sweepStyles[state] },
    { header: 'TRIALS', cell: (sweep) => `${endedOf(sweep)}/${sweep.trials}`, align: 'right' },
    { header: 'BEST', cell: ({ best }) => valueText(best), align: 'right' },
    { header: 'USER', cell: ({ user }) => user, narrow: 'drop' },
    { header: 'AGE', cell: ({ createdAtMs }) => agoText(createdAtMs, view.nowMs), narrow: 'drop' },
  ];
  return formatTable(sweeps, columns, view);
}

function endedOf({ complete, incomplete, pruned, infeasible, failed, stopped }: SweepView): number {
  return complete + incomplete + pruned + infeasible + failed + stopped;
}

/** @param matters the most important parameters; empty: they are not known */
export function sweepDetail(sweep: SweepView, matters: string, view: View): string {
  const { id, name, state, reason, user, project, running, best, createdAtMs, endedAtMs } = sweep;
  const {
    objective,
    objectives = [objective],
    sampler,
    seed,
    seeds = 1,
    warm_start: known = [],
  } = sweep.spec as {
    readonly warm_start?: readonly unknown[];
    readonly objective: ShownObjective;
    readonly objectives?: readonly ShownObjective[];
    readonly sampler: string;
    readonly seed: number;
    readonly seeds?: number;
  };
  const counts = countedStates.filter((each) => sweep[each] > 0).map((each) => `${sweep[each]} ${each}`);
  const lines = [
    ['Sweep', `${id} (${name})`],
    ['State', reason === null ? state : `${state}: ${reason}`],
    ['Objective', objectives.map(objectiveText).join('; ')],
    ['Sampler', `${sampler}, seed ${seed}`],
    ['Trials', `${trialsText(sweep)}${counts.length === 0 ? '' : `: ${counts.join(', ')}`}`],
    ...(sweep.awaits === null ? [] : [['Waits for', sweep.awaits]]),
    ...(sweep.incomplete === 0 ? [] : [['Incomplete', incompleteText(sweep.incomplete)]]),
    ...(seeds === 1 ? [] : [['Seeds', `${seeds} runs of each trial; values are means ± standard deviation`]]),
    ...(known.length === 0 ? [] : [['Warm start', `${known.length} known trials`]]),
    ...(sweep.use === null ? [] : [['Used', useText(sweep.use)]]),
    ['User', `${user}, project ${project}`],
    ['Started', agoText(createdAtMs, view.nowMs)],
    ...(endedAtMs === null ? [] : [['Took', durationText(endedAtMs - createdAtMs)]]),
    ['Best', best === null ? 'none yet' : `trial ${best.number}, ${best.jobId}: ${valueText(best)}`],
    ...Object.entries(best?.params ?? {}).map(([key, value]) => [`  ${key}`, String(value)]),
    ...(matters === '' ? [] : [['Importance', matters]]),
  ].map(([label = '', value = '']) => `${`${label}:`.padEnd(14)}${value}\n`);
  const next =
    best === null
      ? running > 0
        ? `Next: ${view.programName} sweep trials ${id}\n`
        : ''
      : `Next: ${view.programName} sweep best ${id} --job-file > best.json\n`;
  return `${lines.join('')}${next === '' ? '' : `\n${next}`}`;
}

const countedStates = [
  'complete',
  'running',
  'paused',
  'incomplete',
  'pruned',
  'infeasible',
  'failed',
  'stopped',
] as const;

function incompleteText(count: number): string {
  const [has, does] = count === 1 ? ['1 trial has', 'does'] : [`${count} trials have`, 'do'];
  return `${has} lost metrics and ${does} not count as complete; a sweep with accept_incomplete: true counts them`;
}

/** A budget may end it earlier. */
function trialsText({ trials, use }: SweepView): string {
  const limits = [use?.gpuHoursLimit, use?.usdLimit, use?.wallClockHoursLimit];
  return limits.some((limit) => limit != null) ? `at most ${trials}` : `${trials} in all`;
}

/** `12 of 50 trials, 3.5 of 100 GPU-hours, 7.25 USD, 1 h 30 min of 12 h` */
function useText(use: SweepUseView): string {
  const part = (used: number, limit: number | null, unit: string) =>
    `${shortNumber(used)}${limit === null ? '' : ` of ${shortNumber(limit)}`} ${unit}`;
  return [
    part(use.trials, use.trialsLimit, 'trials'),
    part(use.gpuHours, use.gpuHoursLimit, 'GPU-hours'),
    ...(use.usd === null ? [] : [part(use.usd, use.usdLimit, 'USD')]),
    `${hoursText(use.wallClockHours)}${use.wallClockHoursLimit === null ? '' : ` of ${hoursText(use.wallClockHoursLimit)}`}`,
  ].join(', ');
}

function hoursText(hours: number): string {
  return durationText(Math.round(hours * 3_600_000));
}

interface ShownObjective {
  readonly metric: string;
  readonly goal: string;
  readonly of?: string;
  readonly at_step?: number;
}

function objectiveText({ metric, goal, of = 'last', at_step: atStep }: ShownObjective): string {
  return `${goal} ${metric}, ${atStep === undefined ? of : `at step ${atStep}`}`;
}

export function trialTable(trials: readonly TrialView[], view: View): string {
  const hasSeeds = trials.some(({ seeds }) => seeds.length > 0);
  const columns: readonly Column<TrialView>[] = [
    { header: 'TRIAL', cell: ({ number }) => String(number), align: 'right' },
    { header: 'STATE', cell: ({ state }) => state, style: ({ state }) => trialStyles[state] },
    { header: 'VALUE', cell: valueText, align: 'right' },
    { header: 'JOB', cell: ({ jobId }) => jobId },
    ...(hasSeeds ? [seedsColumn] : []),
    { header: 'CAUSE', cell: causeText, narrow: 'drop' },
    { header: 'PARAMETERS', cell: paramsText, narrow: { cutTo: 20 } },
  ];
  return formatTable(trials, columns, view);
}

const seedsColumn: Column<TrialView> = { header: 'SEEDS', cell: seedsText, align: 'right' };

function paramsText({ params }: TrialView): string {
  return Object.entries(params)
    .map(([name, value]) => `${name}=${typeof value === 'number' ? shortNumber(value) : String(value)}`)
    .join(' ');
}

type ShownValues = Pick<TrialView, 'value' | 'deviation' | 'furtherValues' | 'furtherDeviations'>;

/** `0.25`, or with seeds `0.25 ± 0.01`. */
function valueText(trial: ShownValues | null): string {
  if (trial?.value == null) return '-';
  const values = [trial.value, ...trial.furtherValues];
  const deviations = [trial.deviation, ...trial.furtherDeviations];
  return values.map((value, index) => withDeviation(value, deviations[index] ?? null)).join(', ');
}

function withDeviation(value: number, deviation: number | null): string {
  return deviation === null ? shortNumber(value) : `${shortNumber(value)} ± ${shortNumber(deviation)}`;
}

/** How many of its seeds have a value. */
function seedsText({ seeds }: TrialView): string {
  return `${seeds.filter(({ state }) => state === 'complete').length}/${seeds.length}`;
}

/** With seeds, why each of those has no value: `2 exit_code, 1 cuda_oom`. */
function causeText({ cause, lost, awaits, seeds }: TrialView): string {
  if (awaits !== null) return `waits for ${awaits}`;
  if (lost !== null) return lost;
  if (seeds.length === 0) return cause ?? '-';
  const counts = Map.groupBy(
    seeds.flatMap((seed) => seed.cause ?? []),
    (each) => each,
  );
  return [...counts].map(([each, of]) => `${of.length} ${each}`).join(', ') || '-';
}

/** Five digits are enough to compare. */
function shortNumber(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(5)));
}

const trialColumns = [
  'number',
  'state',
  'value',
  'step',
  'cause',
  'lost',
  'jobId',
  'startedAtMs',
  'endedAtMs',
] as const;

/** As RFC 4180 has it. A column for each parameter; one that does not apply is empty. */
export function trialCsv(trials: readonly TrialView[]): string {
  const names = [...new Set(trials.flatMap(({ params }) => Object.keys(params)))];
  // Where there are several objectives, whoever has a value has one of each.
  const further = Array.from({
    length: Math.max(0, ...trials.map(({ furtherValues }) => furtherValues.length)),
  });
  const hasSeeds = trials.some(({ seeds }) => seeds.length > 0);
  const deviations = hasSeeds ? further : [];
  const rows = trials.map((trial) => [
    ...trialColumns.map((column) => trial[column]),
    ...(hasSeeds ? [trial.deviation, seedsText(trial)] : []),
    ...further.map((_, index) => trial.furtherValues[index]),
    ...deviations.map((_, index) => trial.furtherDeviations[index]),
    ...names.map((name) => trial.params[name]),
  ]);
  const header = [
    ...trialColumns,
    ...(hasSeeds ? ['deviation', 'seeds'] : []),
    ...further.map((_, index) => `furtherValues.${index}`),
    ...deviations.map((_, index) => `furtherDeviations.${index}`),
    ...names.map((name) => `params.${name}`),
  ];
  return [header, ...rows].map((row) => `${row.map(csvCell).join(',')}\r\n`).join('');
}

function csvCell(value: unknown): string {
  const text = typeof value === 'string' ? value : value == null ? '' : JSON.stringify(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
