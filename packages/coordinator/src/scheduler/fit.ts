/** Does a job fit, and if not, why? The reason is looked for when it is asked for, which costs more than the answer. */

import type { Gpu } from '@muster/common/hardware';
import {
  acceptableGpus,
  fitsEmpty,
  hasFreeCpus,
  hasFreeGpus,
  hasFreeMemory,
  hasFreeTask,
  hasRoom,
  isLeftByDrains,
  type JobDemand,
} from './capacity.ts';
import { chooseGpus } from './gpuSet.ts';
import { gpuOrder, placementOrder } from './order.ts';
import { anchoredGang, whyNotAround, whyPinned } from './pin.ts';
import {
  drainsOf,
  excludedOf,
  namesOf,
  neverFits,
  noObstacles,
  orphanedGpusOf,
  tooFarApart,
  type WaitReason,
} from './reasons.ts';
import { byPlace } from './topology.ts';
import { chooseGang, gangSizeMax, isBoundToOneSwitch } from './topologyGroups.ts';
import { type ExcludedNodes, noHistory, type PlacementHistory, type SchedulerNode } from './view.ts';

export interface Fit {
  readonly node: SchedulerNode;
  readonly gpus: readonly Gpu[];
}

/**
 * Chooses nodes for all tasks of a job at once, as many as it can have now.
 * @param reserved nodes kept for a job that comes first
 * @returns by node rank; null: it has to wait, and `whyNot` has the reason
 */
export function fit(
  nodes: readonly SchedulerNode[],
  demand: JobDemand,
  reserved: ReadonlySet<string>,
  history: PlacementHistory = noHistory,
): readonly Fit[] | null {
  const { resources } = demand;
  const { excludedNodes, pin } = history;
  const eligible = excludedNodes.size === 0 ? nodes : withoutLeftOut(nodes, demand, history);
  const usable = eligible.filter((node) => hasRoom(node, demand) && !reserved.has(node.name));
  usable.sort((a, b) => excludedLast(excludedNodes, a, b) || placementOrder(a, b));
  const size = gangSizeMax(usable, resources);
  if (size < resources.minNodes) return null;
  // Ranks in the order of places, then names: neighbours in a ring are neighbours in the network, people expect
  // rank 0 on the first node, and equal input gives equal ranks.
  const gang =
    pin === null
      ? [...chooseGang(usable, size, resources)].sort(byPlace)
      : anchoredGang(usable, resources, pin);
  return gang?.map((node) => placement(node, demand)) ?? null;
}

/**
 * The reason why `fit` finds no nodes for a job.
 * @param nodes as they were then, or with less that is free
 */
export function whyNot(
  nodes: readonly SchedulerNode[],
  demand: JobDemand,
  reserved: ReadonlySet<string>,
  history: PlacementHistory = noHistory,
): WaitReason {
  const { resources } = demand;
  const { pin } = history;
  const couldEver = nodes.filter((node) => fitsEmpty(node, demand));
  if (gangSizeMax(couldEver, resources) < resources.minNodes) return neverFits(nodes, couldEver, demand);
  if (pin !== null) {
    const homes = nodes.filter(({ name }) => pin.nodes.has(name));
    const reason = whyPinned(homes, reserved, demand, pin);
    if (reason !== null) return reason;
    if (isBoundToOneSwitch(resources)) return whyNotAround(pin);
  }
  const eligible = withoutLeftOut(couldEver, demand, history);
  const away = eligible.filter((node) => !node.online);
  const online = eligible.filter((node) => node.online);
  const undrained = online.filter((node) => isLeftByDrains(node, demand));
  const withGpus = undrained.filter((node) => hasFreeGpus(node, demand));
  const withCpus = withGpus.filter((node) => hasFreeCpus(node, demand));
  const withMemory = withCpus.filter((node) => hasFreeMemory(node, demand));
  const free = withMemory.filter(hasFreeTask);
  const spared = eligible === couldEver ? [] : sparedOf(couldEver, new Set(eligible));
  const steps = { away, online, undrained, withGpus, withCpus, withMemory, free };
  return whyNotNow(steps, spared, demand, history, nodes.length);
}

/** The nodes that a job may have tasks on, were there room. */
export function mayUse(
  nodes: readonly SchedulerNode[],
  demand: JobDemand,
  reserved: ReadonlySet<string>,
  history: PlacementHistory,
): readonly SchedulerNode[] {
  const couldEver = nodes.filter((node) => fitsEmpty(node, demand));
  return withoutLeftOut(couldEver, demand, history).filter(
    (node) => node.online && isLeftByDrains(node, demand) && !reserved.has(node.name),
  );
}

/**
 * The nodes of these that a job may use: not those it failed on, as long as the others will do. Others that are away or
 * drained may be back in a moment, or never: after a while they do not count. It is better to try again than to wait for
 * ever. Where its newest checkpoint lies it may always be: to do without it would be to lose the work.
 */
export function withoutLeftOut(
  nodes: readonly SchedulerNode[],
  demand: JobDemand,
  { excludedNodes, waitedLong, pin }: PlacementHistory,
): readonly SchedulerNode[] {
  if (excludedNodes.size === 0) return nodes;
  const others = nodes.filter((node) => !excludedNodes.has(node.name) || pin?.nodes.has(node.name) === true);
  const able = others.filter((node) => fitsEmpty(node, demand));
  const there = waitedLong ? able.filter((node) => node.online && isLeftByDrains(node, demand)) : able;
  return gangSizeMax(there, demand.resources) >= demand.resources.minNodes ? others : nodes;
}

