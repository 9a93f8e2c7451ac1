import { signMarks } from '@muster/common/signText';
import { isTerminal } from '@muster/common/states';
import type { TrainingMetricName } from '@muster/common/training';
import type { JobView } from '@muster/common/views';
import type { Style } from '../output/colours.ts';
import { type Column, formatTable, type View } from '../output/table.ts';
import { agoText, durationText } from '../output/times.ts';
import {
  labelsOf,
  markedState,
  nameOf,
  needsText,
  ranText,
  resourcesOf,
  stateStyles,
  whyText,
} from './summary.ts';

/** What was noticed of a training stands out from a state in which all seems well. */
function stateStyle(job: JobView): Style | null {
  const isMarked = signMarks(job).length > 0 && job.state !== 'failed';
  return isMarked ? 'yellow' : stateStyles[job.state];
}

/** In the order of `--wide`. */
export const jobColumns = [
  'id',
  'array',
  'name',
  'state',
  'phase',
  'needs',
  'submitted',
  'ran',
  'step',
  'loss',
  'eta',
  'project',
  'user',
  'labels',
  'why',
] as const;

const usualColumns = ['id', 'name', 'state', 'needs', 'submitted', 'ran', 'why'];

export interface JobTableOptions extends View {
  /** Names from `jobColumns`, in this order; default: the usual ones, and the array where there is one. */
  readonly columns?: readonly string[] | undefined;
  /** A column of its own, behind the state. */
  readonly metric?: TrainingMetricName | undefined;
}

export function formatJobs(jobs: readonly JobView[], options: JobTableOptions): string {
  const { nowMs, metric } = options;
  const named: Readonly<Record<string, Column<JobView>>> = {
    id: { header: 'ID', cell: (job) => job.id },
    array: { header: 'ARRAY', cell: (job) => job.array?.id ?? '', narrow: 'drop' },
    name: { header: 'NAME', cell: nameOf, narrow: { cutTo: 14 } },
    state: { header: 'STATE', cell: markedState, style: stateStyle },
    phase: { header: 'PHASE', cell: phaseCell, narrow: 'drop' },
    needs: { header: 'NEEDS', cell: (job) => needsText(resourcesOf(job)), narrow: 'drop' },
    submitted: { header: 'SUBMITTED', cell: (job) => agoText(job.submittedAtMs, nowMs), narrow: 'drop' },
    ran: { header: 'RAN', cell: (job) => ranText(job, nowMs), narrow: 'drop' },
    step: { header: 'STEP', cell: stepText, align: 'right', narrow: 'drop' },
    loss: { header: 'LOSS', cell: (job) => metricText(job, 'train_loss'), align: 'right', narrow: 'drop' },
    eta: { header: 'ETA', cell: etaText, align: 'right', narrow: 'drop' },
    project: { header: 'PROJECT', cell: (job) => job.project, narrow: 'drop' },
    user: { header: 'USER', cell: (job) => job.user ?? '', narrow: 'drop' },
    labels: { header: 'LABELS', cell: labelsText, narrow: { cutTo: 12, drop: true } },
    why: { header: 'WHY', cell: whyText, narrow: { cutTo: 24 } },
  };
  const hasArrays = jobs.some(({ array }) => array !== null);
  const usual = hasArrays ? usualColumns.toSpliced(1, 0, 'array') : usualColumns;
  const columns = (options.columns ?? usual).flatMap((name) => named[name] ?? []);
  if (metric !== undefined) {
    const column: Column<JobView> = {
      header: metric.toUpperCase(),
      cell: (job) => metricText(job, metric),
      align: 'right',
    };
    const behind = columns.findIndex(({ header }) => header === 'STATE');
    columns.splice(behind === -1 ? columns.length : behind + 1, 0, column);
  }
  return formatTable(jobs, columns, options);
}

/** The smallest value first; jobs without one come last, in the order they have. */
export function byMetric(jobs: readonly JobView[], metric: TrainingMetricName): readonly JobView[] {
  const valueOf = (job: JobView) => {
    const value = job.training?.latest[metric];
    return value === undefined || Number.isNaN(value) ? Number.POSITIVE_INFINITY : value;
  };
  return jobs.toSorted((a, b) => (valueOf(a) === valueOf(b) ? 0 : valueOf(a) - valueOf(b)));
}

function metricText({ training }: JobView, metric: TrainingMetricName): string {
  const value = training?.latest[metric];
  return value === undefined ? '' : String(Number(value.toPrecision(4)));
}

function stepText({ training }: JobView): string {
  if (training?.latest.step === undefined) return '';
  return `${training.latest.step}${training.totalSteps === null ? '' : `/${training.totalSteps}`}`;
}

function etaText({ training, state }: JobView): string {
  return training === null || training.etaMs === null || isTerminal(state)
    ? ''
    : durationText(training.etaMs);
}

function labelsText(job: JobView): string {
  return Object.entries(labelsOf(job))
    .map(([name, value]) => (value === '' ? name : `${name}=${value}`))
    .join(',');
}

/** `curated 28.7 %`; empty for a job without phases. */
function phaseCell({ phases }: JobView): string {
  return phases === null ? '' : `${phases.phases[phases.index]?.name ?? ''} ${phases.percent} %`;
}
