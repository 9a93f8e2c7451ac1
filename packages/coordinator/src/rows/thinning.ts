/**
 * What is removed when a job has more rows than its share of the space. Pure.
 *
 * Losses are what users look for years later: all else is halved first, as often as needed. Where the losses alone are too
 * much, successive ones become a bucket with their least, mean, greatest and last value, and the number of losses in it.
 */
import type { TrainingMetricName, TrainingValues } from '@muster/common/training';
import { type Frame, frameRowsMax, type LossBucket, rowBytes, type StoredRow } from './rowFormat.ts';

/** Of the bytes that are aimed at, where the losses alone are too much for them. */
const bucketShare = 0.8;
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

/** Bytes of a job's rows, by what they contain. */
export class RowTally {
  private lossBytes = 0;
  private lossRows = 0;
  private evalBytes = 0;
  private restBytes = 0;

  add(row: StoredRow): void {
    const { loss, evaluation, rest } = partsOf(row);
    if (loss !== null) {
      this.lossBytes += rowBytes(loss);
      this.lossRows += loss.bucket?.rows ?? 1;
    }
    if (evaluation !== null) this.evalBytes += rowBytes(evaluation);
    if (rest !== null) this.restBytes += rowBytes(rest);
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

/** @returns a power of two */
function strideFor(bytes: number, room: number): number {
  let stride = 1;
  while (bytes / stride > room) stride *= 2;
  return stride;
}

interface Parts {
  /** With its step. The same of the others. */
  readonly loss: StoredRow | null;
  readonly evaluation: StoredRow | null;
  readonly rest: StoredRow | null;
}

function partsOf(row: StoredRow): Parts {
  const { train_loss, eval_loss, step, ...rest } = row.values;
  const own = (values: TrainingValues): StoredRow => ({
    atMs: row.atMs,
    values: step === undefined ? values : { ...values, step },
    notFinite: 0,
    bucket: null,
  });
  const hasLoss = train_loss !== undefined || row.notFinite > 0 || row.bucket !== null;
  const { notFinite, bucket } = row;
  return {
    loss: hasLoss ? { ...own(train_loss === undefined ? {} : { train_loss }), notFinite, bucket } : null,
    evaluation: eval_loss === undefined ? null : own({ eval_loss }),
    rest:
      Object.keys(rest).length === 0 && (hasLoss || eval_loss !== undefined || step === undefined)
        ? null
        : own(rest),
  };
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
  position: number;
  rests: number;
  evaluations: number;
  gathered: Gathered | null;
  rows: StoredRow[];
}

/** Takes the frames of a job in their order, and emits those that replace them. */
export class Thinner {
  private readonly plan: ThinningPlan;
  private readonly emit: (frame: Frame) => void;
  private readonly tasks = new Map<string, TaskThinning>();

  constructor(plan: ThinningPlan, emit: (frame: Frame) => void) {
    this.plan = plan;
    this.emit = emit;
  }

  take({ attempt, nodeRank, position, rows }: Frame): void {
    const key = `${attempt}.${nodeRank}`;
    const task: TaskThinning = this.tasks.get(key) ?? {
      attempt,
      nodeRank,
      position,
      rests: 0,
      evaluations: 0,
      gathered: null,
      rows: [],
    };
    this.tasks.set(key, task);
    for (const row of rows) this.takeRow(task, row);
    task.position = position;
    while (task.rows.length >= frameRowsMax) this.flush(task);
  }

  end(): void {
    for (const task of this.tasks.values()) {
      if (task.gathered !== null) task.rows.push(bucketOf(task.gathered));
      // At least one frame: it contains the position up to which the rows of the task are here.
      do this.flush(task);
      while (task.rows.length > 0);
    }
  }

  private flush(task: TaskThinning): void {
    const { attempt, nodeRank, position } = task;
    this.emit({ attempt, nodeRank, position, rows: task.rows.splice(0, frameRowsMax) });
  }

  private takeRow(task: TaskThinning, row: StoredRow): void {
    const { restStride, evalStride, bucketRows } = this.plan;
    const { loss, evaluation, rest } = partsOf(row);
    const keepsRest = rest !== null && task.rests++ % restStride === 0;
    const keepsEvaluation = evaluation !== null && task.evaluations++ % evalStride === 0;
    if (bucketRows === 1) {
      const kept = joined(row, loss, keepsEvaluation ? evaluation : null, keepsRest ? rest : null);
      if (kept !== null) task.rows.push(kept);
      return;
    }
    if (keepsRest || keepsEvaluation) {
      const kept = joined(row, null, keepsEvaluation ? evaluation : null, keepsRest ? rest : null);
      if (kept !== null) task.rows.push(kept);
    }
    if (loss === null) return;
    task.gathered = gather(task.gathered, loss);
    if (task.gathered.rows < bucketRows) return;
    task.rows.push(bucketOf(task.gathered));
    task.gathered = null;
  }
}

function joined(
  { atMs }: StoredRow,
  loss: StoredRow | null,
  evaluation: StoredRow | null,
  rest: StoredRow | null,
): StoredRow | null {
  if (loss === null && evaluation === null && rest === null) return null;
  const values: Partial<Record<TrainingMetricName, number>> = {
    ...rest?.values,
    ...evaluation?.values,
    ...loss?.values,
  };
  return { atMs, values, notFinite: loss?.notFinite ?? 0, bucket: loss?.bucket ?? null };
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
