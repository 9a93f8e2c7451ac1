/**
 * When a checkpoint was first found corrupt. A file server that does not respond, or a disk that returns a wrong page, looks
 * like damage, so nothing is renamed before a second reading, later and independent, has come to the same verdict. The times
 * are of this process: a restarted agent counts from its own first look, which makes the wait longer and never shorter.
 */
import { secondReadingMs, type VerificationDepth } from '@muster/common/checkpoints';

/** More are not waited for at once. */
const notedMax = 1_000;

/** A checkpoint to read again, as closely as before. */
export interface SecondReading {
  readonly name: string;
  readonly version: string;
  readonly depth: VerificationDepth;
}

export interface ReadCheckpoint {
  /** The checkpoint directory. */
  readonly root: string;
  readonly name: string;
  readonly version: string;
}

/** One for all tasks of an agent: an attempt may be over before the time has come. */
export class FirstReadings {
  private readonly atMs = new Map<string, number>();

  /** Restarts the wait from now. @param nowMs monotonic */
  note(read: ReadCheckpoint, nowMs: number): void {
    const key = keyOf(read);
    this.atMs.delete(key);
    this.atMs.set(key, nowMs);
    const [oldest] = this.atMs.keys();
    if (oldest !== undefined && this.atMs.size > notedMax) this.atMs.delete(oldest);
  }

  /** Whether the time for a second one has come. One that was not noted is noted. @param nowMs monotonic */
  isLongAgo(read: ReadCheckpoint, nowMs: number): boolean {
    const atMs = this.atMs.get(keyOf(read));
    if (atMs === undefined) this.note(read, nowMs);
    return atMs !== undefined && nowMs - atMs >= secondReadingMs;
  }
}

function keyOf({ root, name, version }: ReadCheckpoint): string {
  return JSON.stringify([root, name, version]);
}
