/** Finds the process that holds a lock on a file, as the kernel lists it. */
import { readFileSync, statSync } from 'node:fs';

/**
 * @param path of the locked file
 * @returns the pid of a process with a write lock on it. Null if there is none, or the kernel does not show it to us
 */
export function lockHolder(path: string): number | null {
  try {
    return holderAmong(readFileSync('/proc/locks', 'utf8'), statSync(path).ino);
  } catch {
    return null;
  }
}

/**
 * @param locks /proc/locks: number, kind, mode, access, pid, `major:minor:inode`, start, end
 * @returns null if the inode is not locked, or the holder is in another pid namespace
 */
export function holderAmong(locks: string, inode: number): number | null {
  for (const line of locks.split('\n')) {
    const [, , , access, pid, place] = line.trim().split(/\s+/);
    if (access === 'WRITE' && place?.endsWith(`:${inode}`) === true && Number(pid) > 0) return Number(pid);
  }
  return null;
}
