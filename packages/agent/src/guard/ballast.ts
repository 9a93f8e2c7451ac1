/**
 * A file that holds space on the node's disk for the moment when nothing else is left of it: dropped then, so that leases,
 * ends and conditions can be written down, and made again once there is room.
 */
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';

const partBytes = 64 * 1024;
const bytesMax = 16 * 1024 * 1024;
/** Of the whole disk. */
const share = 1 / 64;
/** Free space below which it is dropped, and above which it is made again, as multiples of its size. */
const dropBelow = 0.25;
const makeAbove = 4;
/** From a failure to the next try: looks are frequent, and each would write as much as there is room for. */
const againMs = 60_000;

export class Ballast {
  private readonly path: string;
  private readonly log: Logger;
  private readonly monotonicMs: () => number;
  /** null: the last look did not fail. */
  private failedAtMs: number | null = null;
  private isLogged = false;

  constructor(path: string, log: Logger, monotonicMs: () => number) {
    this.path = path;
    this.log = log;
    this.monotonicMs = monotonicMs;
  }

  /** Drops it when the disk is full, makes it when there is room. Never throws. */
  look(): void {
    const nowMs = this.monotonicMs();
    const isSoon = this.failedAtMs !== null && nowMs - this.failedAtMs < againMs;
    try {
      const { blocks, bavail, bsize } = statfsSync(dirname(this.path));
      const bytes = Math.floor(Math.min(bytesMax, blocks * bsize * share));
      const free = bavail * bsize;
      const held = statSync(this.path, { throwIfNoEntry: false })?.size ?? 0;
      if (free < bytes * dropBelow) this.drop();
      else if (held < bytes && free > bytes * makeAbove && !isSoon) {
        this.make(bytes);
        this.failedAtMs = null;
      }
    } catch (error) {
      this.failedAtMs = nowMs;
      if (!this.isLogged)
        this.log.warn(
          { error: messageOf(error) },
          'the ballast file could not be written; trying each minute',
        );
      this.isLogged = true;
    }
  }

  /** Written, not truncated: a file with a hole would hold no space. In parts: a guard is small, and stays so. */
  private make(bytes: number): void {
    const part = Buffer.alloc(partBytes);
    const file = openSync(this.path, 'w', 0o600);
    try {
      for (let written = 0; written < bytes; written += part.length) writeSync(file, part);
    } finally {
      closeSync(file);
    }
  }

  drop(): void {
    const held = statSync(this.path, { throwIfNoEntry: false })?.size ?? 0;
    if (held === 0) return;
    rmSync(this.path, { force: true });
    this.log.warn(
      { freedBytes: held },
      'the disk is full: the ballast file was removed to record the ends of tasks',
    );
  }
}
