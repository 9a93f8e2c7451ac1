/** The nodes on which attempts of a job have failed. The next attempt avoids them as long as other nodes could take it. */
import type { NodeName } from '@muster/common/ids';
import type { Cause, ExcludedNode } from '@muster/common/views';
import type { Job } from '../model.ts';

/** @returns the job with these nodes excluded because of `cause`; a newer cause replaces an older one of the same node */
export function withExcludedNodes(job: Job, cause: Cause, nodes: readonly NodeName[]): Job {
  if (nodes.length === 0) return job;
  const added = nodes.map((node): ExcludedNode => ({ node, cause }));
  const others = job.excludedNodes.filter((each) => !nodes.some((node) => node === each.node));
  return { ...job, excludedNodes: [...others, ...added] };
}
