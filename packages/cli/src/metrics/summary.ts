/** Time series of a job in numbers. Pure. */
import type { MetricPoint, MetricSeries } from '@muster/common/telemetry';

export interface SeriesSummary {
  readonly min: number | null;
  readonly mean: number | null;
  readonly max: number | null;
  /** The newest value that was read. */
  readonly last: number | null;
  readonly total: number | null;
}

/** Over what was read; all null when nothing was. */
export function summarize(points: readonly MetricPoint[]): SeriesSummary {
  const values = valuesOf(points);
  const last = points.findLast(({ value }) => value !== null);
  return {
    min: extreme(known(points.map(({ value, bucket }) => bucket?.min ?? value)), Math.min),
    mean: meanOf(points),
    max: extreme(known(points.map(({ value, bucket }) => bucket?.max ?? value)), Math.max),
    last: last?.bucket?.last ?? last?.value ?? null,
    total: sumOf(values),
  };
}

/** Over all GPUs: mean, peak and sum of every value, and the mean of what each GPU did last. */
export function summarizeAll(
  series: readonly MetricSeries[],
): Pick<SeriesSummary, 'mean' | 'max' | 'last' | 'total'> {
  const parts = series.map(({ points }) => summarize(points));
  return {
    mean: meanOf(series.flatMap(({ points }) => points)),
    max: extreme(known(parts.map(({ max }) => max)), Math.max),
    last: plainMean(known(parts.map(({ last }) => last))),
    total: sumOf(known(parts.map(({ total }) => total))),
  };
}

function valuesOf(points: readonly MetricPoint[]): readonly number[] {
  return known(points.map(({ value }) => value));
}

function known(values: readonly (number | null)[]): readonly number[] {
  return values.filter((value) => value !== null);
}

function extreme(values: readonly number[], pick: (a: number, b: number) => number): number | null {
  return values.length === 0 ? null : values.reduce((a, b) => pick(a, b));
}

/**
 * Rows by their steps instead of their times, where all have one: a short run prints many in a moment.
 * @returns null: some have none
 */
export function bySteps(series: readonly MetricSeries[]): readonly MetricSeries[] | null {
  const isStepped = series.every(({ points }) => points.every(({ step }) => typeof step === 'number'));
  if (!isStepped) return null;
  return series.map((each) => ({
    ...each,
    points: each.points.map((point) => ({ ...point, atMs: point.step ?? 0 })),
  }));
}

function sumOf(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0);
}

/** A point that stands for several rows counts as many times. */
function meanOf(points: readonly MetricPoint[]): number | null {
  let sum = 0;
  let count = 0;
  for (const { value, bucket, notFinite = 0 } of points) {
    if (value === null) continue;
    const rows = bucket === undefined ? 1 : bucket.rows - notFinite;
    sum += value * rows;
    count += rows;
  }
  return count === 0 ? null : sum / count;
}

function plainMean(values: readonly number[]): number | null {
  const sum = sumOf(values);
  return sum === null ? null : sum / values.length;
}

/** @returns first and last time of any reading; null when there is none */
export function timeSpan(series: readonly MetricSeries[]): { fromMs: number; toMs: number } | null {
  const times = series.flatMap(({ points }) => points.map(({ atMs }) => atMs));
  if (times.length === 0) return null;
  return times.reduce(
    ({ fromMs, toMs }, atMs) => ({ fromMs: Math.min(fromMs, atMs), toMs: Math.max(toMs, atMs) }),
    { fromMs: Number.POSITIVE_INFINITY, toMs: Number.NEGATIVE_INFINITY },
  );
}

/**
 * The means of equal stretches of time. All series get the same span, so that what stands below each other happened at the
 * same time; a stretch in which nothing was read is null.
 */
export function bucketMeans(
  points: readonly MetricPoint[],
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  buckets: number,
): readonly (number | null)[] {
  const collected = Array.from({ length: buckets }, () => [] as number[]);
  const bucketMs = (toMs - fromMs) / buckets;
  for (const { atMs, value } of points) {
    const index = bucketMs <= 0 ? 0 : Math.min(buckets - 1, Math.floor((atMs - fromMs) / bucketMs));
    if (value !== null) collected[index]?.push(value);
  }
  return collected.map(plainMean);
}
