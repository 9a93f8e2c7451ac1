/** The jobs that have series of their own on the page: those that hold nodes, and never more than so many. */
import { currentAttempt, type Job } from '../model.ts';
import type { ClusterState } from '../state/state.ts';

export const namedJobsMax = 1_000;

export function namedJobs({ jobs }: Pick<ClusterState, 'jobs'>): readonly Job[] {
  return [...jobs.values()].filter((job) => currentAttempt(job) !== null).slice(0, namedJobsMax);
}
