/**
 * A CRC-32 of every page of the database, in a file beside it, four bytes a page. SQLite keeps none itself: a flipped bit
 * in a page alters a row, or makes rows vanish from a query, without an error.
 *
 * The database file changes only when the write-ahead log is carried over into it, which only this program starts. The sums
 * are on disk before it begins; until it has ended, the pages concerned are in the log as well, and are not looked at here.
 */
import { fdatasyncSync, fstatSync, ftruncateSync, read as readFile, readSync, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';

/** Of one page. */
export const sumBytes = 4;
export const sliceBytes = 1024 * 1024;
/**
 * Read into again and again: a start compares hundreds of slices without a pause in which memory could be collected, and would be
 * larger by as many megabytes for as long as it runs.
 */
const slice = Buffer.allocUnsafe(sliceBytes);

export interface PageFiles {
  readonly database: number;
  readonly sums: number;
  /** Where the sums begin in their file; default: 0. */
  readonly sumsOffset?: number;
  readonly pageBytes: number;
}

/** @param sums by page number */
export function writePageSums(file: number, sums: ReadonlyMap<number, number>): void {
  const pages = [...sums.keys()].sort((a, b) => a - b);
  for (let from = 0; from < pages.length; ) {
    let to = from + 1;
    while (to < pages.length && pages[to] === (pages[to - 1] ?? 0) + 1) to += 1;
    const run = Buffer.alloc((to - from) * sumBytes);
    for (let index = from; index < to; index += 1)
      run.writeUInt32LE(sums.get(pages[index] ?? 0) ?? 0, (index - from) * sumBytes);
    const offset = ((pages[from] ?? 1) - 1) * sumBytes;
    if (writeSync(file, run, 0, run.length, offset) !== run.length)
      throw Object.assign(new Error('page sums were written in part'), { code: 'ENOSPC' });
    from = to;
  }
  fdatasyncSync(file);
}

/**
 * Of the database as it lies there.
 * @returns how many pages it has
 */
export function writeAllPageSums({ database, sums, pageBytes }: PageFiles): number {
  const pages = Math.floor(fstatSync(database).size / pageBytes);
  ftruncateSync(sums, 0);
  for (let first = 1; first <= pages; ) {
    const read = readSlice(database, first, pages, pageBytes);
    writePageSums(sums, new Map(sumsOf(read, pageBytes).map((sum, index) => [first + index, sum])));
    if (read.length === 0) throw new Error('the database became shorter while it was read');
    first += read.length / pageBytes;
  }
  return pages;
}

export interface Comparison {
  /** Pages that differ from their sums, or that are not there. */
  readonly differing: readonly number[];
  /** The page to continue with. */
  readonly next: number;
}

/**
 * Looks at some pages, a megabyte at most.
 * @param first from 1
 */
export function comparePages(files: PageFiles, first: number, last: number): Comparison {
  const count = pagesInSlice(files.pageBytes, first, last);
  const read = readSlice(files.database, first, last, files.pageBytes);
  const expected = Buffer.alloc(count * sumBytes);
  const offset = (files.sumsOffset ?? 0) + (first - 1) * sumBytes;
  const known = readSync(files.sums, expected, 0, expected.length, offset);
  return {
    differing: differences(sumsOf(read, files.pageBytes), expected.subarray(0, known), first, count),
    next: first + count,
  };
}

const readLater = promisify(readFile);

/**
 * The same without waiting for the disk. The files may change meanwhile: what differs has to be looked at again.
 * @param own of `sliceBytes`; nobody else's until this has ended
 */
export async function comparePagesLater(
  files: PageFiles,
  first: number,
  last: number,
  own: Buffer,
): Promise<Comparison> {
  const { database, sums, pageBytes } = files;
  const count = pagesInSlice(pageBytes, first, last);
  const expected = Buffer.alloc(count * sumBytes);
  const { bytesRead } = await readLater(database, own, 0, count * pageBytes, (first - 1) * pageBytes);
  const known = await readLater(sums, expected, 0, expected.length, (first - 1) * sumBytes);
  const found = sumsOf(own.subarray(0, bytesRead - (bytesRead % pageBytes)), pageBytes);
  return {
    differing: differences(found, expected.subarray(0, known.bytesRead), first, count),
    next: first + count,
  };
}

function differences(
  found: readonly number[],
  expected: Buffer,
  first: number,
  count: number,
): readonly number[] {
  const differing: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const offset = index * sumBytes;
    const isKnown = offset + sumBytes <= expected.length;
    if (!isKnown || found[index] !== expected.readUInt32LE(offset)) differing.push(first + index);
  }
  return differing;
}

function pagesInSlice(pageBytes: number, first: number, last: number): number {
  return Math.min(last - first + 1, Math.floor(sliceBytes / pageBytes));
}

/** Whole pages only; fewer than asked for where the file ends. Gone when the next slice is read. */
function readSlice(file: number, first: number, last: number, pageBytes: number): Buffer {
  const wanted = pagesInSlice(pageBytes, first, last) * pageBytes;
  const got = readSync(file, slice, 0, wanted, (first - 1) * pageBytes);
  return slice.subarray(0, got - (got % pageBytes));
}

function sumsOf(read: Buffer, pageBytes: number): readonly number[] {
  const sums: number[] = [];
  for (let offset = 0; offset < read.length; offset += pageBytes)
    sums.push(crc32(read.subarray(offset, offset + pageBytes)));
  return sums;
}
