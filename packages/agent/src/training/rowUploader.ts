/**
 * Brings the rows of metrics of this node's tasks to the coordinator, each once, on the connection of the logs.
 *
 * A row is identified by its position in the output of its task. On every connection the coordinator is asked first how far
 * it has them, and after a restart the agent reads the output again from its beginning: so nothing is written down here, and
 * a full disk of the node costs no row. One batch of a task is on its way at a time.
 */
import type { ClientDuplexStream } from '@grpc/grpc-js';
import { messageOf } from '@muster/common/errors';
import type { RowUpload } from '@muster/common/gen/muster/v1/RowUpload';
import type { RowUploadAck__Output } from '@muster/common/gen/muster/v1/RowUploadAck';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { TrainingRow } from '@muster/common/training';
import { taskRefFromWire, taskRefToWire, trainingRowToWire } from '@muster/common/wire/codec';
import { valueCountsFromWire, valueCountsToWire } from '@muster/common/wire/rowCounts';
import { uploadWaitMs } from '@muster/common/wire/uploadPace';
import type { RowsEnd } from './taskTrainingParts.ts';
import { type PrintedValues, WaitingRows } from './waitingRows.ts';

type RowStream = ClientDuplexStream<RowUpload, RowUploadAck__Output>;

const batchRows = 512;
/** Rows of a task that prints one now and then go together. */
const gatherMs = 500;
const reconnect = { initialMs: 200, maxMs: 5_000 };
/** Of one task, some 10 MB: eighteen hours at a row a second without a coordinator. */
const waitingMaxDefault = 65_536;
/** Rows of a task that prints faster than the coordinator takes them: a second of what it takes, so that the newest is seldom old. */
const behindMax = 2_048;

interface TaskRows {
  readonly task: TaskRef;
  readonly rows: WaitingRows;
  /** On this connection the coordinator has reported how far it has them. */
  isKnown: boolean;
  isInFlight: boolean;
  hasEnded: boolean;
  /** Rows may have followed the last one, and cannot be read. */
  isLost: boolean;
  isComplete: boolean;
  /** Monotonic: the coordinator takes nothing before. */
  pausedUntilMs: number;
  /** Rows were dropped, and that has been logged. */
  isThinned: boolean;
  readonly onComplete: (() => void)[];
}

export interface RowUploaderParts {
  readonly openStream: () => RowStream;
  readonly log: Logger;
  /** Uniform in [0, 1). */
  readonly chance: () => number;
  readonly monotonicMs: () => number;
  /** Rows of one task that wait at most; beyond that, every second of the older half goes, but ends and extremes. Default: 65,536. */
  readonly waitingMax?: number;
}

export class RowUploader {
  private readonly parts: RowUploaderParts;
  private readonly tasks = new Map<TaskKey, TaskRows>();
  private stream: RowStream | null = null;
  private timer: NodeJS.Timeout | null = null;
  private failures = 0;
  /** The newest of them. */
  private failure: Error | null = null;
  private closed = false;

  constructor(parts: RowUploaderParts) {
    this.parts = parts;
  }

  /** @param row behind those that were added before */
  add(task: TaskRef, row: TrainingRow): void {
    const of = this.rowsOf(task);
    of.rows.add(row);
    const { waitingMax = waitingMaxDefault } = this.parts;
    // What is newest is what its owner looks at; of what is older the shape is enough.
    if (of.rows.length > waitingMax) this.thin(of, Math.floor(waitingMax / 4), Math.floor(waitingMax / 2));
    this.soon(gatherMs);
  }

  /** @param bytes of the task's output behind the newest row that nobody reads for metrics */
  skipped(task: TaskRef, bytes: number): void {
    this.rowsOf(task).rows.skipped(bytes);
    this.soon(gatherMs);
  }

  /**
   * There will be no more rows of the task. The end of one without rows is sent unless the report of its end has it: with that the
   * coordinator knows that none will come.
   */
  ended(task: TaskRef, { isReported, isLost }: RowsEnd): void {
    if (isReported && !this.tasks.has(taskKey(task))) return;
    const of = this.rowsOf(task);
    of.hasEnded = true;
    of.isLost = isLost;
    this.soon(0);
  }

  /** Calls back once the coordinator has all rows of a task that has ended; at once where it has none. */
  whenComplete(task: TaskRef, done: () => void): void {
    const of = this.tasks.get(taskKey(task));
    if (of === undefined || of.isComplete) done();
    else of.onComplete.push(done);
  }

  forget(task: TaskRef): void {
    this.tasks.delete(taskKey(task));
  }

  close(): void {
    this.closed = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.stream?.cancel();
    this.stream = null;
  }

