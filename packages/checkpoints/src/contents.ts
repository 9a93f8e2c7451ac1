/**
 * Every byte of a file once, from the beginning to the end: into the digest of the checkpoint, and into the sums that the
 * format keeps of parts of it. SHA-256 and CRC-32 together cost less than reading from most disks (bench/checkpointVerify.ts).
 */
import type { Hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { type OpenedFile, readFully } from './openedFile.ts';
import type { ReadPace } from './pace.ts';

/** Bytes from `start` up to `end`, and what CRC-32 they have to have. */
export interface SummedRange {
  readonly what: string;
  readonly start: number;
  readonly end: number;
  readonly crc: number;
}

export const chunkBytes = 4 * 1024 * 1024;

/**
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
