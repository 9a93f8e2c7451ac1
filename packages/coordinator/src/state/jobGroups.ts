/**
 * Groups active jobs for the scheduler. The jobs of an array that wait as they were submitted are equal, and there may be a
 * hundred thousand of them, so they form one group: a decision about the first holds for all. Every other job is alone.
 */
import type { ArrayId, JobId } from '@muster/common/ids';
import { isTerminal } from '@muster/common/states';
import type { Job } from '../model.ts';

/** A job that scheduling looks at. */
export interface JobToPlan {
  readonly job: Job;
  /** Its equals right behind it, which are not looked at in this turn. */
  readonly behind: number;
}

/** Of each array. More than can start in one turn are of no use to it. */
const equalsShownMax = 64;

export class JobGroups {
  /** All that are no equals of others. */
  readonly singles = new Map<JobId, Job>();
  /** In order of their indexes. */
  readonly equals = new Map<ArrayId, Map<JobId, Job>>();

  /** Takes note of a job as it is now. */
  note(job: Job): void {
    const { id, array, state } = job;
    const before = array === null ? undefined : this.equals.get(array.id);
    if (array !== null && isUntouched(job)) {
      this.equals.set(array.id, (before ?? new Map<JobId, Job>()).set(id, job));
      return;
    }
    before?.delete(id);
    if (array !== null && before?.size === 0) this.equals.delete(array.id);
    if (isTerminal(state.kind)) this.singles.delete(id);
    else this.singles.set(id, job);
  }

  /** How many jobs are queued. */
  queuedCount(): number {
    let count = 0;
    for (const { state } of this.singles.values()) if (state.kind === 'queued') count += 1;
    for (const { size } of this.equals.values()) count += size;
    return count;
  }

  /**
   * Every active job, but of equals only the first.
   * @param drafted what a draft has changed
   */
  *toPlan(drafted: ReadonlyMap<JobId, Job>): Iterable<JobToPlan> {
    for (const job of this.singles.values()) {
      const current = drafted.get(job.id) ?? job;
      if (!isTerminal(current.state.kind)) yield { job: current, behind: 0 };
    }
    const touched = new Map<ArrayId, number>();
    for (const job of drafted.values()) {
      const { id, array, state } = job;
      if (this.singles.has(id)) continue;
      if (array !== null && this.equals.get(array.id)?.has(id) === true)
        touched.set(array.id, (touched.get(array.id) ?? 0) + 1);
      if (!isTerminal(state.kind)) yield { job, behind: 0 };
    }
    for (const [arrayId, equals] of this.equals)
      yield* firstOf(equals, equals.size - (touched.get(arrayId) ?? 0), drafted);
  }
}

/** @param count of those that the draft has not changed */
function* firstOf(
  equals: ReadonlyMap<JobId, Job>,
  count: number,
  drafted: ReadonlyMap<JobId, Job>,
): Iterable<JobToPlan> {
  let shown = 0;
  for (const job of equals.values()) {
    if (shown === count || shown === equalsShownMax) return;
    if (drafted.has(job.id)) continue;
    shown += 1;
    yield { job, behind: shown === equalsShownMax ? count - shown : 0 };
  }
}

/** As it was submitted. */
function isUntouched({ state, lastAttempt, checkpoints, resumeChoice, requeuedFrom }: Job): boolean {
  const hasHistory =
    requeuedFrom !== null || lastAttempt > 0 || checkpoints.length > 0 || resumeChoice.kind !== 'newest';
  return state.kind === 'queued' && state.backoffMs === 0 && !hasHistory;
}