  private rowsOf(task: TaskRef): TaskRows {
    const key = taskKey(task);
    let of = this.tasks.get(key);
    if (of === undefined) {
      of = {
        task,
        rows: new WaitingRows(),
        isKnown: false,
        isInFlight: false,
        hasEnded: false,
        isLost: false,
        isComplete: false,
        pausedUntilMs: Number.NEGATIVE_INFINITY,
        isThinned: false,
        onComplete: [],
      };
      this.tasks.set(key, of);
    }
    return of;
  }

  /** @param rowsMax how many stay, of those but the `newest` */
  private thin(of: TaskRows, rowsMax: number, newest: number): void {
    if (of.rows.thin(rowsMax, newest) === 0 || of.isThinned) return;
    of.isThinned = true;
    this.parts.log.warn(
      { task: taskKey(of.task) },
      'metrics of a task come faster than the coordinator takes them: rows are dropped, but the ends and extremes of each metric',
    );
  }

  private soon(ms: number): void {
    if (this.closed) return;
    if (this.timer !== null && ms > 0) return;
    if (this.timer !== null) clearTimeout(this.timer);
    // While the coordinator is away, all rows wait for the next attempt to connect.
    const waitMs =
      this.failures === 0 ? ms : uploadWaitMs(reconnect, this.failures, this.failure, this.parts.chance());
    this.timer = setTimeout(() => {
      this.timer = null;
      this.sendAll();
    }, waitMs);
  }

  private sendAll(): void {
    const nowMs = this.parts.monotonicMs();
    let soonestMs = Number.POSITIVE_INFINITY;
    for (const of of this.tasks.values()) {
      if (of.isInFlight || of.isComplete || !hasUnsent(of)) continue;
      if (of.pausedUntilMs > nowMs) soonestMs = Math.min(soonestMs, of.pausedUntilMs - nowMs);
      else this.send(of);
    }
    if (soonestMs < Number.POSITIVE_INFINITY) this.soon(Math.max(gatherMs, soonestMs));
  }

  private send(of: TaskRows): void {
    const stream = this.connect();
    of.isInFlight = true;
    const task = taskRefToWire(of.task);
    if (!of.isKnown) {
      stream.write({ task });
      return;
    }
    const { rows, printed, unreadBytes, isLast } = of.rows.batch(batchRows);
    const complete = of.hasEnded && isLast;
    const counted = { printed: valueCountsToWire(printed), unreadBytes };
    stream.write({
      task,
      rows: rows.map(trainingRowToWire),
      complete,
      lost: complete && of.isLost,
      ...counted,
    });
  }

  private connect(): RowStream {
    if (this.stream !== null) return this.stream;
    const stream = this.parts.openStream();
    this.stream = stream;
    stream.on('data', (ack: RowUploadAck__Output) => {
      if (this.stream === stream) this.acknowledged(ack);
    });
    stream.on('error', (error: Error) => {
      if (this.stream === stream) this.disconnected(error);
    });
    stream.on('end', () => {
      if (this.stream === stream) this.disconnected(new Error('the coordinator ended the upload of metrics'));
    });
    return stream;
  }

  private acknowledged(ack: RowUploadAck__Output): void {
    const { task: wire, position, complete, retryAfterMs, tooFast } = ack;
    this.failures = 0;
    const task = taskRefFromWire(wire);
    const of = task === null ? undefined : this.tasks.get(taskKey(task));
    if (of === undefined) return;
    of.isInFlight = false;
    if (retryAfterMs > 0) {
      of.rows.refused();
      if (tooFast) this.thin(of, behindMax, 0);
      of.pausedUntilMs = this.parts.monotonicMs() + retryAfterMs;
      this.soon(retryAfterMs);
      return;
    }
    of.isKnown = true;
    of.rows.acknowledged(position, receivedBy(ack));
    if (complete) {
      of.isComplete = true;
      for (const done of of.onComplete.splice(0)) done();
    } else if (of.rows.length >= batchRows || of.hasEnded) {
      this.send(of);
    } else if (of.rows.length > 0) {
      this.soon(gatherMs);
    }
  }

  private disconnected(error: Error): void {
    const { stream } = this;
    this.stream = null;
    stream?.cancel();
    if (this.closed) return;
    for (const of of this.tasks.values()) {
      of.isInFlight = false;
      of.isKnown = false;
    }
    this.failures += 1;
    this.failure = error;
    if (this.failures === 1)
      this.parts.log.warn(
        { error: messageOf(error) },
        'metrics cannot be uploaded now; they wait until they can',
      );
    this.soon(gatherMs);
  }
}

function receivedBy({ received }: RowUploadAck__Output): PrintedValues | null {
  if (received === null) return null;
  return { printed: valueCountsFromWire(received.printed), unreadBytes: received.unreadBytes };
}

function hasUnsent({ rows, hasEnded }: TaskRows): boolean {
  return rows.length > 0 || hasEnded;
}
