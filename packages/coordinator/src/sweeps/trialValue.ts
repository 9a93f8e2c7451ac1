/** The value of a trial: of the metric that its output has printed, the one that its sweep asks for. */
import type { JobId } from '@muster/common/ids';
import type { MetricPoint } from '@muster/common/telemetry';
import { lossOf, type Objective } from '@muster/experiments/objective';
import type { StoppingRule, TrialCurve } from '@muster/experiments/stopping/rules';
import { type Curve, Curves, rowFilter } from '../rows/curve.ts';
import type { StoredRow } from '../rows/rowFormat.ts';
import type { RowStore } from '../rows/rowStore.ts';
import { jobsOfTrial } from '../state/trialJobs.ts';
import type { StoredTrial } from '../store/sweeps.ts';

export type TrialValue =
  | { readonly kind: 'value'; readonly value: number; readonly step: number | null }
  /** The metric was there, and at the end it was not a finite number. */
  | { readonly kind: 'notFinite' }
  /** Its output never showed the metric, or not up to the step that counts. */
  | { readonly kind: 'none' };

/** Where a value was read. */
export interface TrialValueOrigin {
  readonly jobId: JobId;
  readonly attempt: number;
  readonly nodeRank: number;
}

const everyRow = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, attempt: null, superseded: false } as const;

/**
 * The value of the lowest rank that prints the metric, over all attempts of all jobs of the trial.
 * @returns with it, where the newest point that counts was read; null: there is none
 */
export async function readTrialValue(
  rows: Pick<RowStore, 'lookAt'>,
  trial: Pick<StoredTrial, 'jobId' | 'earlierJobs'>,
  objective: Objective,
): Promise<TrialValue & { readonly origin: TrialValueOrigin | null }> {
  const parts: (readonly MetricPoint[])[] = [];
  const curves: (Curve & Pick<TrialValueOrigin, 'jobId'>)[] = [];
  for (const jobId of jobsOfTrial(trial)) {
    const ofJob = await readCurves(rows, jobId, objective);
    curves.push(...ofJob.map((curve) => ({ ...curve, jobId })));
    parts.push(ofJob.flatMap((curve) => curve.points));
  }
  const points = continued(parts, ({ step }) => step ?? null);
  const newest = newestOf(points, objective);
  const curve = newest === undefined ? undefined : curves.findLast((each) => each.points.includes(newest));
  return { ...valueOf(points, objective), origin: curve ?? null };
}

/**
 * The curves of jobs that each continue the one before as one curve. What a job repeats, from its checkpoint to where the one
 * before was stopped, is excluded: what was decided by it stays decided.
 * @param positionOf in steps or epochs; null: it is not known, and the point is kept
 */
export function continued<Point>(
  parts: readonly (readonly Point[])[],
  positionOf: (point: Point) => number | null,
): readonly Point[] {
  const [first = [], ...later] = parts;
  return later.reduce((before, points) => {
    const reached = before.reduce((most, point) => Math.max(most, positionOf(point) ?? 0), 0);
    return [...before, ...points.filter((point) => (positionOf(point) ?? Infinity) > reached)];
  }, first);
}

/**
 * What the lowest rank has printed of the metric, in the order of the attempts.
 * @param change of each row before it is read
 */
async function readCurves(
  rows: Pick<RowStore, 'lookAt'>,
  jobId: JobId,
  { metric }: Pick<Objective, 'metric'>,
  change: ((row: StoredRow) => StoredRow) | null = null,
): Promise<readonly Curve[]> {
  const found = await rows.lookAt(jobId, async ({ firstSteps, read }) => {
    const isIn = rowFilter(everyRow, firstSteps);
    const curves = new Curves(metric, () => true);
    await read((frame) => {
      const counted = frame.rows.filter((row) => isIn(frame, row));
      curves.take({ ...frame, rows: change === null ? counted : counted.map(change) });
    });
    const rank = Math.min(...curves.curves.map(({ nodeRank }) => nodeRank));
    return curves.curves.filter(({ nodeRank }) => nodeRank === rank);
  });
  return found ?? [];
}

/** With the epoch of its line where its step is. */
function byEpoch(row: StoredRow): StoredRow {
  const { step: _step, epoch, ...values } = row.values;
  return { ...row, values: epoch === undefined ? values : { ...values, step: epoch } };
}

/** The same as rules for early stopping want it: less is better, and what has no position or no finite value is no point. */
export async function readCurve(
  rows: Pick<RowStore, 'lookAt'>,
  jobId: JobId,
  objective: Objective,
  unit: StoppingRule['unit'],
): Promise<TrialCurve['points']> {
  const curves = await readCurves(rows, jobId, objective, unit === 'epochs' ? byEpoch : null);
  const points = curves.flatMap((curve) => curve.points);
  return points.flatMap(({ step: at = null, value: single, bucket }) => {
    const value = bucket === undefined ? single : bucket.last;
    if (at === null || value === null) return [];
    return [{ at, loss: lossOf(objective, value) }];
  });
}

/** @param points of one rank, in the order of the attempts */
export function valueOf(points: readonly MetricPoint[], objective: Objective): TrialValue {
  if (objective.of === 'best') return bestOf(points, objective);
  const last = newestOf(points, objective);
  if (last === undefined) return { kind: 'none' };
  const value = last.bucket === undefined ? last.value : last.bucket.last;
  // A loss that was never finite at its end is no result, whatever it was before.
  if (value === null || (last.notFinite ?? 0) > 0) return { kind: 'notFinite' };
  return { kind: 'value', value, step: last.step ?? null };
}

/** The newest point that counts. undefined: there is none */
function newestOf(points: readonly MetricPoint[], { of }: Pick<Objective, 'of'>): MetricPoint | undefined {
  return typeof of === 'object'
    ? points.findLast(({ step }) => (step ?? Infinity) <= of.atStep)
    : points.at(-1);
}

function bestOf(points: readonly MetricPoint[], objective: Objective): TrialValue {
  let best: { readonly value: number; readonly step: number | null } | null = null;
  for (const { value: single, step = null, bucket } of points) {
    const value = bucket === undefined ? single : objective.goal === 'min' ? bucket.min : bucket.max;
    if (value === null) continue;
    if (best === null || lossOf(objective, value) < lossOf(objective, best.value)) best = { value, step };
  }
  if (best !== null) return { kind: 'value', ...best };
  return points.length > 0 ? { kind: 'notFinite' } : { kind: 'none' };
}
