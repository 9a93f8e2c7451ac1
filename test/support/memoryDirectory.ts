/**
 * Unit tests make and remove thousands of small files, and wait for them to be on disk: on a disk, a third of the time that
 * they spend in the kernel. What only a disk shows is tested end to end.
 */
import { accessSync, constants, statfsSync } from 'node:fs';

const sharedMemory = '/dev/shm';
/** `TMPFS_MAGIC` of statfs(2). */
const tmpfsType = 0x01021994;
/** Several times what the unit tests have in it at once. Containers usually have 64 MB. */
const freeBytesMin = 2 * 1024 ** 3;

/** A directory in memory with room for the files of the unit tests. null: there is none here. */
export function memoryDirectory(): string | null {
  try {
    accessSync(sharedMemory, constants.W_OK);
    const { type, bavail, bsize } = statfsSync(sharedMemory);
    return type === tmpfsType && bavail * bsize >= freeBytesMin ? sharedMemory : null;
  } catch {
    return null;
  }
}
