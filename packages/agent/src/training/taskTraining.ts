/**
 * Follows what the tasks of this node print: how far their training is, what is wrong with it, and whether it still makes
 * progress.
 *
 * One reader takes turns over all tasks, a slice each, and everybody else has the event loop while it waits for the next one:
 * no output, however much there is of it, holds up a heartbeat, and no more than one slice of one task is in memory. Output
 * from before this agent started is read from its beginning anyway, in the background, because totals and trends need it.
 */

import { messageOf } from '@muster/common/errors';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { TrainingFields } from '@muster/common/logFields';
import type { HangSign, TrainingProgress } from '@muster/common/training';
import type { GpuObservation } from '../gpus/gpuSource.ts';
import { gpuFacts } from './gpuStillness.ts';
import { HangDetector } from './hang.ts';
import { OutputFollower, type OutputTimes, outputSliceBytes } from './outputFollower.ts';
import { TaskOutput } from './taskOutput.ts';
import type { TaskTrainingParts, TrainingTask } from './taskTrainingParts.ts';

const lookIntervalMsDefault = 250;
/**
 * Of one look: slices of one task and of all, and time, whatever stands in the lines. 4 MiB a second of one task and a fifth of a core;
 * where a task writes more than that, 12 MiB and a third of a core: lines that are not read are metrics that nobody knows.
 */
const usualPace = { slicesPerTask: 16, slicesPerLook: 32, msPerLook: 60 };
const hurriedPace = { slicesPerTask: 64, slicesPerLook: 128, msPerLook: 120 };
/** A task of which more is unread has its output read at the hurried pace. */
const hurryFromBytes = 2 * 1024 * 1024;
/** Between two lines of the log about one training. */
const reportIntervalMs = 60_000;
/** What is left to read of a task's output is never more than this; what is older is skipped, and counted. */
const backlogBytesMax = 64 * 1024 * 1024;

interface Followed {
  readonly task: TaskRef;
  readonly output: TaskOutput;
  readonly follower: OutputFollower;
  /** null: the hang settings of its job are not known. */
  readonly hang: HangDetector | null;
  /** What was there before this agent was: up to here it is not new. */
  historyBytes: number;
  /** Bytes in its output at the last look. */
  size: number;
  /** That look was after its end: there will not be more. */
  isFinalSize: boolean;
  /** MiB, of its GPUs together by the newest readings. null: nothing was read. */
  gpuMemoryUsedMb: number | null;
  /** Monotonic: when the log last reported how far its training is. */
  reportedAtMs: number;
  /** What is skipped and not read is reported once. */
  hasSkipped: boolean;
  hasFailed: boolean;
  /** Where the newest row ends, in bytes of the output. 0: there is none. */
  rowsEnd: number;
  /** The report of its end waits until its output is read. */
  isReportWaiting: boolean;
  /** When its output was begun and last written to, by the wall clock; what was written in between came evenly. */
  written: OutputTimes | null;
  /** The task has ended, and its output with it. */
  ending: PromiseWithResolvers<TrainingProgress | null> | null;
  hasEnded: boolean;
}

export class TaskTraining {
  private readonly parts: TaskTrainingParts;
  private readonly followed = new Map<TaskKey, Followed>();
  /** The only one: there is one reader. */
  private readonly slice = Buffer.allocUnsafe(outputSliceBytes);
  private timer: NodeJS.Timeout | null = null;
  private isReading = false;
  /** In this look. */
  private spentMs = 0;
  /** Asked for while the reader is at work. */
  private again = false;
  private isClosed = false;

  constructor(parts: TaskTrainingParts) {
    this.parts = parts;
  }

  /** Begins to follow. Tasks that run by now are those of an earlier agent. */
  async start(): Promise<void> {
    for (const running of this.parts.running()) {
      // One that has ended since then is being read to its end.
      if (this.followed.has(taskKey(running.task))) continue;
      const followed = this.follow(running.task, running);
      await this.measure(followed);
      followed.historyBytes = followed.size;
      followed.written = await followed.follower.times();
    }
    this.look();
  }

  /** null: its output shows none, or it is not known here. */
  progress(task: TaskRef): TrainingProgress | null {
    return this.followed.get(taskKey(task))?.output.progress ?? null;
  }

  /** For lines of the log. null: its output shows no training. */
  logFieldsOf(task: TaskRef): TrainingFields | null {
    const followed = this.followed.get(taskKey(task));
    const latest = followed?.output.progress?.latest;
    if (followed === undefined || latest === undefined) return null;
    const { epoch = null, step = null, train_loss: loss = null } = latest;
    return { epoch, step, loss, gpu_memory_used: followed.gpuMemoryUsedMb };
  }

  /** null: it makes progress, or it cannot be determined. */
  hang(task: TaskRef): HangSign | null {
    const followed = this.followed.get(taskKey(task));
    if (followed === undefined || followed.ending !== null || followed.hasEnded) return null;
    return followed.hang?.verdict(this.parts.monotonicMs()) ?? null;
  }

