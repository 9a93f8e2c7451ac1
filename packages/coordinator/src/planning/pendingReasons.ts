/** The reasons why queued jobs wait, from the last scheduling pass. They are derived when they are asked for, and never stored. */
import type { JobId } from '@muster/common/ids';
import type { Job } from '../model.ts';
import type { FindReason } from '../scheduler/plan.ts';
import type { WaitReason } from '../scheduler/reasons.ts';
import { groupKeyOf } from '../state/jobGroups.ts';

export class PendingReasons {
  private readonly reasons = new Map<JobId, FindReason>();
  /** Of jobs that were not looked at one by one, by the key of their group. */
  private readonly ofEquals = new Map<string, FindReason>();
  private ofAll: WaitReason | null = null;

  clear(): void {
    this.reasons.clear();
    this.ofEquals.clear();
    this.ofAll = null;
  }

  setAll(reason: WaitReason): void {
    this.ofAll = reason;
  }

  set(id: JobId, why: FindReason): void {
    this.reasons.set(id, why);
  }

  /** The equals of this job that are behind it wait for the same reason. */
  setEquals(job: Pick<Job, 'array' | 'spec'>, why: FindReason): void {
    const key = groupKeyOf(job);
    if (key !== null) this.ofEquals.set(key, why);
  }

  /** undefined: no pass has looked at the job yet. */
  get(job: Pick<Job, 'id' | 'array' | 'spec'>): WaitReason | undefined {
    if (this.ofAll !== null) return this.ofAll;
    const own = this.reasons.get(job.id);
    if (own !== undefined) return own();
    const key = groupKeyOf(job);
    return key === null ? undefined : this.ofEquals.get(key)?.();
  }
}
