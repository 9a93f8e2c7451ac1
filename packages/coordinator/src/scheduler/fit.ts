/**
 * Does a job fit, and if not, why? The planner and `muster explain` ask the same function, so that the reason shown is
 * the reason.
 */

import type { Gpu } from '@muster/common/hardware';
import type { JobResources } from '@muster/common/spec/types';
import type { PendingReason } from '@muster/common/views';
import {
  acceptableGpus,
  type DriverName,
  fitsEmpty,
  hasFreeCpus,
  hasFreeGpus,
  hasFreeMemory,
  isLeftByDrains,
  type JobDemand,
  jobDemand,
} from './capacity.ts';
import { chooseGang, gangSizeMax } from './gang.ts';
import { chooseGpus } from './gpuSet.ts';
import { byName, gpuOrder, placementOrder } from './order.ts';
import {
  describeTask,
  neverFits,
  sentenceParts,
  tooFarApart,
  withDrains,
  withLeftOut,
  withSilent,
} from './reasons.ts';
import { byPlace } from './topology.ts';
import { type LeftOutNodes, type NodeView, nothingLeftOut } from './view.ts';

export interface Fit {
  readonly node: NodeView;
  readonly gpus: readonly Gpu[];
}

export type FitResult =
  /** By node rank. */
  | { readonly kind: 'fits'; readonly placements: readonly Fit[] }
  | { readonly kind: 'waits'; readonly reason: PendingReason };

/**
 * Chooses nodes for all tasks of a job at once, as many as it can have now, or says why there are not enough.
 * @param reserved nodes kept for a job that comes first
 * @param leftOut nodes that it failed on
 * @param waitedLong long enough for nodes that are away not to be waited for when there are left-out ones to try
 */
export function fit(
  nodes: readonly NodeView[],
  resources: JobResources,
  driver: DriverName,
  reserved: ReadonlySet<string>,
  leftOut: LeftOutNodes = nothingLeftOut,
  waitedLong = false,
): FitResult {
  const demand = jobDemand(resources, driver);
  const couldEver = nodes.filter((node) => fitsEmpty(node, demand));
  if (gangSizeMax(couldEver, resources) < resources.minNodes) {
    return { kind: 'waits', reason: neverFits(nodes, couldEver, demand) };
  }
  const eligible = withoutLeftOut(couldEver, demand, leftOut, waitedLong);
  const online = eligible.filter((node) => node.online);
  const undrained = online.filter((node) => isLeftByDrains(node, demand));
  const withGpus = undrained.filter((node) => hasFreeGpus(node, demand));
  const withCpus = withGpus.filter((node) => hasFreeCpus(node, demand));
  const free = withCpus.filter((node) => hasFreeMemory(node, demand));
  const usable = free.filter((node) => !reserved.has(node.name));
  const size = gangSizeMax(usable, resources);
  if (size >= resources.minNodes) return { kind: 'fits', placements: place(usable, size, demand, leftOut) };

  const away = eligible.filter((node) => !node.online);
  const reason = whyNotNow({ away, online, undrained, withGpus, withCpus, free }, demand);
  const spared = couldEver.filter((node) => node.online && !eligible.includes(node));
  return { kind: 'waits', reason: withLeftOut(reason, spared.sort(byName), leftOut) };
}

/**
 * The nodes of these that a job may use: not those it failed on, as long as the others will do. Others that are away or
 * drained may be back in a moment, or never: after a while they do not count. It is better to try again than to wait for
 * ever.
 */
export function withoutLeftOut(
  couldEver: readonly NodeView[],
  demand: JobDemand,
  leftOut: LeftOutNodes,
  waitedLong: boolean,
): readonly NodeView[] {
  if (leftOut.size === 0) return couldEver;
  const others = couldEver.filter((node) => !leftOut.has(node.name));
  const there = waitedLong ? others.filter((node) => node.online && isLeftByDrains(node, demand)) : others;
  return gangSizeMax(there, demand.resources) >= demand.resources.minNodes ? others : couldEver;
}

function place(
  usable: readonly NodeView[],
  size: number,
  { resources, task }: JobDemand,
  leftOut: LeftOutNodes,
): readonly Fit[] {
  const order = (a: NodeView, b: NodeView) =>
    Number(leftOut.has(a.name)) - Number(leftOut.has(b.name)) || placementOrder(a, b);
  return (
    [...chooseGang([...usable].sort(order), size, resources)]
      // Ranks in the order of places, then names: neighbours in a ring are neighbours in the network, people expect
      // rank 0 on the first node, and equal input gives equal ranks.
      .sort(byPlace)
      .map((node) => ({
        node,
        gpus: chooseGpus(
          [...acceptableGpus(node.freeGpus, resources)].sort(gpuOrder),
          task.gpus,
          node.inventory.links,
        ),
      }))
  );
}

/** What is left of the nodes that a job may use, step by step. */
interface Steps {
  /** They do not answer; all others follow from those that do. */
  readonly away: readonly NodeView[];
  readonly online: readonly NodeView[];
  readonly undrained: readonly NodeView[];
  readonly withGpus: readonly NodeView[];
  readonly withCpus: readonly NodeView[];
  /** With room for one task of it. */
  readonly free: readonly NodeView[];
}

function whyNotNow(
  { away, online, undrained, withGpus, withCpus, free }: Steps,
  demand: JobDemand,
): PendingReason {
  const { resources } = demand;
  const { minNodes: wanted } = resources;
  const { ofNodes, ofTheNodes } = sentenceParts(resources);
  if (online.length < wanted) {
    const message =
      wanted === 1 ? 'no node that could take it is online' : `${online.length} ${ofTheNodes} are online`;
    return withSilent({ kind: 'no_nodes', message, remedy: null }, away.toSorted(byName));
  }
  // What conditions keep away is part of the answer wherever it might have done.
  const isDrainedAway = (node: NodeView) => !isLeftByDrains(node, demand) || !hasFreeGpus(node, demand);
  const drains = online.filter((node) => node.drained.kinds.length > 0 && isDrainedAway(node)).sort(byName);
  if (undrained.length < wanted) {
    const message = wanted === 1 ? 'no node can take it' : `${undrained.length} ${ofTheNodes} can take it`;
    return withDrains({ kind: 'drained', message, remedy: null }, drains);
  }
  const lacking = (kind: PendingReason['kind'], nodes: readonly NodeView[]) => {
    const message = `${nodes.length} ${ofNodes} have ${describeTask(demand)} free`;
    const silent = nodes.length + away.length < wanted ? [] : away.toSorted(byName);
    return withDrains(withSilent({ kind, message, remedy: null }, silent), drains);
  };
  if (withGpus.length < wanted) return lacking('no_gpus_free', withGpus);
  if (withCpus.length < wanted) return lacking('no_cpus_free', withCpus);
  if (free.length < wanted) return lacking('no_memory_free', free);
  if (gangSizeMax(free, resources) < wanted) return withDrains(tooFarApart(free, resources, 'free'), drains);
  const message = 'nodes that are free are being kept for a job that has waited longer';
  return { kind: 'reserved', message, remedy: null };
}
