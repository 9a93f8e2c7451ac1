/**
 * One process per directory. Two agents would both start its tasks; two guards would both adopt them, and overwrite each
 * other's word on how they ended.
 *
 * Node offers no flock, but it brings SQLite, whose lock on an open file is the kernel's: nobody else can hold it, and
 * it is gone when its holder is, however that died. So there are no stale locks to judge. The file stays empty. Unlike
 * the name of an abstract socket it can be taken only by who may write into the directory, and in every network namespace.
 */
import { DatabaseSync } from 'node:sqlite';

const sqliteBusy = 5;

/** Keep a reference to it: the lock is held for as long as the object lives. */
export type FileLock = DatabaseSync;

/** @param path of the lock file, which is made if it is missing. @returns null: another process holds it */
export function takeFileLock(path: string): FileLock | null {
  const file = new DatabaseSync(path);
  try {
    file.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return file;
  } catch (error) {
    file.close();
    if ((error as { errcode?: unknown }).errcode === sqliteBusy) return null;
    throw error;
  }
}
