/**
 * Leases on disk, so that the next guard fences at the same deadlines when this one is killed. Not fsynced: a power cut
 * ends every task they speak of, and the boot id tells.
 */

import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Lease, TaskLocation, TaskName } from '../taskFacts/execution.ts';
import { readJsonFile, replaceJson } from './records.ts';

export interface LeaseRecord {
  readonly location: TaskLocation;
  readonly lease: Lease;
  /** Absolute paths of the control groups the task is in, or will be; null: it is one of the guard's own. */
  readonly groups: readonly string[] | null;
}

const recordVersion = 1;

export class LeaseFiles {
  private readonly directory: string;

  constructor(runtimeDir: string) {
    this.directory = join(runtimeDir, 'leases');
    // Not `recursive`: a runtime directory that was removed must not come back.
    if (!existsSync(this.directory)) mkdirSync(this.directory, { mode: 0o700 });
  }

  write({ location, lease, groups }: LeaseRecord): void {
    const { key, directory } = location;
    replaceJson(this.path(key), { version: recordVersion, key, directory, lease, groups });
  }

  remove(key: TaskName): void {
    rmSync(this.path(key), { force: true });
  }

  /** One that cannot be read is no lease: files are replaced whole, so somebody else has written there. */
  all(): LeaseRecord[] {
    const names = readdirSync(this.directory).filter((name) => name.endsWith('.json'));
    return names.flatMap((name) => {
      const stored = readJsonFile(join(this.directory, name));
      if (!isLeaseRecord(stored)) return [];
      const { key, directory, lease, groups } = stored;
      return [{ location: { key, directory }, lease, groups }];
    });
  }

  private path(key: TaskName): string {
    return join(this.directory, `${key}.json`);
  }
}

type StoredLease = TaskLocation & Pick<LeaseRecord, 'lease' | 'groups'>;

function isLeaseRecord(value: object | null): value is StoredLease {
  if (value === null) return false;
  const { key, directory, lease, groups } = value as Partial<Record<keyof StoredLease, unknown>>;
  const isOfStrings = Array.isArray(groups) && groups.every((group) => typeof group === 'string');
  return (
    typeof key === 'string' &&
    typeof directory === 'string' &&
    isLease(lease) &&
    (groups === null || isOfStrings)
  );
}

function isLease(value: unknown): value is Lease {
  if (typeof value !== 'object' || value === null) return false;
  const { deadlineBoottimeMs, bootId, onExpiry } = value as Partial<Record<keyof Lease, unknown>>;
  return (
    typeof deadlineBoottimeMs === 'number' &&
    typeof bootId === 'string' &&
    (onExpiry === 'freeze' || onExpiry === 'kill')
  );
}
