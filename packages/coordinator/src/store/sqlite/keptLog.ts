/**
 * Keeps the blocks of the write-ahead log while no coordinator runs. SQLite deletes the log when it closes, and on a full disk another
 * program would have its blocks before the next start. A second name keeps the file; the next start gives it its name back.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import type { StorePaths } from './inspection.ts';

/** Size of the write-ahead log, bytes. It is carried over at half of this, so that the largest usual commit fits behind. */
export const logBytes = 8 * 1024 * 1024;
/** SQLite takes a log for an empty one when its header is not valid. */
const headerBytes = 32;

/** To be called before SQLite closes. A file system without second names keeps nothing. */
export function keepLog({ wal, keptLog }: StorePaths): void {
  rmSync(keptLog, { force: true });
  try {
    linkSync(wal, keptLog);
  } catch {
    // The next start makes a log, if the disk has room for it.
  }
}

/** To be called after SQLite has closed. The rest of a longer log is given back. */
export function emptyKeptLog({ wal, keptLog }: StorePaths): void {
  if (!existsSync(keptLog)) return;
  // SQLite has left its log there, because it could not carry all of it over: the other name is not needed.
  if (existsSync(wal)) rmSync(keptLog);
  else clear(keptLog);
}

/** To be called before SQLite opens the store, and after the log was inspected. */
export function takeKeptLog({ database, wal, keptLog }: StorePaths): void {
  if (!existsSync(keptLog)) return;
  if (existsSync(wal) || !existsSync(database)) {
    rmSync(keptLog);
    return;
  }
  // A program that was killed while it closed has not done so: SQLite had carried all of it over before it deleted the log.
  clear(keptLog);
  renameSync(keptLog, wal);
}

function clear(path: string): void {
  const file = openSync(path, 'r+');
  try {
    writeSync(file, Buffer.alloc(headerBytes), 0, headerBytes, 0);
    if (fstatSync(file).size > logBytes) ftruncateSync(file, logBytes);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