function excludedLast(excludedNodes: ExcludedNodes, a: SchedulerNode, b: SchedulerNode): number {
  return Number(excludedNodes.has(a.name)) - Number(excludedNodes.has(b.name));
}

function placement(node: SchedulerNode, { resources, task }: JobDemand): Fit {
  const gpus = [...acceptableGpus(node.freeGpus, resources)].sort(gpuOrder);
  return { node, gpus: chooseGpus(gpus, task.gpus, node.inventory.links) };
}

/** Nodes that answer, and that a job is kept away from. */
function sparedOf(
  couldEver: readonly SchedulerNode[],
  eligible: ReadonlySet<SchedulerNode>,
): readonly SchedulerNode[] {
  return couldEver.filter((node) => node.online && !eligible.has(node));
}

/** What is left of the nodes that a job may use, step by step. */
interface Steps {
  /** They do not answer; all others follow from those that do. */
  readonly away: readonly SchedulerNode[];
  readonly online: readonly SchedulerNode[];
  readonly undrained: readonly SchedulerNode[];
  readonly withGpus: readonly SchedulerNode[];
  readonly withCpus: readonly SchedulerNode[];
  readonly withMemory: readonly SchedulerNode[];
  /** With room for one task of it. */
  readonly free: readonly SchedulerNode[];
}

function whyNotNow(
  { away, online, undrained, withGpus, withCpus, withMemory, free }: Steps,
  spared: readonly SchedulerNode[],
  demand: JobDemand,
  { excludedNodes }: PlacementHistory,
  of: number,
): WaitReason {
  const { resources } = demand;
  const { minNodes: want } = resources;
  const excluded = excludedOf(spared, excludedNodes);
  if (online.length < want) {
    const obstacles = { ...noObstacles, silent: namesOf(away), excluded };
    return { kind: 'no_nodes', have: online.length, want, of, obstacles };
  }
  // What conditions keep away is part of the answer wherever it might have done.
  const isDrained = ({ drained }: SchedulerNode) => drained.node || drained.gpuUuids.size > 0;
  const isDrainedAway = (node: SchedulerNode) => !isLeftByDrains(node, demand) || !hasFreeGpus(node, demand);
  const drained = drainsOf(online.filter((node) => isDrained(node) && isDrainedAway(node)));
  const byDrains = { ...noObstacles, drained, excluded };
  if (undrained.length < want) return { kind: 'drained', have: undrained.length, want, obstacles: byDrains };
  const lacking = ({ length: have }: readonly SchedulerNode[]) => {
    const silent = have + away.length < want ? [] : namesOf(away);
    return { have, want, obstacles: { ...byDrains, silent } };
  };
  if (withGpus.length < want) {
    const orphaned = undrained.filter((node) => node.orphanedGpus > 0 && !hasFreeGpus(node, demand));
    const { obstacles, ...counts } = lacking(withGpus);
    return {
      kind: 'no_gpus_free',
      ...counts,
      ...gpusInUse(undrained, demand),
      obstacles: { ...obstacles, orphaned: orphanedGpusOf(orphaned) },
    };
  }
  if (withCpus.length < want) return { kind: 'no_cpus_free', ...lacking(withCpus), ...cpusInUse(withGpus) };
  if (withMemory.length < want)
    return { kind: 'no_memory_free', ...lacking(withMemory), ...memoryInUse(withCpus) };
  if (free.length < want) return { kind: 'node_full', ...lacking(free) };
  if (gangSizeMax(free, resources) < want)
    return { kind: 'topology', ...tooFarApart(free, resources), obstacles: byDrains };
  return { kind: 'reserved', by: 'waitedLonger', obstacles: { ...noObstacles, excluded } };
}

/** Of one resource on some nodes. */
interface InUse {
  readonly used: number;
  readonly total: number;
}

function gpusInUse(nodes: readonly SchedulerNode[], { resources }: JobDemand): InUse {
  const all = sumOver(nodes, ({ inventory, drained }) => {
    const { gpus } = inventory;
    const { gpuUuids } = drained;
    // Of almost every node, for each kind of job that waits.
    if (gpuUuids.size === 0) return acceptableGpus(gpus, resources).length;
    const undrained = gpus.filter(({ uuid }) => !gpuUuids.has(uuid));
    return acceptableGpus(undrained, resources).length;
  });
  const free = sumOver(nodes, ({ freeGpus }) => acceptableGpus(freeGpus, resources).length);
  return { used: all - free, total: all };
}

function cpusInUse(nodes: readonly SchedulerNode[]): InUse {
  const total = sumOver(nodes, ({ inventory }) => inventory.cpus);
  // CPUs come in fractions, whose sum must not depend on the order in which they are added up.
  const used = Math.round((total - sumOver(nodes, ({ freeCpus }) => freeCpus)) * 1e6) / 1e6;
  return { used, total };
}

function memoryInUse(nodes: readonly SchedulerNode[]): InUse {
  const total = sumOver(nodes, ({ inventory }) => inventory.memoryMb);
  const free = sumOver(nodes, ({ freeMemoryMb }) => freeMemoryMb);
  return { used: total - free, total };
}

function sumOver(nodes: readonly SchedulerNode[], amountOn: (node: SchedulerNode) => number): number {
  return nodes.reduce((sum, node) => sum + amountOn(node), 0);
}
