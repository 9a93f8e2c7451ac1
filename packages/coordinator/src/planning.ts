/** The planner's view of a draft: capacity less what allocations hold, and the queue. */
import { drainedBy } from '@muster/common/conditions';
import { assertInvariant } from '@muster/common/errors';
import type { JobId, NodeName } from '@muster/common/ids';
import { currentAttempt, type Job, type Node } from './model.ts';
import {
  type ClusterView,
  type DependencyState,
  type DrainedView,
  type LeftOutNodes,
  type NodeView,
  notDrained,
  nothingLeftOut,
  type QueuedJob,
} from './scheduler/view.ts';
import type { Draft } from './state.ts';
import type { WaitTimes } from './waitTimes.ts';

interface Use {
  readonly gpuUuids: Set<string>;
  cpus: number;
  memoryMb: number;
}

export function buildView(
  draft: Draft,
  onlineNodes: ReadonlySet<string>,
  waitTimes: WaitTimes,
  monotonicMs: number,
): ClusterView {
  const queue: QueuedJob[] = [];
  const uses = new Map<NodeName, Use>();
  for (const job of draft.activeJobs()) {
    if (job.state.kind === 'queued') queue.push(queuedJob(draft, job, waitTimes, monotonicMs));
    else addUse(uses, job);
  }
  return { nodes: nodeViews(draft, onlineNodes, uses), queue };
}

function queuedJob(draft: Draft, job: Job, waitTimes: WaitTimes, monotonicMs: number): QueuedJob {
  const { sinceMs, notBeforeMs } = waitTimes.of(job, monotonicMs);
  return {
    id: job.id,
    submitSeq: job.submitSeq,
    spec: job.spec,
    notBeforeMs,
    waitingSinceMs: sinceMs,
    dependencies: dependencyState(draft, job),
    leftOut: leftOutNodes(job),
  };
}

function leftOutNodes({ leftOut }: Job): LeftOutNodes {
  if (leftOut.length === 0) return nothingLeftOut;
  return new Map(leftOut.map(({ node, cause }) => [node as NodeName, cause.kind]));
}

function dependencyState(draft: Draft, job: Job): DependencyState {
  for (const id of job.spec.after as readonly JobId[]) {
    const outcome = draft.outcome(id);
    if (outcome === undefined) return { kind: 'waiting', on: id };
    if (outcome !== 'succeeded') return { kind: 'failed', job: id };
  }
  return { kind: 'met' };
}

/** A task holds what it was given until it has ended. */
function addUse(uses: Map<NodeName, Use>, job: Job): void {
  for (const task of currentAttempt(job)?.tasks ?? []) {
    if (task.state === 'ended') continue;
    let use = uses.get(task.node);
    if (use === undefined) {
      use = { gpuUuids: new Set(), cpus: 0, memoryMb: 0 };
      uses.set(task.node, use);
    }
    for (const uuid of task.gpuUuids) {
      assertInvariant(!use.gpuUuids.has(uuid), 'G3', `GPU ${uuid} on ${task.node} is allocated twice`);
      use.gpuUuids.add(uuid);
    }
    use.cpus += task.cpus;
    use.memoryMb += task.memoryMb;
  }
}

function nodeViews(
  draft: Draft,
  onlineNodes: ReadonlySet<string>,
  uses: Map<NodeName, Use>,
): readonly NodeView[] {
  return [...draft.nodesByName()].map((node) => {
    const use = uses.get(node.name);
    const { inventory } = node;
    const drained = drainedView(node);
    const isFree = (uuid: string) => use?.gpuUuids.has(uuid) !== true && !drained.gpuUuids.has(uuid);
    return {
      name: node.name,
      online: onlineNodes.has(node.name),
      inventory,
      drained,
      freeGpus: inventory.gpus.filter((gpu) => isFree(gpu.uuid)),
      freeCpus: inventory.cpus - (use?.cpus ?? 0),
      freeMemoryMb: inventory.memoryMb - (use?.memoryMb ?? 0),
    };
  });
}

function drainedView({ conditions, inventory }: Node): DrainedView {
  // Of almost every node, in every pass.
  if (conditions.length === 0) return notDrained;
  const { node, gpuUuids } = drainedBy(conditions, inventory);
  if (!node && gpuUuids.size === 0) return notDrained;
  const responsible = conditions.filter((condition) => {
    const alone = drainedBy([condition], inventory);
    return node ? alone.node : alone.gpuUuids.size > 0;
  });
  return { node, gpuUuids, kinds: [...new Set(responsible.map(({ kind }) => kind))] };
}
