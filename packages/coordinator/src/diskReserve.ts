/**
 * Space kept free on the data directory's disk. Below the reserve new work is refused, while running jobs are still recorded.
 * Other programs may fill the disk anyway, so the store also holds space of its own, which nobody else can take
 * (`store/sqlite/ownSpace.ts`).
 */
import { rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { MusterError, messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';

const checkIntervalMs = 1_000;
/** Fillers added per call: each is a commit of a megabyte, which keeps everything else waiting. */
const fillersPerCall = 2;
/** Free bytes from which the store takes its own space back: before anything else, and without leaving nothing for logs. */
const restoreFromBytes = 8 * 1024 * 1024;
const fillersMin = 4;
const fillersMax = 16;
/** Share of the file system's inodes that is kept, and how many at most. */
const inodeShare = 0.1;
const inodesMax = 4_096;

/** The space that the store holds for itself. */
export interface HeldSpace {
  /** Bytes that commits can still take when the disk is full. */
  readonly heldBytes: number;
  readonly fullBytes: number;
  readonly isWhole: boolean;
  addFiller(): void;
}

/** For a store that is on no disk. */
export const noHeldSpace: HeldSpace = { heldBytes: 0, fullBytes: 0, isWhole: true, addFiller() {} };

interface FreeSpace {
  readonly bytes: number;
  readonly inodes: number;
  /** Inodes kept in reserve. 0: the file system has no fixed number of them. */
  readonly inodesKept: number;
}

/** @returns megabytes for the store to hold in its database: a thirty-second part of the reserve, 4 to 16 */
export function fillersFor(reserveBytes: number): number {
  return Math.min(fillersMax, Math.max(fillersMin, Math.floor(reserveBytes / 32 / 1024 / 1024)));
}

/** @returns inodes to keep free on a file system with `total` of them */
export function inodesKeptOf(total: number): number {
  return Math.min(inodesMax, Math.floor(total * inodeShare));
}

export class DiskReserve {
  private readonly dataDir: string;
  private readonly reserveBytes: number;
  private readonly log: Logger;
  private readonly space: HeldSpace;
  private checkedAtMs = Number.NEGATIVE_INFINITY;
  private free: FreeSpace = { bytes: Number.POSITIVE_INFINITY, inodes: 0, inodesKept: 0 };
  private isReported = false;

  constructor(dataDir: string, reserveBytes: number, log: Logger, space: HeldSpace = noHeldSpace) {
    this.dataDir = dataDir;
    this.reserveBytes = reserveBytes;
    this.log = log;
    this.space = space;
  }

  /** Gives the store its own space, again after some was taken, as soon as the disk has room for it. Never throws. */
  restore(): void {
    try {
      for (let count = 0; count < fillersPerCall && !this.space.isWhole; count += 1) {
        if (this.measure().bytes < restoreFromBytes) break;
        this.space.addFiller();
      }
      // Earlier releases kept a file for this moment, which any program could fill as soon as it was removed.
      rmSync(join(this.dataDir, 'ballast'), { force: true });
    } catch (error) {
      this.log.warn({ error: messageOf(error) }, 'the store could not get more space of its own');
    }
    this.report();
  }

  /** Notes bytes written since the last look at the disk. */
  noteWritten(bytes: number): void {
    this.free = { ...this.free, bytes: this.free.bytes - bytes };
  }

  /**
   * @param nowMs monotonic; the disk is asked at most once a second
   * @param bytes about to be written
   * @throws {MusterError} `resource_exhausted` with the bytes or inodes needed
   */
  requireSpace(nowMs: number, bytes = 0): void {
    if (nowMs - this.checkedAtMs >= checkIntervalMs) {
      this.checkedAtMs = nowMs;
      this.free = this.measure();
    }
    const { dataDir, reserveBytes, free } = this;
    if (free.bytes - bytes < reserveBytes)
      throw new MusterError(
        'resource_exhausted',
        `the disk of ${dataDir} has ${free.bytes} bytes free and ${reserveBytes} are kept in reserve: ` +
          `free at least ${reserveBytes - free.bytes} bytes; no restart is needed`,
      );
    if (free.inodes >= free.inodesKept) return;
    throw new MusterError(
      'resource_exhausted',
      `the disk of ${dataDir} has ${free.inodes} inodes free and ${free.inodesKept} are kept in reserve: ` +
        `remove at least ${free.inodesKept - free.inodes} files; no restart is needed`,
    );
  }

  /** @returns why nothing may be started now: the rest of the store's own space is for stops and ends. null: it may. */
  paused(): string | null {
    const { heldBytes, fullBytes } = this.space;
    if (heldBytes >= fullBytes / 2 || this.measure().bytes >= restoreFromBytes) return null;
    return `the disk of ${this.dataDir} on the coordinator's machine is full: free at least ${fullBytes} bytes`;
  }

  private report(): void {
    const isShort = this.paused() !== null;
    if (isShort && !this.isReported)
      this.log.error(
        { heldBytes: this.space.heldBytes },
        'the disk is full: nothing is started, and only stops and ends of jobs are recorded',
      );
    if (!isShort && this.isReported) this.log.warn({}, 'the disk has room again: jobs are started');
    this.isReported = isShort;
  }

  private measure(): FreeSpace {
    const { bavail, bsize, ffree, files } = statfsSync(this.dataDir);
    return { bytes: bavail * bsize, inodes: ffree, inodesKept: inodesKeptOf(files) };
  }
}
