/**
 * Groups active jobs for the scheduler. Jobs that wait as they were submitted and ask for the same are equal, and there may be
 * a hundred thousand of them, so they form one group: a decision about the first holds for all. The jobs of an array are a
 * group of their own, because their places in the queue were taken before they were stored. Every other job is alone.
 */
import type { JobId } from '@muster/common/ids';
import { isTerminal } from '@muster/common/states';
import type { Job } from '../model.ts';
import { demandKeyOf } from '../scheduler/capacity.ts';

/** The jobs that scheduling looks at. */
export interface JobsToPlan {
  readonly jobs: readonly Job[];
  /** Of the last job of a group: its equals behind it, which are not looked at in this turn. */
  readonly behind: ReadonlyMap<JobId, number>;
}

/** Of each group. More than can start in one turn are of no use to it. */
const equalsShownMax = 64;

export class JobGroups {
  /** All that are no equals of others. */
  readonly singles = new Map<JobId, Job>();
  /** By the key of the group, in order of submission. */
  readonly equals = new Map<string, Map<JobId, Job>>();

  /** Takes note of a job as it is now. */
  note(job: Job): void {
    const { id, state } = job;
    const key = groupKeyOf(job);
    const before = key === null ? undefined : this.equals.get(key);
    if (key !== null && isUntouched(job)) {
      this.equals.set(key, (before ?? new Map<JobId, Job>()).set(id, job));
      return;
    }
    before?.delete(id);
    if (key !== null && before?.size === 0) this.equals.delete(key);
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
  toPlan(drafted: ReadonlyMap<JobId, Job>): JobsToPlan {
    const jobs: Job[] = [];
    const behind = new Map<JobId, number>();
    for (const job of this.singles.values()) {
      const current = drafted.get(job.id) ?? job;
      if (!isTerminal(current.state.kind)) jobs.push(current);
    }
    const touched = new Map<string, number>();
    for (const job of drafted.values()) {
      const { id, state } = job;
      if (this.singles.has(id)) continue;
      const key = groupKeyOf(job);
      if (key !== null && this.equals.get(key)?.has(id) === true)
        touched.set(key, (touched.get(key) ?? 0) + 1);
      if (!isTerminal(state.kind)) jobs.push(job);
    }
    for (const [key, equals] of this.equals) {
      /** Those that the draft has not changed. */
      const count = equals.size - (touched.get(key) ?? 0);
      let left = Math.min(count, equalsShownMax);
      for (const job of equals.values()) {
        if (left === 0) break;
        if (drafted.has(job.id)) continue;
        left -= 1;
        jobs.push(job);
        if (left === 0 && count > equalsShownMax) behind.set(job.id, count - equalsShownMax);
      }
    }
    return { jobs, behind };
  }
}

/**
 * The group of which a job is part as long as it waits as it was submitted. It never changes. null: none, because the job
 * comes after others, and may wait for them while its equals start.
 */
export function groupKeyOf({ array, spec }: Pick<Job, 'array' | 'spec'>): string | null {
  if (array !== null) return array.id;
  return spec.after.length > 0 ? null : `${spec.priority} ${demandKeyOf(spec)}`;
}

/** As it was submitted. */
function isUntouched({ state, lastAttempt, checkpoints, resumeChoice, requeuedFrom }: Job): boolean {
  const hasHistory =
    requeuedFrom !== null || lastAttempt > 0 || checkpoints.length > 0 || resumeChoice.kind !== 'newest';
  return state.kind === 'queued' && state.backoffMs === 0 && !hasHistory;
}
