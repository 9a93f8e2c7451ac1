/**
 * Space kept free on the data directory's disk. Below the reserve new work is refused, while the ends of running jobs
 * are still recorded; when even that space is gone, a ballast file is dropped to make room for them.
 */
import { rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MusterError, messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';

const ballastBytes = 16 * 1024 * 1024;
const checkIntervalMs = 1_000;

export class DiskReserve {
  private readonly dataDir: string;
  private readonly reserveBytes: number;
  private readonly log: Logger;
  private checkedAtMs = Number.NEGATIVE_INFINITY;
  private freeBytes = Number.POSITIVE_INFINITY;

  constructor(dataDir: string, reserveBytes: number, log: Logger) {
    this.dataDir = dataDir;
    this.reserveBytes = reserveBytes;
    this.log = log;
  }

  /** Makes the ballast, again after it was dropped, once there is room for it and the reserve. Never throws. */
  restoreBallast(): void {
    try {
      // Less than all of it is what a crash or a full disk left of an earlier try.
      if (this.ballastHeld() === ballastBytes || this.measure() < this.reserveBytes + ballastBytes) return;
      // Written, not truncated: a file with a hole would hold no space.
      writeFileSync(this.ballastPath(), Buffer.alloc(ballastBytes), { mode: 0o600 });
    } catch (error) {
      // Without it there is less to fall back on, and nothing else is wrong.
      this.log.warn({ error: messageOf(error) }, 'the ballast file could not be written');
    }
  }

  /** @returns false when there was none left to drop */
  dropBallast(): boolean {
    if (this.ballastHeld() === 0) return false;
    rmSync(this.ballastPath());
    this.log.error(
      { freedBytes: ballastBytes },
      'the disk is full: the ballast file was removed to record the ends of tasks',
    );
    return true;
  }

  /** Of what is written between two looks at the disk it is known how much is free. */
  noteWritten(bytes: number): void {
    this.freeBytes -= bytes;
  }

  /**
   * @param nowMs monotonic; the disk is asked at most once a second
   * @param bytes about to be written
   * @throws {MusterError} `resource_exhausted` with the bytes needed
   */
  requireSpace(nowMs: number, bytes = 0): void {
    if (nowMs - this.checkedAtMs >= checkIntervalMs) {
      this.checkedAtMs = nowMs;
      this.freeBytes = this.measure();
    }
    if (this.freeBytes - bytes >= this.reserveBytes) return;
    throw new MusterError(
      'resource_exhausted',
      `the disk of ${this.dataDir} has ${this.freeBytes} bytes free and ${this.reserveBytes} are kept in reserve: ` +
        `free at least ${this.reserveBytes - this.freeBytes} bytes; no restart is needed`,
    );
  }

  private ballastHeld(): number {
    return statSync(this.ballastPath(), { throwIfNoEntry: false })?.size ?? 0;
  }

  private measure(): number {
    const { bavail, bsize } = statfsSync(this.dataDir);
    return bavail * bsize;
  }

  private ballastPath(): string {
    return join(this.dataDir, 'ballast');
  }
}
