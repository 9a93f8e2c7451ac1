/** Nodes that a job's attempts have failed on: its next one does without them, as long as others could take it. */
import type { LeftOut } from '@muster/common/gangs';
import type { NodeName } from '@muster/common/ids';
import type { Cause } from '@muster/common/views';
import type { Job } from '../model.ts';

export function leavingOut(job: Job, cause: Cause, nodes: readonly NodeName[]): Job {
  if (nodes.length === 0) return job;
  const added = nodes.map((node): LeftOut => ({ node, cause }));
  const others = job.leftOut.filter((each) => !nodes.some((node) => node === each.node));
  return { ...job, leftOut: [...others, ...added] };
}
