/**
 * The output of tasks, one file each: `logs/<job>/<attempt>.<rank>.log`. The file's size is the truth about how much
 * has arrived, so nothing else has to be remembered: an agent asks where to go on and is told the size.
 */
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type JobId, type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';

/** A file being written; its size is kept here, so that appending needs no look at the disk. */
interface Target {
  readonly task: TaskRef;
  readonly file: FileHandle;
  size: number;
}

/** Output whose end never comes, because its node is gone, must not hold a descriptor for ever. */
const openFilesMax = 512;

export class LogStore {
  private readonly directory: string;
  /** Least recently written first. */
  private readonly open = new Map<TaskKey, Target>();
  private readonly listeners = new Map<TaskKey, Set<() => void>>();
  private readonly queues = new Map<TaskKey, Promise<unknown>>();

  /** @param directory absolute; made when first needed */
  constructor(directory: string) {
    this.directory = directory;
  }

  /** Where the output of a job's tasks lies, or will. */
  directoryOf(jobId: JobId): string {
    return join(this.directory, jobId);
  }

  private path(task: TaskRef): string {
    return join(this.directoryOf(task.jobId), `${task.attempt}.${task.nodeRank}.log`);
  }

  /**
   * Writes what fits at the end. Bytes that are there already are skipped, a gap is refused.
   * @returns the offset to go on from
   */
  append(task: TaskRef, offset: number, data: Uint8Array): Promise<number> {
    return this.inOrder(task, async () => {
      const target = await this.target(task);
      const skip = target.size - offset;
      if (skip < 0 || skip >= data.length) return target.size;
      // A disk that fills up takes a part and says so; only what it took has arrived.
      const { bytesWritten } = await target.file.write(data, skip, data.length - skip, target.size);
      target.size += bytesWritten;
      for (const listener of this.listeners.get(taskKey(task)) ?? []) listener();
      return target.size;
    });
  }

  /**
   * The agent says that the output ends at `size`.
   * @returns whether all of it is here and synced to disk, so that the agent may delete its copy
   * @throws what the sync met; what was written is then dropped, and has to be sent again from the beginning
   */
  complete(task: TaskRef, size: number): Promise<boolean> {
    return this.inOrder(task, async () => {
      if (size === 0) return true;
      const target = await this.target(task);
      if (target.size < size) return false;
      try {
        await target.file.datasync();
      } catch (error) {
        // The kernel reports a failed sync once and then takes the lost pages for clean: asked again, it would lie.
        await target.file.truncate(0).catch(() => {});
        throw error;
      } finally {
        await this.release(target);
      }
      // A new file is on disk only when its names are, too.
      await syncDirectory(dirname(this.path(task)));
      await syncDirectory(this.directory);
      return true;
    });
  }

  /** Bytes that have arrived. */
  async size(task: TaskRef): Promise<number> {
    const target = this.open.get(taskKey(task));
    if (target !== undefined) return target.size;
    try {
      return (await stat(this.path(task))).size;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
      throw error;
    }
  }

  /** Bytes from `offset`, at most `limit`; empty at the end. */
  async read(task: TaskRef, offset: number, limit: number): Promise<Uint8Array> {
    const length = Math.min(limit, (await this.size(task)) - offset);
    if (length <= 0) return new Uint8Array(0);
    const file = await open(this.path(task), 'r');
    try {
      const buffer = Buffer.allocUnsafe(length);
      const { bytesRead } = await file.read(buffer, 0, length, offset);
      return buffer.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  }

  /** Where the last `lines` lines begin; 0 when there are fewer. */
  async tailOffset(task: TaskRef, lines: number): Promise<number> {
    const size = await this.size(task);
    const newline = 0x0a;
    let missing = lines;
    for (let end = size; end > 0; ) {
      const start = Math.max(0, end - readBytes);
      const piece = await this.read(task, start, end - start);
      // A newline at the very end closes the last line and begins none.
      for (let at = piece.length - 1; at >= 0; at -= 1) {
        if (piece[at] !== newline || start + at === size - 1) continue;
        missing -= 1;
        if (missing === 0) return start + at + 1;
      }
      end = start;
    }
    return 0;
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

  async close(): Promise<void> {
    await Promise.all(this.queues.values());
    await Promise.all([...this.open.values()].map(({ file }) => file.close()));
    this.open.clear();
  }

  private async target(task: TaskRef): Promise<Target> {
    const key = taskKey(task);
    const present = this.open.get(key);
    if (present !== undefined) {
      this.open.delete(key);
      this.open.set(key, present);
      return present;
    }
    const path = this.path(task);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const file = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    const target = { task, file, size: (await file.stat()).size };
    this.open.set(key, target);
    const [oldest] = this.open.values();
    if (oldest !== undefined && this.open.size > openFilesMax)
      void this.inOrder(oldest.task, () => this.release(oldest)).catch(() => {});
    return target;
  }

  private async release(target: Target): Promise<void> {
    const key = taskKey(target.task);
    if (this.open.get(key) !== target) return;
    this.open.delete(key);
    await target.file.close();
  }

  /** One thing at a time per task: two connections of one agent may overlap while the older one dies. */
  private inOrder<T>(task: TaskRef, work: () => Promise<T>): Promise<T> {
    const key = taskKey(task);
    const before = this.queues.get(key) ?? Promise.resolve();
    const result = before.then(work, work);
    const settled = result.then(
      () => undefined,
      () => undefined,
    );
    this.queues.set(key, settled);
    void settled.then(() => {
      if (this.queues.get(key) === settled) this.queues.delete(key);
    });
    return result;
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Size of one read: large enough to be quick, small enough to hold many at once. */
export const readBytes = 64 * 1024;
