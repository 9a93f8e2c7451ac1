/** Since when jobs wait and until when, on the monotonic clock: in memory, because that clock starts anew with us. */
import type { JobId } from '@muster/common/ids';
import type { Job } from './model.ts';
import { reserveAfterMs } from './scheduler/plan.ts';

export class WaitTimes {
  private readonly times = new Map<JobId, { readonly sinceMs: number; readonly notBeforeMs: number }>();

  /** Takes note of a job as it is now. */
  follow(job: Job, monotonicMs: number): void {
    if (job.state.kind !== 'queued') this.times.delete(job.id);
    else if (!this.times.has(job.id)) {
      this.times.set(job.id, { sinceMs: monotonicMs, notBeforeMs: monotonicMs + job.state.backoffMs });
    }
  }

  of(job: Job, monotonicMs: number): { readonly sinceMs: number; readonly notBeforeMs: number } {
    return this.times.get(job.id) ?? { sinceMs: monotonicMs, notBeforeMs: monotonicMs };
  }

  /** When the next job's backoff or reservation wait is over; null when none is to come. */
  nextAfter(monotonicMs: number): number | null {
    let next: number | null = null;
    for (const { sinceMs, notBeforeMs } of this.times.values()) {
      for (const moment of [notBeforeMs, sinceMs + reserveAfterMs]) {
        if (moment > monotonicMs && (next === null || moment < next)) next = moment;
      }
    }
    return next;
  }
}
