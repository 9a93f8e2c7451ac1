/**
 * The output of tasks, in `logs/<job>/`. The files of each show how much of it has arrived (segments.ts), so nothing else
 * has to be remembered: an agent asks at which position to continue.
 *
 * Of one task no more is kept than the cap: its first half from the beginning, and of the rest the end, in short files of
 * which the oldest goes when another begins.
 */
import { fstatSync } from 'node:fs';
import { mkdir, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type JobId, type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import { InOrder } from '../work/inOrder.ts';
import {
  bytesIn,
  bytesOfAll,
  endOf,
  type Gap,
  ifThere,
  type LossReason,
  lastOf,
  noteOnce,
  type OutputLossKind,
  openToWrite,
  type Segment,
  segmentName,
  segmentsIn,
  segmentsOf,
  syncLogDirectory,
  type Target,
} from './segments.ts';
import { tailOffset } from './tail.ts';

export interface LogStoreOptions {
  /** Bytes kept of one task; Infinity: all. */
  readonly capBytes: number;
  /** Output of a task was dropped for the first time. */
  readonly onTruncated: (task: TaskRef, reason: LossReason) => void;
}

/** Output whose end never comes, because its node is gone, must not hold a descriptor for ever. */
const openFilesMax = 512;
/** Tasks of whose files the names are kept in mind. */
const layoutsMax = 4_096;
/** Tasks that are still written and whose files were closed for others: how much each has is remembered. */
const setAsideMax = 16_384;
/** Files that hold the end of one task's output. */
const tailSegmentsMax = 8;

export class LogStore {
  private readonly directory: string;
  private readonly options: LogStoreOptions;
  /** Least recently written first. */
  private readonly open = new Map<TaskKey, Target>();
  /** Bytes of tasks whose file was closed to open another one's; more of them may come. */
  private readonly setAside = new Map<TaskKey, number>();
  private readonly layouts = new Map<TaskKey, readonly Segment[]>();
  private readonly listeners = new Map<TaskKey, Set<() => void>>();
  private readonly order = new InOrder<TaskKey>();
  private written = 0;

  /** @param directory absolute; made when first needed */
  constructor(directory: string, options: Partial<LogStoreOptions> = {}) {
    this.directory = directory;
    this.options = { capBytes: Number.POSITIVE_INFINITY, onTruncated: () => {}, ...options };
  }

  /** Where the output of a job's tasks lies, or will. */
  directoryOf(jobId: JobId): string {
    return join(this.directory, jobId);
  }

  /** Where all of them do. */
  get root(): string {
    return this.directory;
  }

  /** Bytes written less bytes removed since it was opened. */
  get grownBytes(): number {
    return this.written;
  }

  /** Of a task whose output is being written; 0: none is. */
  writtenBytes(task: TaskRef): number {
    const target = this.open.get(taskKey(task));
    return target === undefined ? (this.setAside.get(taskKey(task)) ?? 0) : bytesOfAll(target);
  }

  /** Tasks whose output is being written. */
  get writtenCount(): number {
    return this.open.size + this.setAside.size;
  }

  /** How much of the end of a task's output is of use; null: all of it. */
  wantedTail(task: TaskRef): number | null {
    const target = this.open.get(taskKey(task));
    return target === undefined || target.segments.length < 2 ? null : this.options.capBytes / 2;
  }

  /**
   * Writes what fits at the end. Bytes that are there already are skipped, a gap is refused.
   * @param follows what is missing before `offset` was dropped on the node, and will not come
   * @returns the offset to continue from
   */
  append(task: TaskRef, offset: number, data: Uint8Array, follows = false): Promise<number> {
    return this.order.run(taskKey(task), async () => {
      const target = await this.target(task);
      if (follows && offset > endOf(target))
        await this.beginSegment(target, { start: offset, reason: 'node' });
      const skip = endOf(target) - offset;
      if (skip < 0 || skip >= data.length) return endOf(target);
      await this.keepToCap(target, data.length - skip);
      // A disk that fills up takes a part and reports its length; only that part has arrived.
      const { bytesWritten } = await target.file.write(data, skip, data.length - skip, target.size);
      target.size += bytesWritten;
      this.written += bytesWritten;
      for (const listener of this.listeners.get(taskKey(task)) ?? []) listener();
      return endOf(target);
    });
  }

  /**
   * The agent has reported that the output ends at `size`.
   * @returns whether all of it is here and synced to disk, so that the agent may delete its copy
   * @throws what the sync met; what was written to the last file is then dropped, and has to be sent again
   */
  complete(task: TaskRef, size: number): Promise<boolean> {
    return this.order.run(taskKey(task), async () => {
      if (size === 0) return true;
      const target = await this.target(task);
      if (endOf(target) < size) return false;
      try {
        await this.sync(target);
      } finally {
        await this.release(target);
      }
      // A new file is on disk only when its names are, too.
      await syncLogDirectory(this.directoryOf(task.jobId));
      await syncLogDirectory(this.directory);
      return true;
    });
  }

  /** Where the output that has arrived ends. */
  async size(task: TaskRef): Promise<number> {
    const target = this.open.get(taskKey(task));
    if (target !== undefined) return endOf(target);
    const last = (await this.layout(task)).at(-1);
    return last === undefined ? 0 : last.start + (await this.bytesOf(task, last));
  }

  /** Bytes from `offset`, at most `limit`; empty at the end, and where output was dropped (`gapAt`). */
  async read(task: TaskRef, offset: number, limit: number): Promise<Uint8Array> {
    const segment = (await this.layout(task)).findLast(({ start }) => start <= offset);
    if (segment === undefined) return new Uint8Array(0);
    const at = offset - segment.start;
    const length = Math.min(limit, (await this.bytesOf(task, segment)) - at);
    if (length <= 0) return new Uint8Array(0);
    const file = await ifThere(open(this.path(task, segment), 'r'), null);
    if (file === null) {
      // Removed meanwhile: the next read finds the gap.
      this.layouts.delete(taskKey(task));
      return new Uint8Array(0);
    }
    await using opened = file;
    const buffer = Buffer.allocUnsafe(length);
    const { bytesRead } = await opened.read(buffer, 0, length, at);
    return buffer.subarray(0, bytesRead);
  }

  /** Whether output was dropped at a position where there is nothing to read. null: there is none (yet). */
  async gapAt(task: TaskRef, offset: number): Promise<Gap | null> {
    const segments = await this.layout(task);
    const next = segments.find(({ start }) => start > offset);
    if (next?.reason == null) return null;
    const before = segments.findLast(({ start }) => start <= offset);
    const isGap = before === undefined || before.start + (await this.bytesOf(task, before)) <= offset;
    return isGap ? { to: next.start, reason: next.reason } : null;
  }

  /** Why there is nothing at a position, by a fresh look at the disk, and not even a file before it. null: there may be. */
  async lossAt(task: TaskRef, offset: number): Promise<LossReason | null> {
    if (this.open.has(taskKey(task))) return null;
    const all = await segmentsIn(this.directoryOf(task.jobId));
    const own = all.filter(({ attempt, nodeRank }) => attempt === task.attempt && nodeRank === task.nodeRank);
    return own.some(({ start }) => start <= offset) ? null : (own[0]?.reason ?? 'removed');
  }

  /** Where the last `lines` lines begin. When there are fewer: where the output begins, or begins after its last gap. */
  async tailOffset(task: TaskRef, lines: number): Promise<number> {
    return tailOffset(
      lines,
      await this.size(task),
      (offset, limit) => this.read(task, offset, limit),
      (await this.layout(task)).map(({ start }) => start),
    );
  }

  /** Calls back after each append; the returned function ends that. */
  watch(task: TaskRef, listener: () => void): () => void {
    const key = taskKey(task);
    const listeners = this.listeners.get(key) ?? new Set();
    listeners.add(listener);
    this.listeners.set(key, listeners);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.listeners.delete(key);
    };
  }

  /** @returns whether this is reported of a task for the first time, also over restarts */
  noteOnce(task: TaskRef, what: OutputLossKind): Promise<boolean> {
    return noteOnce(this.directoryOf(task.jobId), task, what);
  }

  /**
   * Removes the stored output of a job, and frees its space at once. Later output continues at the offset where this ended.
   * @param before only of attempts with lower numbers
   * @returns bytes freed
   */
  async clear(jobId: JobId, reason: LossReason, before = Number.POSITIVE_INFINITY): Promise<number> {
    const segments = await segmentsIn(this.directoryOf(jobId));
    const cleared = segments.filter(({ attempt }) => attempt < before);
    const tasks = new Map(
      cleared.map(({ attempt, nodeRank }) => {
        const task: TaskRef = { jobId, attempt, nodeRank };
        return [taskKey(task), task] as const;
      }),
    );
    let freed = 0;
    for (const task of tasks.values())
      freed += await this.order.run(taskKey(task), () => this.clearTask(task, reason));
    return freed;
  }

  /** Of a job that nobody knows any longer: its directory and all that is in it. @returns bytes of output freed */
  async remove(jobId: JobId): Promise<number> {
    const freed = await this.clear(jobId, 'removed');
    for (const key of Array.from(this.layouts.keys()))
      if (key.startsWith(`${jobId}.`)) this.layouts.delete(key);
    await rm(this.directoryOf(jobId), { recursive: true, force: true });
    return freed;
  }

  /**
   * Closes files that somebody has removed from the directory: only then is their space freed. The output of their tasks
   * continues at the same offset.
   */
  async dropRemoved(): Promise<void> {
    const removed = [...this.open.values()].filter(
      // A file that is being closed for the next one of its task has no descriptor any longer.
      ({ file }) => file.fd >= 0 && fstatSync(file.fd).nlink === 0,
    );
    for (const { task } of removed)
      await this.order.run(taskKey(task), () => this.clearTask(task, 'removed'));
  }

  async close(): Promise<void> {
    await this.order.settled();
    await Promise.all([...this.open.values()].map(({ file }) => file.close()));
    this.open.clear();
  }

  private path(task: TaskRef, segment: Segment): string {
    return join(this.directoryOf(task.jobId), segmentName(task, segment));
  }

  private async bytesOf(task: TaskRef, segment: Segment): Promise<number> {
    const target = this.open.get(taskKey(task));
    if (target?.segments.at(-1)?.start === segment.start) return target.size;
    return bytesIn(this.directoryOf(task.jobId), task, segment);
  }

  private async layout(task: TaskRef): Promise<readonly Segment[]> {
    const key = taskKey(task);
    const known = this.open.get(key)?.segments ?? this.layouts.get(key);
    if (known !== undefined) return known;
    const found = await segmentsOf(this.directoryOf(task.jobId), task);
    const written = this.open.get(key)?.segments;
    if (written !== undefined) return written;
    this.layouts.set(key, found);
    for (const oldest of this.layouts.keys()) {
      if (this.layouts.size <= layoutsMax) break;
      this.layouts.delete(oldest);
    }
    return found;
  }

  private async target(task: TaskRef): Promise<Target> {
    const key = taskKey(task);
    const present = this.open.get(key);
    if (present !== undefined) {
      this.open.delete(key);
      this.open.set(key, present);
      return present;
    }
    const directory = this.directoryOf(task.jobId);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const segments = await segmentsOf(directory, task);
    const earlier = segments.slice(0, -1);
    const sizes = await Promise.all(earlier.map((segment) => bytesIn(directory, task, segment)));
    const file = await openToWrite(this.path(task, lastOf(segments)));
    const earlierBytes = sizes.reduce((sum, size) => sum + size, 0);
    const target = { task, segments, earlierBytes, file, size: (await file.stat()).size };
    this.layouts.delete(key);
    this.setAside.delete(key);
    this.open.set(key, target);
    const [oldest] = this.open.values();
    if (oldest !== undefined && this.open.size > openFilesMax)
      void this.order.run(taskKey(oldest.task), () => this.putAside(oldest)).catch(() => {});
    return target;
  }

  private async putAside(target: Target): Promise<void> {
    const key = taskKey(target.task);
    // It was completed or cleared meanwhile.
    if (this.open.get(key) !== target) return;
    // Before its file is closed, so that it is counted at every moment.
    this.setAside.set(key, bytesOfAll(target));
    await this.release(target);
    const [oldest] = this.setAside.keys();
    if (oldest !== undefined && this.setAside.size > setAsideMax) this.setAside.delete(oldest);
  }

  /** Before more is written: another file when the last one is full, and without the oldest where there are enough. */
  private async keepToCap(target: Target, bytes: number): Promise<void> {
    const { capBytes } = this.options;
    const isFirst = target.segments.length === 1;
    const fullBytes = isFirst ? capBytes / 2 : capBytes / 2 / tailSegmentsMax;
    if (target.size === 0 || target.size + bytes <= fullBytes) return;
    await this.sync(target);
    await this.beginSegment(target, { start: endOf(target), reason: 'cap' });
  }

  private async beginSegment(target: Target, segment: Segment): Promise<void> {
    const hasGap = segment.start > endOf(target);
    const file = await openToWrite(this.path(target.task, segment));
    await target.file.close();
    target.earlierBytes += target.size;
    target.segments = [...target.segments, segment];
    target.file = file;
    target.size = 0;
    if (hasGap && segment.reason !== null) await this.truncated(target.task, segment.reason);
    if (target.segments.length > tailSegmentsMax + 1) await this.dropOldest(target);
  }

  /** Of those behind the first. */
  private async dropOldest(target: Target): Promise<void> {
    const [, oldest] = target.segments;
    if (oldest === undefined) return;
    const bytes = await this.bytesOf(target.task, oldest);
    await rm(this.path(target.task, oldest), { force: true });
    target.segments = target.segments.filter((segment) => segment !== oldest);
    target.earlierBytes -= bytes;
    this.written -= bytes;
    await this.truncated(target.task, 'cap');
  }

  private async truncated(task: TaskRef, reason: LossReason): Promise<void> {
    if (await this.noteOnce(task, 'truncated')) this.options.onTruncated(task, reason);
  }

  private async sync(target: Target): Promise<void> {
    try {
      await target.file.datasync();
    } catch (error) {
      // The kernel reports a failed sync once and then takes the lost pages for clean: asked again, it would lie.
      await target.file.truncate(0).catch(() => {});
      this.written -= target.size;
      target.size = 0;
      throw error;
    }
  }

  /** Later output begins where this ended: the name of an empty file has that position, and why nothing precedes it. */
  private async clearTask(task: TaskRef, reason: LossReason): Promise<number> {
    const target = await this.target(task);
    const end = endOf(target);
    const freed = bytesOfAll(target);
    await this.release(target);
    if (freed === 0) return 0;
    const rest: Segment = { start: end, reason };
    // First: whoever reads meanwhile must find either the output or that it was removed, and not an empty directory.
    await mkdir(this.directoryOf(task.jobId), { recursive: true, mode: 0o700 });
    await writeFile(this.path(task, rest), '', { mode: 0o600 });
    for (const segment of target.segments)
      if (this.path(task, segment) !== this.path(task, rest))
        await rm(this.path(task, segment), { force: true });
    this.written -= freed;
    this.layouts.delete(taskKey(task));
    for (const listener of this.listeners.get(taskKey(task)) ?? []) listener();
    return freed;
  }

  private async release(target: Target): Promise<void> {
    const key = taskKey(target.task);
    if (this.open.get(key) !== target) return;
    this.open.delete(key);
    await target.file.close();
  }
}
