/** Directories that a job names and that need not be there before its first run. */
import { mkdir } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { messageOf } from '@muster/common/errors';
import { DriverError } from '../taskFacts/errors.ts';

/**
 * Makes those that are missing, parents included, as this process' user: tasks run as that.
 * @param paths absolute
 * @param umask of the task: beside that of this process, so that nothing is more open than either wants; null: none
 * @throws {DriverError} `disk_full`, or `unknown` with the remedy, when one cannot be made
 */
export async function makeTaskDirectories(paths: readonly string[], umask: number | null): Promise<void> {
  for (const path of paths) {
    try {
      await mkdir(path, { recursive: true, mode: 0o777 & ~(umask ?? 0) });
    } catch (error) {
      throw refused(path, error as NodeJS.ErrnoException);
    }
  }
}

function refused(path: string, error: NodeJS.ErrnoException): DriverError {
  const options = { cause: error };
  if (error.code === 'ENOSPC' || error.code === 'EDQUOT')
    return new DriverError('disk_full', `no space left for ${path}: free some on this node`, options);
  const remedy = `create it on this node for the user ${userName()}, or set checkpoint.dir to a directory where that user may write`;
  return new DriverError(
    'unknown',
    `the checkpoint directory ${path} is missing and cannot be created on this node (${reasonOf(error)}): ${remedy}`,
    options,
  );
}

function reasonOf(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'EACCES':
    case 'EPERM':
      return 'permission denied';
    case 'EROFS':
      return 'read-only file system';
    case 'EEXIST':
    case 'ENOTDIR':
      return 'a file is in its place';
    default:
      return messageOf(error);
  }
}

/** A number where the node has no name for it. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `${process.getuid?.() ?? 'of the agent'}`;
  }
}
