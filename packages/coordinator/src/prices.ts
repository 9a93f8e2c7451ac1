/** What GPUs cost: their prices, and the time for which attempts held them. Pure. */
import type { NodeName } from '@muster/common/ids';
import type { Attempt, Node } from './model.ts';
import type { GpuPrice } from './options.ts';

type Nodes = ReadonlyMap<NodeName, Pick<Node, 'inventory'>>;
type HeldGpus = Pick<Attempt, 'tasks'>;

const hourMs = 3_600_000;

/** That of its node, else of the longest type that its model contains. @returns USD an hour; null: it has no price */
export function priceOfGpu(node: NodeName, model: string, prices: readonly GpuPrice[]): number | null {
  const ofNode = prices.find((price) => price.of === 'node' && price.name === node);
  if (ofNode !== undefined) return ofNode.usdPerHour;
  const lower = model.toLowerCase();
  const fitting = prices.filter(({ of, name }) => of === 'type' && lower.includes(name.toLowerCase()));
  return fitting.toSorted((a, b) => b.name.length - a.name.length)[0]?.usdPerHour ?? null;
}

interface AttemptPrice {
  /** GPUs without a price cost nothing. */
  readonly usdPerHour: number;
  /** A node is gone, and with it what GPUs it had, so that their price is not known. */
  readonly isIncomplete: boolean;
}

export function priceOfAttempt({ tasks }: HeldGpus, nodes: Nodes, prices: readonly GpuPrice[]): AttemptPrice {
  let usdPerHour = 0;
  let isIncomplete = false;
  for (const { node, gpuUuids } of tasks) {
    const gpus = nodes.get(node)?.inventory.gpus ?? [];
    for (const uuid of gpuUuids) {
      const model = gpus.find((gpu) => gpu.uuid === uuid)?.model;
      const price = priceOfGpu(node, model ?? '', prices);
      usdPerHour += price ?? 0;
      isIncomplete ||= price === null && model === undefined;
    }
  }
  return { usdPerHour, isIncomplete };
}

/**
 * What the attempts of a job have cost, at the prices of today.
 * @param nowMs wall clock, until which an attempt counts that has not ended
 * @returns USD; null: there are no prices, or it is no longer known what GPUs they held
 */
export function costOf(
  attempts: readonly (HeldGpus & Pick<Attempt, 'allocatedAtMs' | 'endedAtMs'>)[],
  nodes: Nodes,
  prices: readonly GpuPrice[],
  nowMs: number,
): number | null {
  if (prices.length === 0) return null;
  let usd = 0;
  for (const attempt of attempts) {
    const { usdPerHour, isIncomplete } = priceOfAttempt(attempt, nodes, prices);
    if (isIncomplete) return null;
    usd += (usdPerHour * Math.max(0, (attempt.endedAtMs ?? nowMs) - attempt.allocatedAtMs)) / hourMs;
  }
  return usd;
}