  /**
   * What the program printed around a step, by canonical name.
   * @param step null: the newest
   */
  metricsAt(task: TaskRef, step: number | null): Readonly<Record<string, number>> {
    return { ...this.followed.get(taskKey(task))?.output.metricsAt(step) };
  }

  /** Something of a checkpoint has grown, or one is complete: the task is at work, whatever it prints. */
  checkpointSeen(task: TaskRef): void {
    this.followed.get(taskKey(task))?.hang?.progressed(this.parts.monotonicMs());
  }

  /** What the GPUs do now. */
  observe({ samples, holders }: Pick<GpuObservation, 'samples' | 'holders'>): void {
    const nowMs = this.parts.monotonicMs();
    const usedMb = new Map<Followed, number>();
    for (const [uuid, task] of holders) {
      const sample = samples.get(uuid);
      const followed = this.followed.get(taskKey(task));
      if (sample === undefined || followed === undefined) continue;
      followed.hang?.gpuSampled(uuid, gpuFacts(sample), nowMs);
      const { memoryUsedMb } = sample;
      if (memoryUsedMb !== null) usedMb.set(followed, (usedMb.get(followed) ?? 0) + memoryUsedMb);
    }
    for (const [followed, mb] of usedMb) followed.gpuMemoryUsedMb = mb;
  }

  /** On a new connection: what was sent on the old one may not have arrived. */
  resend(): void {
    for (const { task, output } of this.followed.values()) {
      for (const sign of output.signs) this.parts.send({ kind: 'trainingSign', task, sign });
    }
  }

  /**
   * Nothing of the task runs any longer: reads the rest of its output, at most the last 64 MiB.
   * @returns where its training was. null: its output showed none, or could not be read
   */
  async finish(task: TaskRef): Promise<TrainingProgress | null> {
    if (this.isClosed) return this.progress(task);
    const followed = this.followed.get(taskKey(task)) ?? this.follow(task, null);
    // Most short tasks print nothing: none of them waits for the reader, which looks at all tasks.
    if (!followed.hasEnded && followed.follower.isEmpty) this.end(followed);
    if (followed.hasEnded) return followed.output.progress;
    followed.ending ??= Promise.withResolvers();
    const { promise } = followed.ending;
    this.look();
    return promise;
  }

  /** As `finish`, for the report of the end, which says where the rows end. `reportGoes` ends the wait. */
  async finishForReport(task: TaskRef): Promise<TrainingProgress | null> {
    const followed = this.followed.get(taskKey(task)) ?? this.follow(task, null);
    followed.isReportWaiting = true;
    return this.finish(task);
  }

  /**
   * The report of the end goes now. Rows that are read later end with a mark of their own.
   * @returns where the rows end, in bytes of the output; 0: there are none. null: the output is not read to its end
   */
  reportGoes(task: TaskRef): number | null {
    const followed = this.followed.get(taskKey(task));
    if (followed === undefined) return null;
    followed.isReportWaiting = false;
    return followed.hasEnded && !followed.hasFailed ? followed.rowsEnd : null;
  }

  /** Nothing more will be asked of a task. */
  forget(task: TaskRef): void {
    const followed = this.followed.get(taskKey(task));
    if (followed === undefined) return;
    this.followed.delete(taskKey(task));
    this.release(followed);
  }

  close(): void {
    this.isClosed = true;
    if (this.timer !== null) clearTimeout(this.timer);
    for (const followed of this.followed.values()) this.release(followed);
  }

  /** Reads what there is, then looks again in a while. */
  private look(): void {
    this.again = true;
    if (this.isClosed || this.isReading) return;
    this.isReading = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.readAll()
      .catch((error: unknown) =>
        this.parts.log.error({ error: messageOf(error) }, 'the output of tasks could not be followed'),
      )
      .finally(() => {
        this.isReading = false;
        const { lookIntervalMs = lookIntervalMsDefault } = this.parts;
        if (!this.isClosed) this.timer = setTimeout(() => this.look(), lookIntervalMs);
      });
  }

  private async readAll(): Promise<void> {
    while (this.again && !this.isClosed) {
      this.again = false;
      for (const running of this.parts.running()) {
        if (!this.followed.has(taskKey(running.task))) this.follow(running.task, running);
      }
      const unread = [...this.followed.values()].filter(({ hasEnded }) => !hasEnded);
      for (const each of unread) await this.measure(each);
      await this.takeTurns(unread);
    }
  }

  /** How much there is to read, and whether there is more than at the last look. */
  private async measure(followed: Followed): Promise<void> {
    const { task, hang } = followed;
    const nowMs = this.parts.monotonicMs();
    followed.isFinalSize = followed.ending !== null;
    hang?.look(nowMs, this.parts.isFrozen(task));
    try {
      const size = await followed.follower.size();
      if (size !== followed.size) hang?.progressed(nowMs);
      followed.size = size;
    } catch (error) {
      this.failed(followed, error);
    }
  }

