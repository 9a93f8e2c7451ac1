/** Series of values as fewer values: one for each step, and one series for what belongs together. Pure. */
import type { MetricPoint, MetricSeries } from '@muster/common/telemetry';

export const aggregations = ['mean', 'min', 'max', 'p95', 'last', 'sum'] as const;
export type Aggregation = (typeof aggregations)[number];

export const groupings = ['gpu', 'rank', 'node', 'job', 'all'] as const;
/** What values become one together. */
export type Grouping = (typeof groupings)[number];

export interface Shape {
  readonly aggregation: Aggregation;
  readonly by: Grouping;
  /** null: one value over the whole time. */
  readonly stepMs: number | null;
  /** Wall clock: the end of the time that was asked for. */
  readonly toMs: number;
}

/** The values of one series within one step. */
interface Share {
  /** A row that stands for several counts as many times. */
  rows: number;
  sum: number;
  last: { readonly atMs: number; readonly value: number };
}

interface Step {
  readonly shares: Map<MetricSeries, Share>;
  readonly values: number[];
  min: number;
  max: number;
  notFinite: number;
  /** The last step of a training in it. */
  trainingStep: number | null;
}

/** In the order in which the groups first appear. A value stands at the end of its step. */
export function aggregated(series: readonly MetricSeries[], shape: Shape): readonly MetricSeries[] {
  const groups = new Map<string, MetricSeries[]>();
  for (const each of series) {
    const key = groupKey(each, shape.by);
    const members = groups.get(key);
    if (members === undefined) groups.set(key, [each]);
    else members.push(each);
  }
  return Array.from(groups.values(), (members) => ({
    ...identityOf(members),
    points: pointsOf(members, shape),
  }));
}

function groupKey({ jobId = '', attempt, nodeRank, node, gpuUuid }: MetricSeries, by: Grouping): string {
  if (by === 'all') return '';
  if (by === 'node') return node;
  if (by === 'job') return jobId;
  const rank = `${jobId} ${attempt} ${nodeRank} ${node}`;
  return by === 'rank' ? rank : `${rank} ${gpuUuid}`;
}

/** What all members have in common. */
function identityOf(members: readonly MetricSeries[]): Omit<MetricSeries, 'points'> {
  const common = <Value>(pick: (series: MetricSeries) => Value, other: Value): Value => {
    const [first] = members;
    const value = first === undefined ? other : pick(first);
    return members.every((each) => pick(each) === value) ? value : other;
  };
  const jobId = common(({ jobId: id }) => id, undefined);
  return {
    ...(jobId === undefined ? {} : { jobId }),
    attempt: common(({ attempt }) => attempt, null),
    nodeRank: common(({ nodeRank }) => nodeRank, null),
    node: common(({ node }) => node, ''),
    gpuUuid: common(({ gpuUuid }) => gpuUuid, ''),
  };
}

function pointsOf(members: readonly MetricSeries[], shape: Shape): readonly MetricPoint[] {
  const steps = new Map<number, Step>();
  for (const member of members) {
    for (const point of member.points) {
      const endMs = endOfStep(point.atMs, shape);
      let step = steps.get(endMs);
      if (step === undefined) steps.set(endMs, (step = emptyStep()));
      take(step, member, point);
    }
  }
  return [...steps].sort(([a], [b]) => a - b).map(([endMs, step]) => pointOfStep(endMs, step, shape));
}

/** Steps begin at multiples of their length, so that answers to successive questions fit together. */
function endOfStep(atMs: number, { stepMs, toMs }: Shape): number {
  return stepMs === null ? toMs : Math.min(toMs, Math.ceil(atMs / stepMs) * stepMs);
}

function emptyStep(): Step {
  return {
    shares: new Map(),
    values: [],
    min: Number.POSITIVE_INFINITY,
    max: Number.NEGATIVE_INFINITY,
    notFinite: 0,
    trainingStep: null,
  };
}

function take(
  step: Step,
  member: MetricSeries,
  { atMs, value, bucket, notFinite = 0, ...point }: MetricPoint,
) {
  step.notFinite += notFinite;
  if (typeof point.step === 'number')
    step.trainingStep = Math.max(step.trainingStep ?? point.step, point.step);
  if (value === null) return;
  const rows = Math.max(1, (bucket?.rows ?? 1) - notFinite);
  const last = { atMs, value: bucket?.last ?? value };
  const share = step.shares.get(member);
  if (share === undefined) step.shares.set(member, { rows, sum: value * rows, last });
  else {
    share.rows += rows;
    share.sum += value * rows;
    if (atMs >= share.last.atMs) share.last = last;
  }
  step.values.push(value);
  step.min = Math.min(step.min, bucket?.min ?? value);
  step.max = Math.max(step.max, bucket?.max ?? value);
}

function pointOfStep(atMs: number, step: Step, { aggregation }: Shape): MetricPoint {
  const { notFinite, trainingStep } = step;
  return {
    atMs,
    value: step.values.length === 0 ? null : valueOf[aggregation](step),
    ...(trainingStep === null ? {} : { step: trainingStep }),
    ...(notFinite === 0 ? {} : { notFinite }),
  };
}

/** Of a step with values. */
const valueOf: Readonly<Record<Aggregation, (step: Step) => number>> = {
  min: ({ min }) => min,
  max: ({ max }) => max,
  sum: ({ shares }) => total(shares, ({ sum }) => sum),
  mean: ({ shares }) => total(shares, ({ sum }) => sum) / total(shares, ({ rows }) => rows),
  // Of each series the newest, for they do not report at the same moment.
  last: ({ shares }) => total(shares, ({ last }) => last.value) / shares.size,
  // The smallest value that is not exceeded by 95 of 100.
  p95({ values, max }) {
    const sorted = values.toSorted((a, b) => a - b);
    return sorted[Math.ceil(sorted.length * 0.95) - 1] ?? max;
  },
};

function total(shares: Step['shares'], pick: (share: Share) => number): number {
  let sum = 0;
  for (const share of shares.values()) sum += pick(share);
  return sum;
}
