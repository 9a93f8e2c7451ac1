import { execFile } from 'node:child_process';
import { lstatSync } from 'node:fs';
import { promisify } from 'node:util';
import { ownDirectory } from './account.ts';

/**
 * Removes a directory that other processes of a task's account may change meanwhile. Node goes by names, which they could
 * exchange for links, and this process may remove more than they may. `rm` holds each directory open and follows no link.
 * @throws {Error} when something is left
 */
export async function removeTree(path: string): Promise<void> {
  await promisify(execFile)('rm', ['-rf', '--', path]);
}

/**
 * What a task with an account of its own has in its directory. Nothing happens for one without.
 * @param directory of the task
 * @throws {Error} when something is left
 */
export async function removeOwnDirectory(directory: string): Promise<void> {
  const own = ownDirectory(directory);
  if (lstatSync(own, { throwIfNoEntry: false }) !== undefined) await removeTree(own);
}
