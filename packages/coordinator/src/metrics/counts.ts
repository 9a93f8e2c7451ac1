/** Counting for the metrics page: pure. */
import type { NodeView } from '@muster/common/views';

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
