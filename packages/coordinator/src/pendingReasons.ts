/** Why each queued job waits, by the last pass. Derived: never stored. */
import type { JobId } from '@muster/common/ids';
import type { PendingReason } from '@muster/common/views';
import type { QueuedJob } from './scheduler/view.ts';
import { reasonBeforeResources } from './scheduler/waits.ts';

export class PendingReasons {
  private readonly reasons = new Map<JobId, PendingReason>();
  /** Those that wait for a moment: how far it is away depends on when one asks. */
  private readonly timed = new Map<JobId, QueuedJob>();
  private readonly monotonicMs: () => number;

  constructor(monotonicMs: () => number) {
    this.monotonicMs = monotonicMs;
  }

  clear(): void {
    this.reasons.clear();
    this.timed.clear();
  }

  set(id: JobId, reason: PendingReason, job?: QueuedJob): void {
    this.reasons.set(id, reason);
    if (job !== undefined && (reason.kind === 'backoff' || reason.kind === 'circuit_open'))
      this.timed.set(id, job);
  }

  get(id: JobId): PendingReason | undefined {
    const job = this.timed.get(id);
    const now = job === undefined ? null : reasonBeforeResources(job, this.monotonicMs());
    return now ?? this.reasons.get(id);
  }
}
