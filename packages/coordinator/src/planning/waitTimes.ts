/** The times since and until which jobs wait. They are on the monotonic clock, which starts with the process, so in memory only. */
import type { JobId } from '@muster/common/ids';
import type { Job } from '../model.ts';
import { reserveAfterMs } from '../scheduler/plan.ts';

interface WaitTime {
  readonly sinceMs: number;
  readonly notBeforeMs: number;
}

export class WaitTimes {
  private readonly times = new Map<JobId, WaitTime>();
  /** Of those that have a backoff, when it ends. */
  private readonly backoffEnds = new Map<JobId, number>();
  /**
   * Since when jobs wait for a reservation, and how many since each moment, oldest first. Of a hundred thousand jobs in the queue
   * most have come at the same few moments, and every turn of the loop asks for the next one.
   */
  private readonly waiting = new Map<number, number>();

  /** Takes note of a job as it is now. @param monotonicMs never less than at the call before */
  follow(job: Job, monotonicMs: number): void {
    const known = this.times.get(job.id);
    if (job.state.kind !== 'queued') {
      if (known !== undefined) this.forget(job.id, known);
    } else if (known === undefined) {
      const time = startingNow(job, monotonicMs);
      this.times.set(job.id, time);
      this.waiting.set(time.sinceMs, (this.waiting.get(time.sinceMs) ?? 0) + 1);
      if (time.notBeforeMs > time.sinceMs) this.backoffEnds.set(job.id, time.notBeforeMs);
    }
  }

  private forget(id: JobId, { sinceMs }: WaitTime): void {
    this.times.delete(id);
    this.backoffEnds.delete(id);
    const others = (this.waiting.get(sinceMs) ?? 0) - 1;
    if (others > 0) this.waiting.set(sinceMs, others);
    else this.waiting.delete(sinceMs);
  }

  /** A job that has come into the queue in this very turn is not followed yet; its backoff counts anyway. */
  of(job: Job, monotonicMs: number): WaitTime {
    return this.times.get(job.id) ?? startingNow(job, monotonicMs);
  }

  /**
   * When the next job's backoff or reservation wait is over; null when none is to come.
   * @param monotonicMs never less than at the call before
   */
  nextAfter(monotonicMs: number): number | null {
    let next: number | null = null;
    for (const endMs of this.backoffEnds.values())
      if (endMs > monotonicMs && (next === null || endMs < next)) next = endMs;
    for (const sinceMs of this.waiting.keys()) {
      const moment = sinceMs + reserveAfterMs;
      if (moment > monotonicMs) return next === null ? moment : Math.min(next, moment);
      // It will not come again.
      this.waiting.delete(sinceMs);
    }
    return next;
  }
}

function startingNow(job: Job, monotonicMs: number): WaitTime {
  const backoffMs = job.state.kind === 'queued' ? job.state.backoffMs : 0;
  return { sinceMs: monotonicMs, notBeforeMs: monotonicMs + backoffMs };
}
