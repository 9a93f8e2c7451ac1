/**
 * One guard per runtime directory. Two would both adopt its tasks and overwrite each other's word on how they ended.
 *
 * Node offers no flock, but it brings SQLite, whose lock on an open file is the kernel's: nobody else can hold it, and
 * it is gone when its holder is, however that died. So there are no stale locks to judge. The file stays empty.
 */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

const SQLITE_BUSY = 5;

/** Keep a reference to it: the lock is held for as long as the object lives. */
export type GuardLock = DatabaseSync;

/** null: another process holds it. */
export function takeLock(runtimeDir: string): GuardLock | null {
  const file = new DatabaseSync(join(runtimeDir, 'guard.lock'));
  try {
    file.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return file;
  } catch (error) {
    file.close();
    if ((error as { errcode?: unknown }).errcode === SQLITE_BUSY) return null;
    throw error;
  }
}
