/**
 * The file that a task writes its output to. The task can reach it too, so it may be cut, removed or replaced by
 * anything at any time, and none of that may hold up the output of other tasks.
 */
import { constants, fstatSync, lstatSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { Mask } from '../taskFacts/mask.ts';
import { withoutWaiting } from '../taskFacts/taskFile.ts';

/** @returns null when there is no such file, or something else in its place */
export async function openOutput(path: string): Promise<FileHandle | null> {
  try {
    const file = await open(path, constants.O_RDONLY | withoutWaiting);
    if (fstatSync(file.fd).isFile()) return file;
    await file.close();
    return null;
  } catch (error) {
    if (error instanceof Error && 'code' in error && gone.has(error.code)) return null;
    throw error;
  }
}

const gone: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP']);

/** Bytes in the file now. A system call and no thread: this is asked of every running task, many times a second. */
export function outputFileSize(file: FileHandle): number {
  return fstatSync(file.fd).size;
}

/** Whether there is no such file, or nothing in it. */
export function isOutputEmpty(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat === undefined || (stat.isFile() && stat.size === 0);
}

/** What is there from `offset`, at most `limit` bytes; empty at the end. */
export async function readOutput(file: FileHandle, offset: number, limit: number): Promise<Buffer> {
  const length = Math.min(limit, outputFileSize(file) - offset);
  if (length <= 0) return Buffer.alloc(0);
  const buffer = Buffer.allocUnsafe(length);
  const { bytesRead } = await file.read(buffer, 0, length, offset);
  return buffer.subarray(0, bytesRead);
}

/**
 * The same, with values hidden. Until the task has ended, what may be the beginning of a value is left for a later read.
 * @param size where the output ends; null: the task may still write
 */
export async function readMasked(
  file: FileHandle,
  offset: number,
  limit: number,
  mask: Pick<Mask, keyof Mask>,
  size: number | null,
): Promise<Buffer> {
  // A value may have begun before, and the part of it that was read then was hidden.
  const before = Math.min(offset, Math.max(0, mask.longest - 1));
  const bytes = await readOutput(file, offset - before, before + limit);
  const isEnd = size !== null && offset - before + bytes.length >= size;
  const end = bytes.length - (isEnd ? 0 : mask.unfinished(bytes));
  mask.hide(bytes);
  return bytes.subarray(before, Math.max(before, end));
}

/** It was only read: nothing is lost if the system cannot close it. */
export function closeOutput(file: FileHandle | null): void {
  file?.close().catch(() => {});
}
