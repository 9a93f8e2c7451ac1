/** Who comes first. Every ordering ends in a key without ties, so that equal input gives equal plans. */

import type { Gpu } from '@muster/common/hardware';
import type { NodeName } from '@muster/common/ids';
import type { Share } from './capacity.ts';
import type { QueuedJob, SchedulerNode } from './view.ts';

type Comparator<T> = (a: T, b: T) => number;

function firstNonZero<T>(...comparators: readonly Comparator<T>[]): Comparator<T> {
  return (a, b) => {
    for (const compare of comparators) {
      const result = compare(a, b);
      if (result !== 0) return result;
    }
    return 0;
  };
}

/** What the place of a job in the queue depends on. */
export interface Ranked {
  readonly submitSeq: number;
  readonly spec: Pick<QueuedJob['spec'], 'priority'>;
}

const higherPriorityFirst: Comparator<Ranked> = (a, b) => b.spec.priority - a.spec.priority;
const earlierSubmitFirst: Comparator<Ranked> = (a, b) => a.submitSeq - b.submitSeq;

/** Priority, then order of submission (which is unique). */
export const queueOrder = firstNonZero(higherPriorityFirst, earlierSubmitFirst);

const fewerFreeGpusFirst: Comparator<SchedulerNode> = (a, b) => a.freeGpus.length - b.freeGpus.length;
const moreFreeCpusFirst: Comparator<SchedulerNode> = (a, b) => b.freeCpus - a.freeCpus;
export const byName: Comparator<{ readonly name: string }> = (a, b) =>
  a.name < b.name ? -1 : a.name > b.name ? 1 : 0;

/** Best fit by GPUs keeps whole nodes free for gangs; among equals the least loaded node, then the name. */
export const placementOrder = firstNonZero(fewerFreeGpusFirst, moreFreeCpusFirst, byName);

/** By UUID: which of several equal GPUs is taken must not depend on the order of a report. */
export const gpuOrder: Comparator<Gpu> = (a, b) => (a.uuid < b.uuid ? -1 : a.uuid > b.uuid ? 1 : 0);

/** What a node lacks for one task of a job. */
export interface NamedLack extends Share {
  readonly name: NodeName;
}

const fewerGpusLackingFirst: Comparator<NamedLack> = (a, b) => a.gpus - b.gpus;
const fewerCpusLackingFirst: Comparator<NamedLack> = (a, b) => a.cpus - b.cpus;
const lessMemoryLackingFirst: Comparator<NamedLack> = (a, b) => a.memoryMb - b.memoryMb;
const fewerTasksLackingFirst: Comparator<NamedLack> = (a, b) => a.tasks - b.tasks;

/** GPUs take longest to come free, so they come first. */
export const nearestToFreeFirst = firstNonZero(
  fewerGpusLackingFirst,
  fewerCpusLackingFirst,
  lessMemoryLackingFirst,
  fewerTasksLackingFirst,
  byName,
);

/** How many of these jobs are queued ahead of one. */
export function jobsAhead(
  jobs: Iterable<Ranked & { readonly state: { readonly kind: string } }>,
  job: Ranked,
): number {
  let count = 0;
  for (const other of jobs) if (other.state.kind === 'queued' && queueOrder(other, job) < 0) count += 1;
  return count;
}
