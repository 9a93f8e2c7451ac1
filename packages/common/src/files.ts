/** Writing files so that a crash leaves either the old or the new content, never a part. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Temporary file, fsync, rename, fsync of the directory: there after a power cut, whole or not at all. */
export function writeFileDurably(path: string, content: string, mode: number): void {
  const temporary = `${path}.tmp`;
  const file = openFresh(temporary, mode);
  try {
    // Not writeSync: that may write a part, and says so only in its return value.
    writeFileSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
  syncDirectory(dirname(path));
}

/** The same without the wait for the disk: whole or not at all after a crash of the process. */
export function writeFileAtomically(path: string, content: string, mode: number): void {
  const temporary = `${path}.tmp`;
  const file = openFresh(temporary, mode);
  try {
    writeFileSync(file, content);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
}

/** What a crash has left there goes first; whatever else somebody may have put there, a link or a pipe, is never opened. */
function openFresh(path: string, mode: number): number {
  rmSync(path, { force: true });
  return openSync(path, 'wx', mode);
}

/** What was renamed or removed in it stays so after a power cut. */
export function syncDirectory(path: string): void {
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
