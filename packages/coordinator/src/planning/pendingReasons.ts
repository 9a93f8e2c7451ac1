/** The reasons why queued jobs wait, from the last scheduling pass. They are derived, and never stored. */
import type { ArrayId, JobId } from '@muster/common/ids';
import type { PendingReason } from '@muster/common/views';
import type { Job } from '../model.ts';
import { reasonBeforeResources } from '../scheduler/blockedReasons.ts';
import type { QueuedJob } from '../scheduler/view.ts';

export class PendingReasons {
  private readonly reasons = new Map<JobId, PendingReason>();
  /** Those that wait for a moment: how far it is away depends on when one asks. */
  private readonly timed = new Map<JobId, QueuedJob>();
  /** Of jobs of an array that were not looked at one by one. */
  private readonly ofEquals = new Map<ArrayId, PendingReason>();
  private ofAll: PendingReason | null = null;
  private readonly monotonicMs: () => number;

  constructor(monotonicMs: () => number) {
    this.monotonicMs = monotonicMs;
  }

  clear(): void {
    this.reasons.clear();
    this.timed.clear();
    this.ofEquals.clear();
    this.ofAll = null;
  }

  setAll(reason: PendingReason): void {
    this.ofAll = reason;
  }

  set(id: JobId, reason: PendingReason, job?: QueuedJob): void {
    this.reasons.set(id, reason);
    if (job !== undefined && (reason.kind === 'backoff' || reason.kind === 'circuit_open'))
      this.timed.set(id, job);
    if (job?.equals != null) this.ofEquals.set(job.equals.array, reason);
  }

  get({ id, array }: Pick<Job, 'id' | 'array'>): PendingReason | undefined {
    if (this.ofAll !== null) return this.ofAll;
    const job = this.timed.get(id);
    const now = job === undefined ? null : reasonBeforeResources(job, this.monotonicMs());
    return now ?? this.reasons.get(id) ?? (array === null ? undefined : this.ofEquals.get(array.id));
  }
}
