/**
 * What is removed when a job has more rows than its share of the space. Pure.
 *
 * Losses are what users look for years later: all else is halved first, as often as needed. Where the losses alone are too
 * much, successive ones become a bucket with their least, mean, greatest and last value, and the number of losses in it.
 *
 * Whatever the budget is, each series (a metric of a task) keeps its first, last, least and greatest row and its first that is not a
 * finite number, each as a row of its own. What is dropped is counted, so that the values that are kept, those in buckets and those
 * omitted add up to what the program has printed.
 */
import { SeriesMarks } from '@muster/common/seriesMarks';
import { type TrainingMetricName, trainingMetricNames } from '@muster/common/training';
import { excessOf, ValueTally } from '@muster/common/valueCounts';
import {
  type Frame,
  frameRowsMax,
  type LossBucket,
  nothingOmitted,
  type Omitted,
  rowBytes,
  type StoredRow,
} from './rowFormat.ts';

/** Of the bytes that are aimed at, where the losses alone are too much for them. */
const bucketShare = 0.65;
const restShare = 0.05;
const bucketRowBytes = rowBytes({
  values: { step: 0, train_loss: 0 },
  bucket: { rows: 0, firstStep: null, min: null, max: null, mean: null },
});

export interface ThinningPlan {
  /** Of the rows with more than a loss, one in `restStride` keeps the rest. 1: all do. */
  readonly restStride: number;
  /** One loss of an evaluation in `evalStride` is kept. 1: all are. */
  readonly evalStride: number;
  /** Successive losses of training that become one bucket. 1: none do. */
  readonly bucketRows: number;
}

const bitOf = (name: TrainingMetricName) => 1 << trainingMetricNames.indexOf(name);
const lossBit = bitOf('train_loss');
const evalBit = bitOf('eval_loss');
const stepBit = bitOf('step');
/** Of all metrics. */
const allBits = (1 << trainingMetricNames.length) - 1;
const restBits = allBits & ~lossBit & ~evalBit & ~stepBit;

/** The metrics of a row, a bit for each. */
function metricsOf({ values, notFinite, bucket, alsoNotFinite }: StoredRow): number {
  let bits = notFinite > 0 || bucket !== null ? lossBit : 0;
  for (let index = 0; index < trainingMetricNames.length; index += 1)
    if (values[trainingMetricNames[index] as TrainingMetricName] !== undefined) bits |= 1 << index;
  for (const name of alsoNotFinite ?? []) bits |= bitOf(name);
  return bits;
}

/** Counts the values that a row has, those that it stands for included. */
export function countValues(tally: ValueTally, row: StoredRow): void {
  const { bucket, notFinite, alsoNotFinite = [], values } = row;
  for (let index = 0; index < trainingMetricNames.length; index += 1)
    if (values[trainingMetricNames[index] as TrainingMetricName] !== undefined && 1 << index !== lossBit)
      tally.add(index, 1, 0);
  for (const name of alsoNotFinite) tally.add(trainingMetricNames.indexOf(name), 1, 1);
  if (bucket !== null || notFinite > 0 || values.train_loss !== undefined)
    tally.add(trainingMetricNames.indexOf('train_loss'), bucket?.rows ?? 1, notFinite);
}

/** The rows of one task that are kept whatever the plan is. */
class TaskMarks {
  private readonly series = trainingMetricNames.map(() => new SeriesMarks());
  private rows = 0;

  add(row: StoredRow, bits: number): void {
    const place = this.rows;
    this.rows += 1;
    for (let index = 0; index < trainingMetricNames.length; index += 1) {
      const bit = 1 << index;
      if ((bits & bit) === 0) continue;
      const isBucket = bit === lossBit && row.bucket !== null;
      const value = row.values[trainingMetricNames[index] as TrainingMetricName] ?? null;
      const low = isBucket ? (row.bucket?.min ?? null) : value;
      const high = isBucket ? (row.bucket?.max ?? null) : value;
      const isNotFinite = bit === lossBit ? row.notFinite > 0 : value === null;
      this.series[index]?.add(place, low, high, isNotFinite);
    }
  }

  /** Place of a row → a bit for each metric for which it is kept. */
  get places(): ReadonlyMap<number, number> {
    const places = new Map<number, number>();
    for (const [index, marks] of this.series.entries())
      for (const place of marks.places) places.set(place, (places.get(place) ?? 0) | (1 << index));
    return places;
  }
}

const keyOf = ({ attempt, nodeRank }: Pick<Frame, 'attempt' | 'nodeRank'>) => `${attempt}.${nodeRank}`;

