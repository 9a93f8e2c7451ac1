/** What the state knows of an active job besides the job itself. */
import { isTerminal } from '@muster/common/states';
import type { Job } from '../model.ts';
import type { ClusterState } from './state.ts';

/** Records a job as it is now: by its id, directory, budget and group, or how it has ended. */
export function noteInIndexes(
  state: Pick<ClusterState, 'jobs' | 'outcomes' | 'directories' | 'budgetJobs' | 'groups' | 'queued'>,
  job: Job,
): void {
  const { id, state: current } = job;
  if (isTerminal(current.kind)) {
    state.jobs.delete(id);
    state.outcomes.set(id, current.kind);
  } else {
    state.jobs.set(id, job);
  }
  state.directories.note(job);
  state.budgetJobs.note(job);
  state.groups.note(job);
  state.queued.note(job);
}
