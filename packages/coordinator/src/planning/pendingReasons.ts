/** The reasons why queued jobs wait, from the last scheduling pass. They are derived, and never stored. */
import type { ArrayId, JobId } from '@muster/common/ids';
import type { Job } from '../model.ts';
import type { WaitReason } from '../scheduler/reasons.ts';

export class PendingReasons {
  private readonly reasons = new Map<JobId, WaitReason>();
  /** Of jobs of an array that were not looked at one by one. */
  private readonly ofEquals = new Map<ArrayId, WaitReason>();
  private ofAll: WaitReason | null = null;

  clear(): void {
    this.reasons.clear();
    this.ofEquals.clear();
    this.ofAll = null;
  }

  setAll(reason: WaitReason): void {
    this.ofAll = reason;
  }

  /** @param equals the array of which jobs right behind this one wait for the same reason */
  set(id: JobId, reason: WaitReason, equals?: ArrayId): void {
    this.reasons.set(id, reason);
    if (equals !== undefined) this.ofEquals.set(equals, reason);
  }

  /** undefined: no pass has looked at the job yet. */
  get({ id, array }: Pick<Job, 'id' | 'array'>): WaitReason | undefined {
    if (this.ofAll !== null) return this.ofAll;
    return this.reasons.get(id) ?? (array === null ? undefined : this.ofEquals.get(array.id));
  }
}
