/** Whether what is about to be written fits on a disk, and how much has to be freed where it does not. */
import { statfsSync } from 'node:fs';
import { CliError } from './errors.ts';
import { bytesText } from './output/times.ts';

const mebibyte = 1024 * 1024;

/** @throws {CliError} as `spaceMissing` returns it */
export function requireSpace(folder: string, bytes: number, what: string): void {
  const missing = spaceMissing(folder, bytes, what);
  if (missing !== null) throw missing;
}

/**
 * @param folder that exists
 * @param what needs the space, for the error
 * @returns null: it fits; else how much is free and how much is missing
 */
export function spaceMissing(folder: string, bytes: number, what: string): CliError | null {
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  // Folders and blocks that are not full take a little more.
  const needed = Math.ceil(bytes * 1.05) + 4 * mebibyte;
  if (free >= needed) return null;
  const missing = Math.ceil((needed - free) / mebibyte) * mebibyte;
  const sizes = `${folder} has ${bytesText(free)} free, and ${what} takes ${bytesText(needed)}`;
  return new CliError(`${sizes}: free at least ${bytesText(missing)}`, {
    code: 'resource_exhausted',
    hints: [
      `Nothing was changed. Which folders are large: du -xh --max-depth=2 ${folder} | sort -h | tail`,
      'Once there is room, the same command does the rest.',
    ],
  });
}

/** As `cat`, `mkdir`, `tar` and SQLite report it; `tar` may report no more than what it could not write. */
export function reportsFullDisk(text: string): boolean {
  return /No space left on device|no space left|Disk quota exceeded|Wrote only \d+ of \d+ bytes/.test(text);
}
