/**
 * The lease of a task, in the task's directory: an agent that is restarted goes on with the deadline that was, and never
 * extends it. Lines of one length are written over one another: replacing a file at every heartbeat would make ext4 write
 * it out each time, and a file that is cut short by a crash reads as a lease that has run out.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTaskFile, writeTaskFile } from '../taskFile.ts';
import { type HeldLease, noLease } from './lease.ts';

interface StoredLease {
  readonly bootId: string;
  readonly deadlineMs: number | null;
}

const fileName = 'lease';
const lineLength = 128;

export function leasePath(directory: string): string {
  return join(directory, fileName);
}

/** @throws {Error} when the file cannot be written; the lease before it stays */
export function writeLease(directory: string, bootId: string, deadlineMs: number | null): void {
  const stored: StoredLease = { bootId, deadlineMs };
  const line = `${JSON.stringify(stored).padEnd(lineLength - 1)}\n`;
  writeTaskFile(leasePath(directory), line, 'beginning');
}

/** What is not there, cannot be read or is of another boot is no lease: its task may not run until it gets one. */
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
