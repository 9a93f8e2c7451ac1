/** How many nodes one attempt of a job could have at once, and which of them it takes. */
import type { JobResources } from '@muster/common/spec/types';
import { chooseUnderOneSwitch, type Located, largestGroup } from './topology.ts';
import { chooseNearby } from './topologyGroups.ts';

/** Of these nodes, each of which would do: as many as one attempt could have. */
export function gangSizeMax(nodes: readonly Located[], resources: JobResources): number {
  const most = isBoundToOneSwitch(resources) ? (largestGroup(nodes)?.nodes.length ?? 0) : nodes.length;
  return Math.min(most, resources.nodes);
}

/** @param count at most `gangSizeMax` */
export function chooseGang<T extends Located>(
  ordered: readonly T[],
  count: number,
  resources: JobResources,
): readonly T[] {
  return isBoundToOneSwitch(resources) ? chooseUnderOneSwitch(ordered, count) : chooseNearby(ordered, count);
}

export function isBoundToOneSwitch({ topology, nodes }: JobResources): boolean {
  return topology === 'required' && nodes > 1;
}
