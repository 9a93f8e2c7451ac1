/**
 * Rows of a job as curves: by attempt and rank, without what a later attempt did again, and with no more points than
 * somebody wants to look at. Pure.
 */
import { SeriesMarks } from '@muster/common/seriesMarks';
import type { MetricPoint } from '@muster/common/telemetry';
import type { TrainingMetricName } from '@muster/common/training';
import type { Frame, StoredRow } from './rowFormat.ts';

export interface RowRange {
  /** Wall clock; rows before it are excluded. */
  readonly fromMs: number;
  /** Wall clock; rows after it are excluded. */
  readonly toMs: number;
  /** null: every one. */
  readonly attempt: number | null;
  /** Also the rows at steps that a later attempt did again. */
  readonly superseded: boolean;
}

export interface Curve {
  readonly attempt: number;
  readonly nodeRank: number;
  /** In the order of the output. */
  readonly points: readonly MetricPoint[];
  /** Points that stand for several rows, before any are merged for an answer. */
  readonly mergedPoints: number;
}

/**
 * Which rows belong to a range.
 * @param firstSteps by attempt: the lowest step in its rows
 */
export function rowFilter(
  { fromMs, toMs, attempt, superseded }: RowRange,
  firstSteps: ReadonlyMap<number, number>,
): (frame: Frame, row: StoredRow) => boolean {
  const endOf = (number: number) => {
    const later = [...firstSteps].filter(([other]) => other > number).map(([, step]) => step);
    return Math.min(Number.POSITIVE_INFINITY, ...later);
  };
  const ends = new Map<number, number>();
  return (frame, { atMs, values }) => {
    if (atMs < fromMs || atMs > toMs) return false;
    if (attempt !== null) return frame.attempt === attempt;
    if (superseded || values.step === undefined) return true;
    let end = ends.get(frame.attempt);
    if (end === undefined) ends.set(frame.attempt, (end = endOf(frame.attempt)));
    return values.step < end;
  };
}

/** The value of a metric in a row; null: it has none. */
export function pointOf(
  { atMs, values, notFinite, bucket, alsoNotFinite }: StoredRow,
  name: TrainingMetricName,
): MetricPoint | null {
  const value = values[name] ?? null;
  const step = values.step ?? null;
  if (name !== 'train_loss') {
    if (value === null && alsoNotFinite?.includes(name)) return { atMs, value, step, notFinite: 1 };
    return value === null ? null : { atMs, value, step };
  }
  if (bucket !== null) {
    const { rows, firstStep, min, max, mean } = bucket;
    const point = { atMs, value: mean, step, bucket: { rows, firstStep, min, max, last: value } };
    return notFinite === 0 ? point : { ...point, notFinite };
  }
  if (notFinite > 0) return { atMs, value: null, step, notFinite };
  return value === null ? null : { atMs, value, step };
}

interface OpenCurve {
  readonly attempt: number;
  readonly nodeRank: number;
  readonly points: MetricPoint[];
  mergedPoints: number;
}

/** Collects the points of one metric. */
export class Curves {
  private readonly name: TrainingMetricName;
  private readonly isIn: ReturnType<typeof rowFilter>;
  private readonly byTask = new Map<string, OpenCurve>();

  constructor(name: TrainingMetricName, isIn: ReturnType<typeof rowFilter>) {
    this.name = name;
    this.isIn = isIn;
  }

  take(frame: Frame): void {
    const { attempt, nodeRank, rows } = frame;
    for (const row of rows) {
      const point = this.isIn(frame, row) ? pointOf(row, this.name) : null;
      if (point === null) continue;
      const key = `${attempt}.${nodeRank}`;
      let curve = this.byTask.get(key);
      if (curve === undefined)
        this.byTask.set(key, (curve = { attempt, nodeRank, points: [], mergedPoints: 0 }));
      if (point.bucket !== undefined) curve.mergedPoints += 1;
      curve.points.push(point);
    }
  }

  /** By attempt and rank. */
  get curves(): readonly Curve[] {
    return [...this.byTask.values()].sort((a, b) => a.attempt - b.attempt || a.nodeRank - b.nodeRank);
  }
}

/**
 * @param pointsMax at least 1
 * @returns as they are where they are no more; else neighbours as one, equally many each. From 16 points on, the first, the last, the
 *   least, the greatest and the first that is not a finite number stay points of their own, with their steps
 */
export function reduced(points: readonly MetricPoint[], pointsMax: number): readonly MetricPoint[] {
  if (points.length <= pointsMax) return points;
  const own = pointsMax < ownPointsFrom ? new Set<number>() : markedPlaces(points);
  // A marked point in the middle of a group makes two of it.
  const together = Math.ceil(points.length / (pointsMax - 2 * own.size));
  const reducedPoints: MetricPoint[] = [];
  let from = 0;
  const close = (end: number) => {
    if (end > from) reducedPoints.push(merged(points.slice(from, end)));
    from = end;
  };
  for (let place = 0; place < points.length; place += 1) {
    if (own.has(place)) {
      close(place);
      close(place + 1);
    } else if (place + 1 - from >= together) close(place + 1);
  }
  close(points.length);
  return reducedPoints;
}

const ownPointsFrom = 16;

function markedPlaces(points: readonly MetricPoint[]): ReadonlySet<number> {
  const marks = new SeriesMarks();
  for (const [place, { value, bucket, notFinite = 0 }] of points.entries())
    marks.add(place, bucket?.min ?? value, bucket?.max ?? value, notFinite > 0);
  return new Set(marks.places);
}

function merged(points: readonly MetricPoint[]): MetricPoint {
  const [first] = points;
  const last = points.at(-1);
  if (first === undefined || last === undefined || points.length === 1) return first as MetricPoint;
  let rows = 0;
  let finite = 0;
  let sum = 0;
  let min: number | null = null;
  let max: number | null = null;
  let lastValue: number | null = null;
  for (const { value, notFinite = 0, bucket } of points) {
    const count = bucket?.rows ?? 1;
    rows += count;
    if (value === null) continue;
    finite += count - notFinite;
    sum += value * (count - notFinite);
    const [low, high] = [bucket?.min ?? value, bucket?.max ?? value];
    min = min === null || low < min ? low : min;
    max = max === null || high > max ? high : max;
    lastValue = bucket?.last ?? value;
  }
  const firstStep = first.bucket === undefined ? (first.step ?? null) : first.bucket.firstStep;
  const point = {
    atMs: last.atMs,
    value: finite === 0 ? null : sum / finite,
    step: last.step ?? null,
    bucket: { rows, firstStep, min, max, last: lastValue },
  };
  return finite === rows ? point : { ...point, notFinite: rows - finite };
}

export interface Page {
  readonly curves: readonly Curve[];
  /** null: there are no more points. */
  readonly nextSkip: number | null;
}

/** `pointsMax` points of all curves, after the first `skip`. */
export function pageOf(curves: readonly Curve[], skip: number, pointsMax: number): Page {
  const total = curves.reduce((sum, { points }) => sum + points.length, 0);
  const paged: Curve[] = [];
  let before = 0;
  for (const curve of curves) {
    const from = Math.max(0, skip - before);
    const points = curve.points.slice(from, Math.max(0, skip + pointsMax - before));
    before += curve.points.length;
    if (points.length > 0) paged.push({ ...curve, points });
  }
  return { curves: paged, nextSkip: skip + pointsMax < total ? skip + pointsMax : null };
}
