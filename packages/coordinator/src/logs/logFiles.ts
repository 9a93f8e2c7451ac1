/** Files of logs, as they are opened and synced. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { TaskRef } from '@muster/common/ids';
import type { Segment } from './segments.ts';

/** A task whose output is being written; sizes are kept here, so that appending needs no look at the disk. */
export interface Target {
  readonly task: TaskRef;
  /** In the order of their positions; the last one is written. */
  segments: readonly Segment[];
  /** Bytes in all of them but the last. */
  earlierBytes: number;
  file: FileHandle;
  /** Bytes in the last one. */
  size: number;
}

/** Kept of its output. */
export function bytesOfAll({ earlierBytes, size }: Target): number {
  return earlierBytes + size;
}

/** Where it goes on. */
export function endOf({ segments, size }: Target): number {
  return lastOf(segments).start + size;
}

export function lastOf(segments: readonly Segment[]): Segment {
  return segments.at(-1) ?? { start: 0, reason: null };
}

/** Made when it is not there; what is in it stays. */
export function openToWrite(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDWR | constants.O_CREAT, 0o600);
}

/** The names in it are on disk when this resolves. */
export async function syncLogDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
