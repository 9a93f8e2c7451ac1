/** Directories that a task is to find: made before it starts, as the account that it runs as. */
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  unlinkSync,
} from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { messageOf } from '@muster/common/errors';
import { type AccountIds, ownDirectory } from '../taskFacts/account.ts';
import { DriverError } from '../taskFacts/errors.ts';
import { withoutWaiting } from '../taskFacts/taskFile.ts';
import type { Account } from './account.ts';
import type { AccountLaunch } from './protocol.ts';

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
      throw refused(path, userName(), error as NodeJS.ErrnoException);
    }
  }
}

/**
 * The same for a task with an account of its own, to be called as that account, which has to be able to save there.
 * @throws {DriverError} as above
 */
export function makeAccountDirectories(account: Account, paths: readonly string[], umask: number): void {
  for (const path of paths) {
    try {
      mkdirSync(path, { recursive: true, mode: 0o777 & ~umask });
    } catch (error) {
      throw refused(path, account.name, error as NodeJS.ErrnoException);
    }
    try {
      tryToSave(path);
    } catch (error) {
      throw unusable(path, account.name, error as NodeJS.ErrnoException);
    }
  }
}

/**
 * The agent looks after what is there with more rights than the account: it writes an index, and deletes what is not to be kept.
 * @throws {Error} with the kernel's code
 */
function tryToSave(directory: string): void {
  readdirSync(directory);
  const trial = join(directory, `.muster-write-check-${process.pid}`);
  try {
    // Exclusively: what is there already may be a link that somebody else has made.
    closeSync(openSync(trial, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  unlinkSync(trial);
}

/**
 * Gives a task what it alone can write to. Anyone who can pass through the task's directory finds nothing there that is open.
 * @throws {Error} with the kernel's code
 */
export function giveDirectories(
  ids: Account,
  {
    directory,
    ownDirectories,
    ownFiles = [],
  }: Pick<AccountLaunch, 'directory' | 'ownDirectories' | 'ownFiles'>,
): void {
  const { uid, gid } = ids;
  chmodSync(directory, 0o711);
  giveFiles(ids, ownFiles);
  for (const path of [ownDirectory(directory), ...ownDirectories]) {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    // What an attempt before has left belongs to it already.
    if (lstatSync(path).uid !== uid) lchownSync(path, uid, gid);
  }
}

/**
 * Lets an account read files, and nobody else.
 * @param paths each in a directory of one that only this process' user can enter. Once an account was given that one, its files
 *   stay as they are: the account may have put something else in their place.
 * @throws {Error} with the kernel's code
 */
export function giveFiles({ uid, gid }: AccountIds, paths: readonly string[]): void {
  for (const path of paths) {
    const { uid: owner, mode } = lstatSync(dirname(dirname(path)));
    if (owner !== process.geteuid?.() || (mode & 0o077) !== 0) continue;
    const file = openSync(path, constants.O_RDONLY | withoutWaiting);
    try {
      if (fstatSync(file).uid === uid) continue;
      fchmodSync(file, 0o400);
      fchownSync(file, uid, gid);
    } finally {
      closeSync(file);
    }
  }
}

function refused(path: string, user: string, error: NodeJS.ErrnoException): DriverError {
  const options = { cause: error };
  if (error.code === 'ENOSPC' || error.code === 'EDQUOT')
    return new DriverError('disk_full', `no space left for ${path}: free some on this node`, options);
  const remedy = `create it on this node for the user ${user}, or set checkpoint.dir to a directory where that user may write`;
  return new DriverError(
    'unknown',
    `the checkpoint directory ${path} is missing and cannot be created on this node (${reasonOf(error)}): ${remedy}`,
    options,
  );
}

function unusable(path: string, user: string, error: NodeJS.ErrnoException): DriverError {
  const message =
    `the checkpoint directory ${path} cannot be used by ${user} on this node (${reasonOf(error)}): let that user read and write ` +
    'there, or set checkpoint.dir to a directory of theirs';
  const isFull = error.code === 'ENOSPC' || error.code === 'EDQUOT';
  return new DriverError(isFull ? 'disk_full' : 'unknown', message, { cause: error });
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
