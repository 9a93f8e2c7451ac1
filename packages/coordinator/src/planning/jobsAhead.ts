import type { Job } from '../model.ts';
import { queueOrder, type Ranked } from '../scheduler/order.ts';

/** How many of these jobs are queued ahead of one. */
export function jobsAhead(jobs: Iterable<Job>, job: Ranked): number {
  let count = 0;
  for (const other of jobs) if (other.state.kind === 'queued' && queueOrder(other, job) < 0) count += 1;
  return count;
}
