/** What tests of the store do to the machine that it is on. */

import { execFileSync } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  openSync,
  rmSync,
  statfsSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
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

/** An ext4 file system of this many mebibytes, in an image beside its mount point. It takes root. */
export function imageDisk(parent: string, mebibytes: number) {
  const path = join(parent, 'disk');
  const image = join(parent, 'disk.img');
  mkdirSync(path);
  writeFileSync(image, '');
  truncateSync(image, mebibytes * 1024 * 1024);
  execFileSync('mkfs.ext4', ['-q', image], { stdio: 'pipe' });
  execFileSync('mount', ['-o', 'loop', image, path], { stdio: 'pipe' });
  return { path, unmount: () => void execFileSync('umount', [path]) };
}

/** Another program on a disk: it takes every block that is free, again and again. */
export class DiskFiller {
  private readonly directory: string;
  private readonly files: string[] = [];

  constructor(directory: string) {
    this.directory = directory;
  }

  /** Takes all that is free now. */
  fill(): void {
    const path = join(this.directory, `filler-${this.files.length}`);
    this.files.push(path);
    const file = openSync(path, 'w');
    try {
      for (const block of [Buffer.alloc(1024 * 1024), Buffer.alloc(1024)]) writeUntilFull(file, block);
    } finally {
      closeSync(file);
    }
    const { bavail, bsize } = statfsSync(this.directory);
    if (bavail > 0) throw new Error(`${bavail * bsize} bytes are left on a disk that was filled`);
  }

  remove(): void {
    for (const path of this.files.splice(0)) rmSync(path);
  }
}

function writeUntilFull(file: number, block: Buffer): void {
  try {
    for (;;) writeSync(file, block);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}
