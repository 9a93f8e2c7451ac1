/** What the metrics page and the history of the cluster count: pure, and without the library of metrics. */
import type { NodeView } from '@muster/common/views';
import type { AgentRegistry } from '../agents/registry.ts';
import type { WaitTimes } from '../planning/waitTimes.ts';
import { heldTasks } from '../state/heldTasks.ts';
import type { ClusterState } from '../state/state.ts';
import { nodeView } from '../views.ts';

export function countBy<T>(items: Iterable<T>, keyOf: (item: T) => string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) {
    const key = keyOf(item);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

const gpuStateNames = ['free', 'allocated', 'drained', 'silent'] as const;
type GpuStateName = (typeof gpuStateNames)[number];

/**
 * Every GPU in one state. What a job holds is allocated, whatever else is true of it; of the others only those that could
 * get work now are free.
 */
export function countGpus(nodes: readonly NodeView[]): ReadonlyMap<GpuStateName, number> {
  const counts = new Map<GpuStateName, number>(gpuStateNames.map((name) => [name, 0]));
  for (const node of nodes) {
    const held = new Set(node.gpuUses.map(({ uuid }) => uuid));
    const drained = new Set(node.drainedGpuUuids);
    for (const { uuid } of node.inventory.gpus) {
      const state = gpuState(held.has(uuid), node.drained || drained.has(uuid), node.state === 'silent');
      counts.set(state, (counts.get(state) ?? 0) + 1);
    }
  }
  return counts;
}

function gpuState(isHeld: boolean, isDrained: boolean, isSilent: boolean): GpuStateName {
  if (isHeld) return 'allocated';
  if (isDrained) return 'drained';
  return isSilent ? 'silent' : 'free';
}

/** As the API shows them. */
export function shownNodes({ state, agents }: ShownNodesParts): readonly NodeView[] {
  const held = heldTasks(state.jobs.values());
  return [...state.nodes.values()].map((node) => {
    const { name } = node;
    return nodeView(node, held.get(name) ?? [], agents.isOnline(name), agents.silentForMs(name));
  });
}

export interface ShownNodesParts {
  readonly state: Pick<ClusterState, 'jobs' | 'nodes'>;
  readonly agents: Pick<AgentRegistry, 'isOnline' | 'silentForMs'>;
}

/** How long the job that has waited longest has been in the queue, 0 when none is. */
export function oldestWaitSeconds(
  { jobs }: Pick<ClusterState, 'jobs'>,
  waitTimes: Pick<WaitTimes, 'of'>,
  monotonicMs: number,
): number {
  let oldestMs = monotonicMs;
  for (const job of jobs.values())
    if (job.state.kind === 'queued') oldestMs = Math.min(oldestMs, waitTimes.of(job, monotonicMs).sinceMs);
  return (monotonicMs - oldestMs) / 1_000;
}

export interface ClusterCountParts extends ShownNodesParts {
  readonly waitTimes: Pick<WaitTimes, 'of'>;
  readonly monotonicMs: () => number;
}

/** Queue and cluster in numbers, by the names of `metricNames.ts`. */
export function clusterCounts(parts: ClusterCountParts): ReadonlyMap<string, number> {
  const { state, waitTimes, monotonicMs } = parts;
  const nodes = shownNodes(parts);
  const named = (prefix: string, counts: ReadonlyMap<string, number>) =>
    Array.from(counts, ([kind, count]) => [`${prefix}_${kind}`, count] as const);
  return new Map([
    ...named(
      'jobs',
      countBy(state.jobs.values(), (job) => job.state.kind),
    ),
    ...named('gpus', countGpus(nodes)),
    ...named(
      'nodes',
      countBy(nodes, (node) => node.state),
    ),
    ['queue_oldest_wait_seconds', oldestWaitSeconds(state, waitTimes, monotonicMs())],
  ]);
}
