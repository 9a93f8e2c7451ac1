/** A file of a checkpoint while it is read. Reads block: verification has a process of its own. */

import type { Hash } from 'node:crypto';
import { readSync } from 'node:fs';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { crc32 } from 'node:zlib';

/** What is in it can never be loaded. The message is a predicate: `is empty`. */
export class CorruptFile extends Error {
  override readonly name = 'CorruptFile';
}

/** The content cannot be judged. The message is a predicate: `is encrypted`. */
export class OpaqueFile extends Error {
  override readonly name = 'OpaqueFile';
}

/** It is another one than a moment ago: nothing that was found out about it counts. */
export class ChangingFile extends Error {
  override readonly name = 'ChangingFile';
}

export interface OpenedFile {
  /** Last part of its path. */
  readonly name: string;
  readonly descriptor: number;
  /** Where in the descriptor it begins: 0, or somewhere inside for one of several pieces of a file. */
  readonly start: number;
  readonly bytes: number;
}

/** A piece of a file, to be looked at as if it were a file of its own. @param end after `start`, inside of the file */
export function pieceOf({ name, descriptor, start }: OpenedFile, from: number, end: number): OpenedFile {
  return { name, descriptor, start: start + from, bytes: end - from };
}

/** @throws {ChangingFile} when it has become shorter */
export function readFully({ descriptor, start }: OpenedFile, target: Uint8Array, position: number): void {
  let done = 0;
  while (done < target.length) {
    const read = readSync(descriptor, target, done, target.length - done, start + position + done);
    if (read === 0) throw new ChangingFile('became shorter');
    done += read;
  }
}

/** @param length small: it is allocated. Cut where the file ends */
export function readPart(file: OpenedFile, position: number, length: number): Buffer {
  const part = Buffer.alloc(Math.max(0, Math.min(length, file.bytes - position)));
  readFully(file, part, position);
  return part;
}

/** Longer, and a timer fires at once. */
const timerMaxMs = 2 ** 31 - 1;

/** How fast a verification reads, and whether it continues. */
export class ReadPace {
  private readonly signal: AbortSignal | undefined;
  private readonly bytesPerSecondMax: number | undefined;

  constructor({
    signal,
    bytesPerSecondMax,
  }: { readonly signal?: AbortSignal; readonly bytesPerSecondMax?: number }) {
    this.signal = signal;
    this.bytesPerSecondMax = bytesPerSecondMax;
  }

  /**
   * Lets others have their turn, and waits as long as so many bytes take at the highest rate; the reading itself comes on
   * top, so the rate is never reached. @throws the signal's reason
   */
  async spend(bytes: number): Promise<void> {
    this.signal?.throwIfAborted();
    if (this.bytesPerSecondMax === undefined) await turn();
    else await this.wait(Math.min(timerMaxMs, (bytes / this.bytesPerSecondMax) * 1_000));
    this.signal?.throwIfAborted();
  }

  private async wait(ms: number): Promise<void> {
    // An abort is thrown afterwards, with its reason and not with the timer's error.
    await delay(ms, undefined, this.signal === undefined ? {} : { signal: this.signal }).catch(() => {});
  }
}

/** Bytes from `start` up to `end`, and what CRC-32 they have to have. */
export interface SummedRange {
  readonly what: string;
  readonly start: number;
  readonly end: number;
  readonly crc: number;
}

/** The size of the buffer for `readContents`. Where all files are smaller, less will do: V8 collects garbage after some such buffers. */
export const chunkBytes = 4 * 1024 * 1024;
export const chunkBytesMin = 64 * 1024;

/**
 * Reads every byte of a file once, from the beginning to the end: into the digest of the checkpoint, and into the sums that the
 * format keeps of parts of it. SHA-256 and CRC-32 together cost less than reading from most disks (bench/checkpointVerify.ts).
 * @param ranges none overlaps another
 * @param buffer one for all files of a checkpoint
 * @returns the first range whose sum is wrong, as a predicate of the file, and then the rest of it is not read; null: none
 * @throws {ChangingFile} and the signal's reason
 */
export async function readContents(
  file: OpenedFile,
  ranges: readonly SummedRange[],
  digest: Hash,
  pace: ReadPace,
  buffer: Buffer,
): Promise<string | null> {
  const inOrder = ranges.toSorted((a, b) => a.start - b.start);
  let next = 0;
  let crc = 0;
  for (let at = 0; at < file.bytes; ) {
    const chunk = buffer.subarray(0, Math.min(buffer.length, file.bytes - at));
    readFully(file, chunk, at);
    digest.update(chunk);
    const chunkEnd = at + chunk.length;
    for (let range = inOrder[next]; range !== undefined && range.start < chunkEnd; range = inOrder[next]) {
      const part = chunk.subarray(Math.max(range.start, at) - at, Math.min(range.end, chunkEnd) - at);
      crc = crc32(part, crc);
      if (range.end > chunkEnd) break;
      if (crc !== range.crc) return wrongSum(range, crc);
      next += 1;
      crc = 0;
    }
    at = chunkEnd;
    await pace.spend(chunk.length);
  }
  return null;
}

function wrongSum({ what, crc }: SummedRange, found: number): string {
  const hexadecimal = (sum: number) => sum.toString(16).padStart(8, '0');
  return `is damaged: ${what} has the CRC-32 ${hexadecimal(found)} and was written with ${hexadecimal(crc)}`;
}
