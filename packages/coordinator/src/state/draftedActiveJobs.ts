import type { JobId } from '@muster/common/ids';
import { isTerminal } from '@muster/common/states';
import type { Job } from '../model.ts';

/** Jobs that have not ended, with what a draft changes of them; then those that it adds. */
export function* activeJobsOf(
  base: ReadonlyMap<JobId, Job>,
  drafted: ReadonlyMap<JobId, Job>,
  added: ReadonlySet<JobId>,
): Iterable<Job> {
  for (const job of base.values()) {
    const current = drafted.get(job.id) ?? job;
    if (!isTerminal(current.state.kind)) yield current;
  }
  for (const id of added) {
    const job = drafted.get(id);
    if (job !== undefined && !isTerminal(job.state.kind)) yield job;
  }
}
