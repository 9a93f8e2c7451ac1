/**
 * The file with the lease of a task, in the directory of the task. A restarted agent keeps the deadline in it, and never extends
 * it. Each lease is written over the one before, as a line of the same length: replacing the file at every heartbeat would
 * make ext4 write it to disk each time. A file that a crash has truncated is read as a lease that has expired.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Lease } from '../taskFacts/execution.ts';
import { readTaskFile, writeTaskFile } from '../taskFacts/taskFile.ts';
import { type HeldLease, noLease } from './heldLease.ts';

interface StoredLease {
  readonly bootId: string;
  readonly deadlineMs: number | null;
}

const fileName = 'lease';
const lineLength = 128;

export function leasePath(directory: string): string {
  return join(directory, fileName);
}

/** @throws {Error} when the file cannot be written; the earlier lease stays in it */
export function writeLease(directory: string, bootId: string, deadlineMs: number | null): void {
  const stored: StoredLease = { bootId, deadlineMs };
  const line = `${JSON.stringify(stored).padEnd(lineLength - 1)}\n`;
  writeTaskFile(leasePath(directory), line, 'beginning');
}

/** A file that is missing, unreadable or of another boot contains no lease: its task may not run until it is granted one. */
export function readLease(directory: string, bootId: string): HeldLease {
  try {
    const text = readTaskFile(leasePath(directory), (file) => readFileSync(file, 'utf8'));
    const stored = JSON.parse(text) as Partial<StoredLease>;
    const { deadlineMs } = stored;
    if (stored.bootId !== bootId || !(deadlineMs === null || Number.isFinite(deadlineMs))) return noLease;
    return { ...noLease, deadlineMs: deadlineMs ?? null };
  } catch {
    return noLease;
  }
}

/** Whether a task with this lease may not run. A lease of an earlier boot has always expired: its task ended with that boot. */
export function isExpired(lease: Lease, bootId: string, boottimeMs: number): boolean {
  return lease.bootId !== bootId || lease.deadlineBoottimeMs <= boottimeMs;
}

/** The later of two leases. Messages may overtake each other, so an earlier deadline does not replace a later one. */
export function isLater(lease: Lease, than: Lease | null): boolean {
  return than === null || lease.deadlineBoottimeMs >= than.deadlineBoottimeMs;
}
