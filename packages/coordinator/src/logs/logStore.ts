/**
 * The output of tasks, one file each: `logs/<job>/<attempt>.<rank>.log`. The file's size is the truth about how much
 * has arrived, so nothing else has to be remembered: an agent asks where to go on and is told the size.
 */
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { TaskRef } from '@muster/common/ids';
import { taskKey } from '@muster/common/ids';

export class LogStore {
  private readonly directory: string;
  /** Files being written; their sizes are kept here, so that appending needs no look at the disk. */
  private readonly open = new Map<string, { readonly file: FileHandle; size: number }>();
  private readonly listeners = new Map<string, Set<() => void>>();
  private readonly queues = new Map<string, Promise<unknown>>();

  /** @param directory absolute; made when first needed */
  constructor(directory: string) {
    this.directory = directory;
  }

  private path(task: TaskRef): string {
    return join(this.directory, task.jobId, `${task.attempt}.${task.nodeRank}.log`);
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
      const fresh = data.subarray(skip);
      await target.file.writev([fresh], target.size);
      target.size += fresh.length;
      for (const listener of this.listeners.get(taskKey(task)) ?? []) listener();
      return target.size;
    });
  }

  /**
   * The agent says that the output ends at `size`.
   * @returns whether all of it is here and synced to disk, so that the agent may delete its copy
   */
  complete(task: TaskRef, size: number): Promise<boolean> {
    return this.inOrder(task, async () => {
      if (size === 0) return true;
      const target = await this.target(task);
      if (target.size < size) return false;
      await target.file.datasync();
      await target.file.close();
      this.open.delete(taskKey(task));
      return true;
    });
  }

  /** Bytes that have arrived. */
  async size(task: TaskRef): Promise<number> {
    const target = this.open.get(taskKey(task));
    if (target !== undefined) return target.size;
    try {
      return (await stat(this.path(task))).size;
    } catch {
      return 0;
    }
  }

  /** Bytes from `offset`, at most `limit`; empty at the end. */
  async read(task: TaskRef, offset: number, limit: number): Promise<Uint8Array> {
    if (offset >= (await this.size(task))) return new Uint8Array(0);
    const file = await open(this.path(task), 'r');
    try {
      const buffer = Buffer.allocUnsafe(limit);
      const { bytesRead } = await file.read(buffer, 0, limit, offset);
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

  private async target(task: TaskRef): Promise<{ readonly file: FileHandle; size: number }> {
    const key = taskKey(task);
    const present = this.open.get(key);
    if (present !== undefined) return present;
    const path = this.path(task);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const file = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    const target = { file, size: (await file.stat()).size };
    this.open.set(key, target);
    return target;
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

/** Size of one read: large enough to be quick, small enough to hold many at once. */
export const readBytes = 64 * 1024;