  /** Each has its slice in turn. Those that have ended are waited for, and are read to their end. */
  private async takeTurns(unread: readonly Followed[]): Promise<void> {
    const isHurried = unread.some(({ size, follower }) => size - follower.read > hurryFromBytes);
    const { slicesPerTask, slicesPerLook, msPerLook } = isHurried ? hurriedPace : usualPace;
    let left = slicesPerLook;
    this.spentMs = 0;
    for (let turn = 0, hasMore = true; hasMore; turn += 1) {
      hasMore = false;
      for (const each of unread) {
        if (this.isClosed) return;
        // The first turn is everybody's, however many tasks there are.
        const isDue =
          each.isFinalSize || turn === 0 || (turn < slicesPerTask && left > 0 && this.spentMs < msPerLook);
        if (each.hasEnded || !isDue) continue;
        if (await this.readSlice(each)) {
          left -= 1;
          hasMore = true;
        } else if (each.isFinalSize) this.end(each);
      }
      // Another one has ended: it is not to wait until all of a flood has been read.
      if (this.again) return;
    }
  }

  /** @returns whether anything was read */
  private async readSlice(followed: Followed): Promise<boolean> {
    const { follower, size } = followed;
    try {
      const bytes = await follower.readSlice(this.slice, size, backlogBytesMax);
      return bytes > 0;
    } catch (error) {
      this.failed(followed, error);
      return false;
    }
  }

  private end(followed: Followed): void {
    followed.output.end();
    followed.hasEnded = true;
    this.release(followed);
    const isLost = followed.hasFailed;
    this.parts.rows.ended(followed.task, { isReported: followed.isReportWaiting && !isLost, isLost });
  }

  private release({ follower, ending, output }: Followed): void {
    follower.close();
    ending?.resolve(output.progress);
  }

  /** @param running null: it no longer runs */
  private follow(task: TaskRef, running: TrainingTask | null): Followed {
    const hang = running === null ? null : hangWatch(running);
    const now = () => this.parts.monotonicMs();
    const output = new TaskOutput({
      task,
      resume: this.parts.resumeOf(task),
      onSign: (sign) => this.parts.send({ kind: 'trainingSign', task, sign }),
      onLine: ({ rank }) => {
        if (rank !== null) hang?.rankSpoke(rank, now());
      },
      onStep: () => hang?.stepPrinted(),
      onRow: (row, isChange) => {
        followed.rowsEnd = Math.max(followed.rowsEnd, row.position);
        this.parts.rows.add(task, { ...row, atMs: this.timeOf(followed, row.position, isChange) });
        if (isChange) this.report(followed);
      },
    });
    const follower: OutputFollower = new OutputFollower({
      path: this.parts.outputPathOf(task),
      onBytes: (bytes) => {
        const startedAtMs = now();
        const isChange = follower.read > followed.historyBytes;
        output.feed(bytes, this.parts.wallMs(), isChange, follower.read - bytes.length);
        this.spentMs += now() - startedAtMs;
      },
      onSkipped: (bytes) => {
        output.skip();
        this.skipped(followed, bytes);
      },
      onStartedOver: () => {
        followed.historyBytes = 0;
        output.startOver();
      },
    });
    const followed: Followed = {
      task,
      output,
      follower,
      hang,
      historyBytes: 0,
      size: 0,
      isFinalSize: false,
      gpuMemoryUsedMb: null,
      reportedAtMs: Number.NEGATIVE_INFINITY,
      hasSkipped: false,
      hasFailed: false,
      rowsEnd: 0,
      isReportWaiting: false,
      written: null,
      ending: null,
      hasEnded: false,
    };
    this.followed.set(taskKey(task), followed);
    return followed;
  }

  /** When a line was printed: about now, or in proportion to where it stands in what was there before this agent was. */
  private timeOf({ written, historyBytes }: Followed, position: number, isChange: boolean): number {
    const nowMs = this.parts.wallMs();
    if (isChange || written === null) return nowMs;
    const { begunMs, lastMs } = written;
    const atMs = begunMs + (lastMs - begunMs) * Math.min(1, position / Math.max(1, historyBytes));
    return Math.round(Math.min(atMs, nowMs));
  }

  /** The logger adds where the training is. */
  private report(followed: Followed): void {
    const nowMs = this.parts.monotonicMs();
    if (nowMs - followed.reportedAtMs < reportIntervalMs) return;
    followed.reportedAtMs = nowMs;
    this.parts.log.info({ task: taskKey(followed.task) }, 'a task trains');
  }

  private skipped(followed: Followed, bytes: number): void {
    this.parts.rows.skipped(followed.task, bytes);
    if (followed.hasSkipped) return;
    followed.hasSkipped = true;
    this.parts.log.warn(
      { task: taskKey(followed.task), bytes },
      'a task writes more than is read for its metrics: lines of them are missing from here on',
    );
  }

  private failed(followed: Followed, error: unknown): void {
    if (followed.hasFailed) return;
    followed.hasFailed = true;
    this.parts.log.warn(
      { task: taskKey(followed.task), error: messageOf(error) },
      'the output of a task could not be read for its metrics',
    );
  }
}

function hangWatch({ assignment, gpuUuids }: TrainingTask): HangDetector | null {
  return assignment === null ? null : new HangDetector(assignment.spec.hang, gpuUuids);
}
