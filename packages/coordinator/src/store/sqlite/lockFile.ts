import { DatabaseSync } from 'node:sqlite';

/**
 * One program at a time works on a data directory. The lock is SQLite's own, on an empty file: the kernel takes it back
 * from a process that dies, and the store itself need not be opened to hold it.
 */
export interface DirectoryLock {
  release(): void;
}

/** @throws the error of SQLite; SQLITE_BUSY while another process holds it */
export function lockFile(path: string): DirectoryLock {
  const holder = new DatabaseSync(path, { timeout: 0 });
  try {
    holder.exec('pragma journal_mode = memory; pragma locking_mode = exclusive; begin exclusive');
  } catch (error) {
    holder.close();
    throw error;
  }
  return { release: () => holder.close() };
}
