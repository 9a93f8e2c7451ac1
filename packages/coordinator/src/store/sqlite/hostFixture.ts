/** What tests of the store do to the machine that it is on. */

import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** Nothing is forbidden to root, so root steps down for as long as this takes. */
export function asOrdinaryUser(act: () => void): void {
  const nobody = 65_534;
  if (process.geteuid?.() !== 0) {
    act();
    return;
  }
  process.seteuid?.(nobody);
  try {
    act();
  } finally {
    process.seteuid?.(0);
  }
}

/** A disk of this size, such as `4m`. It takes root. */
export function smallDisk(parent: string, size: string) {
  const path = join(parent, 'disk');
  mkdirSync(path);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path], { stdio: 'pipe' });
  } catch (error) {
    throw new Error('this test mounts a small tmpfs, which takes root (in a container: with CAP_SYS_ADMIN)', {
      cause: error,
    });
  }
  return { path, unmount: () => void execFileSync('umount', [path]) };
}