/** What a first look at all frames of a job finds: bytes by what they contain, and the rows that are kept in any case. */
export class RowTally {
  private lossBytes = 0;
  private lossRows = 0;
  private evalBytes = 0;
  private restBytes = 0;
  private readonly tasks = new Map<string, TaskMarks>();

  take(frame: Frame): void {
    const key = keyOf(frame);
    const marks = this.tasks.get(key) ?? new TaskMarks();
    this.tasks.set(key, marks);
    for (const row of frame.rows) {
      const bits = metricsOf(row);
      marks.add(row, bits);
      if ((bits & lossBit) !== 0) {
        this.lossBytes += rowBytes(projected(row, bits & (lossBit | stepBit)));
        this.lossRows += row.bucket?.rows ?? 1;
      }
      if ((bits & evalBit) !== 0) this.evalBytes += rowBytes(projected(row, bits & (evalBit | stepBit)));
      if (hasRest(bits)) this.restBytes += rowBytes(projected(row, bits & (restBits | stepBit)));
    }
  }

  /** By task: place of a row → a bit for each metric for which it is kept. */
  get marks(): RowMarks {
    return new Map(Array.from(this.tasks, ([key, marks]) => [key, marks.places]));
  }

  /** @param bytesMax what the rows may take, without the overhead of frames @returns null: they take no more already */
  plan(bytesMax: number): ThinningPlan | null {
    const { lossBytes, lossRows, evalBytes, restBytes } = this;
    if (lossBytes + evalBytes + restBytes <= bytesMax) return null;
    const room = bytesMax - lossBytes - evalBytes;
    if (room >= bytesMax * restShare)
      return { restStride: strideFor(restBytes, room), evalStride: 1, bucketRows: 1 };
    return {
      restStride: strideFor(restBytes, bytesMax * restShare),
      evalStride: strideFor(evalBytes, bytesMax * restShare),
      bucketRows: Math.max(2, Math.ceil((lossRows * bucketRowBytes) / (bytesMax * bucketShare))),
    };
  }
}

export type RowMarks = ReadonlyMap<string, ReadonlyMap<number, number>>;

/** A row without any metric, and one with its step only, count as rest. */
function hasRest(bits: number): boolean {
  return (bits & restBits) !== 0 || (bits & (lossBit | evalBit)) === 0;
}

/** @returns a power of two */
function strideFor(bytes: number, room: number): number {
  let stride = 1;
  // Beyond this a task keeps its marked rows alone.
  while (bytes / stride > room && stride < 2 ** 40) stride *= 2;
  return stride;
}

/** The row with these metrics only. */
function projected(row: StoredRow, bits: number): StoredRow {
  const values: Partial<Record<TrainingMetricName, number>> = {};
  for (let index = 0; index < trainingMetricNames.length; index += 1) {
    const name = trainingMetricNames[index] as TrainingMetricName;
    const value = row.values[name];
    if (value !== undefined && (bits & (1 << index)) !== 0) values[name] = value;
  }
  const hasLoss = (bits & lossBit) !== 0;
  const { atMs } = row;
  const kept = { atMs, values, notFinite: hasLoss ? row.notFinite : 0, bucket: hasLoss ? row.bucket : null };
  const alsoNotFinite = row.alsoNotFinite?.filter((name) => (bits & bitOf(name)) !== 0) ?? [];
  return alsoNotFinite.length === 0 ? kept : { ...kept, alsoNotFinite };
}

/** Losses that are becoming one. */
interface Gathered {
  readonly firstStep: number | null;
  readonly last: StoredRow;
  readonly rows: number;
  readonly notFinite: number;
  readonly min: number | null;
  readonly max: number | null;
  readonly sum: number;
}

interface TaskThinning {
  readonly attempt: number;
  readonly nodeRank: number;
  readonly marks: ReadonlyMap<number, number>;
  /** Rows that were taken. */
  taken: number;
  position: number;
  rests: number;
  evaluations: number;
  gathered: Gathered | null;
  rows: StoredRow[];
  /** By the frames that were taken. */
  omitted: Omitted;
  readonly before: ValueTally;
  readonly after: ValueTally;
}

/** Takes the frames of a job in their order, and emits those that replace them. */
export class Thinner {
  private readonly plan: ThinningPlan;
  private readonly marks: RowMarks;
  private readonly emit: (frame: Frame) => void;
  private readonly tasks = new Map<string, TaskThinning>();

  /** @param marks of the same frames */
  constructor(plan: ThinningPlan, marks: RowMarks, emit: (frame: Frame) => void) {
    this.plan = plan;
    this.marks = marks;
    this.emit = emit;
  }

