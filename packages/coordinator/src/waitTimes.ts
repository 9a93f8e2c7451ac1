/** Since when jobs wait and until when, on the monotonic clock: in memory, because that clock starts anew with us. */
import type { JobId } from '@muster/common/ids';
import type { Job } from './model.ts';
import { reserveAfterMs } from './scheduler/plan.ts';

interface WaitTime {
  readonly sinceMs: number;
  readonly notBeforeMs: number;
}

export class WaitTimes {
  private readonly times = new Map<JobId, WaitTime>();

  /** Takes note of a job as it is now. */
  follow(job: Job, monotonicMs: number): void {
    if (job.state.kind !== 'queued') this.times.delete(job.id);
    else if (!this.times.has(job.id)) this.times.set(job.id, startingNow(job, monotonicMs));
  }

  /** A job that has come into the queue in this very turn is not followed yet; its backoff counts all the same. */
  of(job: Job, monotonicMs: number): WaitTime {
    return this.times.get(job.id) ?? startingNow(job, monotonicMs);
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

function startingNow(job: Job, monotonicMs: number): WaitTime {
  const backoffMs = job.state.kind === 'queued' ? job.state.backoffMs : 0;
  return { sinceMs: monotonicMs, notBeforeMs: monotonicMs + backoffMs };
}
