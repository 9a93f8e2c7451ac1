/** Which nodes to keep for a job that has waited long: those nearest to being free for it. */

import type { NodeName } from '@muster/common/ids';
import { fitsEmpty, isLeftByDrains, type JobDemand, lackOf, sum } from './capacity.ts';
import { withoutLeftOut } from './fit.ts';
import { type NamedLack, nearestToFreeFirst } from './order.ts';
import { nearestGroups } from './topology.ts';
import { isBoundToOneSwitch } from './topologyGroups.ts';
import type { PlacementHistory, SchedulerNode } from './view.ts';

/**
 * For a job that has waited long: as many nodes as it needs at least, those that lack least of it, GPUs first; of one
 * switch, if it is bound to one, and among them the one that its checkpoint is on. None, if too few are online and not
 * drained: keeping some idle would not help before the others are back.
 */
export function nodesToReserve(
  nodes: readonly SchedulerNode[],
  demand: JobDemand,
  history: PlacementHistory,
): readonly NodeName[] {
  const { resources } = demand;
  const couldEver = nodes.filter((node) => fitsEmpty(node, demand));
  const candidates = withoutLeftOut(couldEver, demand, { ...history, waitedLong: true }).filter(
    (node) => node.online && isLeftByDrains(node, demand),
  );
  const groups = isBoundToOneSwitch(resources)
    ? nearestGroups(candidates).map((group) => group.nodes)
    : [candidates];
  const { pin } = history;
  const isPinned = ({ name }: Pick<SchedulerNode, 'name'>) => pin?.nodes.has(name) === true;
  const [best] = groups
    .filter((group) => canHold(group, resources, pin))
    .map((group) => group.map((node) => lackOn(node, demand)).sort(nearestToFreeFirst))
    .map((lacks) => {
      const anchor = lacks.find(isPinned);
      const others = lacks.filter((lack) => lack !== anchor);
      return [...(anchor === undefined ? [] : [anchor]), ...others].slice(0, resources.minNodes);
    })
    .sort((a, b) => nearestToFreeFirst(totalOf(a), totalOf(b)));
  return best?.map(({ name }) => name) ?? [];
}

/** Whether nodes are enough for a job, and the place of its checkpoint is one of them; if not, nothing is gained by keeping them idle. */
export function canHold(
  nodes: readonly SchedulerNode[],
  { minNodes }: Pick<JobDemand['resources'], 'minNodes'>,
  pin: PlacementHistory['pin'],
): boolean {
  return nodes.length >= minNodes && (pin === null || nodes.some(({ name }) => pin.nodes.has(name)));
}

/** What is free is of no use to another node, so it is not counted. */
function lackOn(node: SchedulerNode, demand: JobDemand): NamedLack {
  const { gpus, cpus, memoryMb, tasks } = lackOf(node, demand);
  const positive = (lack: number) => Math.max(0, lack);
  return {
    name: node.name,
    gpus: positive(gpus),
    cpus: positive(cpus),
    memoryMb: positive(memoryMb),
    tasks: positive(tasks),
  };
}

/** @param lacks at least one; its name stands for all, so that no two groups are equal */
function totalOf(lacks: readonly NamedLack[]): NamedLack {
  return lacks.reduce((total, each) => ({ name: total.name, ...sum(total, each) }));
}