  take(frame: Frame): void {
    const { attempt, nodeRank, position, rows, omitted } = frame;
    const key = keyOf(frame);
    const task: TaskThinning = this.tasks.get(key) ?? {
      attempt,
      nodeRank,
      marks: this.marks.get(key) ?? new Map(),
      taken: 0,
      position,
      rests: 0,
      evaluations: 0,
      gathered: null,
      rows: [],
      omitted: nothingOmitted,
      before: new ValueTally(),
      after: new ValueTally(),
    };
    this.tasks.set(key, task);
    for (const row of rows) {
      countValues(task.before, row);
      this.takeRow(task, row);
    }
    task.omitted = omitted ?? task.omitted;
    task.position = position;
    while (task.rows.length >= frameRowsMax) this.emit(this.nextFrame(task));
  }

  end(): void {
    for (const task of this.tasks.values()) {
      this.closeBucket(task);
      while (task.rows.length > frameRowsMax) this.emit(this.nextFrame(task));
      // At least one frame: it contains the position up to which the rows of the task are here, and what was omitted until then.
      const last = this.nextFrame(task);
      const omitted = omittedNow(task);
      this.emit(isNothing(omitted) ? last : { ...last, omitted });
    }
  }

  private nextFrame(task: TaskThinning): Frame {
    const { attempt, nodeRank, position } = task;
    const rows = task.rows.splice(0, frameRowsMax);
    for (const row of rows) countValues(task.after, row);
    return { attempt, nodeRank, position, rows };
  }

  private takeRow(task: TaskThinning, row: StoredRow): void {
    const { restStride, evalStride, bucketRows } = this.plan;
    const bits = metricsOf(row);
    const marked = task.marks.get(task.taken) ?? 0;
    task.taken += 1;
    let kept = marked;
    if (hasRest(bits) && task.rests++ % restStride === 0) kept |= (bits & restBits) | stepBit;
    if ((bits & evalBit) !== 0 && task.evaluations++ % evalStride === 0) kept |= evalBit;
    const isOwn = kept !== 0;
    // A row that stays for another of its metrics keeps its loss, so that no step is told twice.
    if (isOwn || bucketRows === 1) kept |= bits & lossBit;
    if (kept !== 0) {
      this.closeBucket(task);
      task.rows.push(projected(row, kept | stepBit));
      return;
    }
    if ((bits & lossBit) === 0) return;
    task.gathered = gather(task.gathered, projected(row, lossBit | stepBit));
    if (task.gathered.rows >= bucketRows) this.closeBucket(task);
  }

  private closeBucket(task: TaskThinning): void {
    if (task.gathered !== null) task.rows.push(bucketOf(task.gathered));
    task.gathered = null;
  }
}

function isNothing({ values, unreadBytes }: Omitted): boolean {
  return unreadBytes === 0 && Object.keys(values).length === 0;
}

/** What the task lacks by now: what it lacked before, and what is not in the rows that were emitted. */
function omittedNow({ omitted, before, after }: TaskThinning): Omitted {
  const tally = new ValueTally(omitted.values);
  tally.addAll(excessOf(before.counts, after.counts));
  return { values: tally.counts, unreadBytes: omitted.unreadBytes };
}

function gather(before: Gathered | null, row: StoredRow): Gathered {
  const { values, notFinite } = row;
  const loss = values.train_loss ?? null;
  const bucket: LossBucket = row.bucket ?? {
    rows: 1,
    firstStep: values.step ?? null,
    min: loss,
    max: loss,
    mean: loss,
  };
  const sum = bucket.mean === null ? 0 : bucket.mean * (bucket.rows - notFinite);
  if (before === null) {
    const { rows, firstStep, min, max } = bucket;
    return { firstStep, last: row, rows, notFinite, min, max, sum };
  }
  // The last loss that was finite stays known, whatever comes after it.
  const last = loss === null ? { ...row, values: { ...before.last.values, ...values } } : row;
  return {
    firstStep: before.firstStep ?? bucket.firstStep,
    last,
    rows: before.rows + bucket.rows,
    notFinite: before.notFinite + notFinite,
    min: extreme(Math.min, before.min, bucket.min),
    max: extreme(Math.max, before.max, bucket.max),
    sum: before.sum + sum,
  };
}

function bucketOf({ firstStep, last, rows, notFinite, min, max, sum }: Gathered): StoredRow {
  if (rows === 1) return last;
  const finite = rows - notFinite;
  const mean = finite > 0 ? sum / finite : null;
  return { ...last, notFinite, bucket: { rows, firstStep, min, max, mean } };
}

function extreme(pick: (a: number, b: number) => number, a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return pick(a, b);
}
