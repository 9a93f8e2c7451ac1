/**
 * Does a job fit, and if not, why? The planner and `muster explain` ask the same function, so that the reason shown is
 * the reason.
 */

import type { Gpu } from '@muster/common/hardware';
import type { JobResources } from '@muster/common/spec/types';
import type { PendingReason } from '@muster/common/views';
import { chooseGpus } from './gpuSet.ts';
import { byName, gpuOrder, placementOrder } from './order.ts';
import type { NodeView } from './view.ts';

/** What one task of a job takes from a node. */
export interface TaskDemand {
  readonly gpus: number;
  readonly cpus: number;
  readonly memoryMb: number;
}

/**
 * A job that names no CPUs takes one when it has no GPUs, so that a flood of small jobs cannot overrun a node, and none
 * when it has: there the GPUs are the scarce thing, and their number says nothing about CPUs.
 */
export function taskDemand(resources: JobResources): TaskDemand {
  return {
    gpus: resources.gpus,
    cpus: resources.cpus ?? (resources.gpus === 0 ? 1 : 0),
    memoryMb: resources.memoryMb ?? 0,
  };
}

export function acceptableGpus(gpus: readonly Gpu[], resources: JobResources): readonly Gpu[] {
  // Most jobs take any GPU, and a pass asks this for every node and job.
  if (resources.gpuType.length === 0 && resources.gpuMemoryMb === null) return gpus;
  return gpus.filter(
    (gpu) =>
      (resources.gpuType.length === 0 ||
        resources.gpuType.some((type) => gpu.model.toLowerCase().includes(type.toLowerCase()))) &&
      (resources.gpuMemoryMb === null || (gpu.memoryMb !== null && gpu.memoryMb >= resources.gpuMemoryMb)),
  );
}

/** More than a person wants to read in a sentence, of nodes and of kinds. */
const drainsNamedMax = 3;

export interface Fit {
  readonly node: NodeView;
  readonly gpus: readonly Gpu[];
}

export type FitResult =
  | { readonly kind: 'fits'; readonly placements: readonly Fit[] }
  | { readonly kind: 'waits'; readonly reason: PendingReason };

/**
 * Chooses nodes for all tasks of a job at once, or says why there are not enough.
 * @param reserved nodes kept for a job that comes first
 */
export function fit(
  nodes: readonly NodeView[],
  resources: JobResources,
  driver: 'process' | 'docker',
  reserved: ReadonlySet<string>,
): FitResult {
  const demand = taskDemand(resources);
  const couldEver = nodes.filter((node) => fitsEmpty(node, resources, demand, driver));
  if (couldEver.length < resources.nodes) {
    return { kind: 'waits', reason: neverFits(nodes, couldEver.length, resources, demand, driver) };
  }
  const online = couldEver.filter((node) => node.online);
  const undrained = online.filter((node) => isLeftByDrains(node, resources, demand));
  const withGpus = undrained.filter((node) => hasFreeGpus(node, resources, demand));
  const withCpus = withGpus.filter((node) => hasCpus(node.freeCpus, demand));
  const withMemory = withCpus.filter((node) => node.freeMemoryMb >= demand.memoryMb);
  const usable = withMemory.filter((node) => !reserved.has(node.name));
  if (usable.length >= resources.nodes) {
    const placements = [...usable]
      .sort(placementOrder)
      .slice(0, resources.nodes)
      // Ranks in the order of names: people expect rank 0 on the first node, and equal input gives equal ranks.
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map((node) => ({
        node,
        gpus: chooseGpus(
          [...acceptableGpus(node.freeGpus, resources)].sort(gpuOrder),
          demand.gpus,
          node.inventory.links,
        ),
      }));
    return { kind: 'fits', placements };
  }
  const wanted = resources.nodes;
  const each = describeDemand(resources, demand);
  if (online.length < wanted) {
    const message =
      wanted === 1
        ? 'no node that could take it is online'
        : `${online.length} of the ${wanted} nodes it needs are online`;
    return waits('no_nodes', message, 'bring silent nodes back; `muster nodes` shows which are');
  }
  // What conditions keep away is part of the answer wherever it might have done.
  const isDrainedAway = (node: NodeView) =>
    !isLeftByDrains(node, resources, demand) || !hasFreeGpus(node, resources, demand);
  const drains = online.filter((node) => node.drained.kinds.length > 0 && isDrainedAway(node)).sort(byName);
  if (undrained.length < wanted) {
    const message =
      wanted === 1
        ? 'no node can take it'
        : `${undrained.length} of the ${wanted} nodes it needs can take it`;
    return waitsBehind(drains, 'drained', message);
  }
  if (withGpus.length < wanted) {
    return waitsBehind(drains, 'no_gpus_free', `${withGpus.length} of ${wanted} nodes have ${each} free`);
  }
  if (withCpus.length < wanted) {
    return waitsBehind(drains, 'no_cpus_free', `${withCpus.length} of ${wanted} nodes have ${each} free`);
  }
  if (withMemory.length < wanted) {
    return waitsBehind(drains, 'no_memory_free', `${withMemory.length} of ${wanted} nodes have ${each} free`);
  }
  return waits('reserved', 'nodes that are free are being kept for a job that has waited longer', null);
}

/** Would one task of the job fit if nothing else ran on the node, with what conditions leave of it? */
export function isLeftByDrains(
  { drained, inventory }: NodeView,
  resources: JobResources,
  demand: TaskDemand,
): boolean {
  if (drained.node) return false;
  if (drained.gpuUuids.size === 0) return true;
  const gpus = inventory.gpus.filter((gpu) => !drained.gpuUuids.has(gpu.uuid));
  return acceptableGpus(gpus, resources).length >= demand.gpus;
}

function hasFreeGpus(node: NodeView, resources: JobResources, demand: TaskDemand): boolean {
  return acceptableGpus(node.freeGpus, resources).length >= demand.gpus;
}

/** CPUs come in fractions, and ten times 0.7 adds up to a hair more than 7: that must not cost a place. */
function hasCpus(cpus: number, demand: TaskDemand): boolean {
  return cpus - demand.cpus > -1e-6;
}

/** Would one task of the job fit if nothing else ran on the node? */
export function fitsEmpty(
  node: NodeView,
  resources: JobResources,
  demand: TaskDemand,
  driver: 'process' | 'docker',
): boolean {
  const { inventory } = node;
  return (
    inventory.drivers.includes(driver) &&
    acceptableGpus(inventory.gpus, resources).length >= demand.gpus &&
    inventory.cpus >= demand.cpus &&
    inventory.memoryMb >= demand.memoryMb
  );
}

function neverFits(
  nodes: readonly NodeView[],
  fitting: number,
  resources: JobResources,
  demand: TaskDemand,
  driver: 'process' | 'docker',
): PendingReason {
  if (nodes.length === 0) {
    return {
      kind: 'no_nodes',
      message: 'the cluster has no nodes yet',
      remedy: 'add one: `muster token create NAME` here, `muster agent` there',
    };
  }
  const wanted = resources.nodes;
  if (nodes.length < wanted) {
    return {
      kind: 'never_fits',
      message: `the cluster has ${countOf(nodes.length, 'node')}, and it needs ${wanted} at once`,
      remedy: 'ask for fewer nodes (resources.nodes), or add nodes',
    };
  }
  const withDriver = nodes.filter((node) => node.inventory.drivers.includes(driver));
  if (withDriver.length < wanted) {
    const can = `${withDriver.length} of ${nodes.length} nodes can run`;
    return {
      kind: 'never_fits',
      message: `${can} ${driver === 'docker' ? 'containers' : 'processes'}, and it needs ${wanted}`,
      remedy:
        driver === 'docker'
          ? 'install Docker on the nodes, or leave out `image`'
          : 'name an `image` to run in containers',
    };
  }
  return {
    kind: 'never_fits',
    message: `${fitting} of ${nodes.length} nodes have ${describeDemand(resources, demand)}, even when empty, and it needs ${wanted}`,
    remedy: remedyFor(withDriver, resources, demand),
  };
}

/** Names the one thing that is asked for too much of, as far as there is one. */
function remedyFor(nodes: readonly NodeView[], resources: JobResources, demand: TaskDemand): string {
  /** What as many nodes as the job wants have at least. */
  const available = (amountOn: (node: NodeView) => number) =>
    nodes.map(amountOn).sort((a, b) => b - a)[resources.nodes - 1] ?? 0;
  const gpus = available((node) => acceptableGpus(node.inventory.gpus, resources).length);
  const cpus = available((node) => node.inventory.cpus);
  const memoryMb = available((node) => node.inventory.memoryMb);
  const isChoosy = resources.gpuType.length > 0 || resources.gpuMemoryMb !== null;
  if (gpus === 0 && demand.gpus > 0) {
    return isChoosy
      ? 'ask for GPUs that the nodes have (resources.gpu_type, resources.gpu_memory_mb), or add nodes'
      : 'add nodes with GPUs, or ask for none (resources.gpus)';
  }
  if (gpus < demand.gpus) {
    const kind = isChoosy ? ' of that kind' : '';
    return `ask for at most ${countOf(gpus, 'GPU')}${kind} per node (resources.gpus), or add nodes`;
  }
  if (cpus < demand.cpus)
    return `ask for at most ${countOf(cpus, 'CPU')} per node (resources.cpus), or add nodes`;
  if (memoryMb < demand.memoryMb) {
    return `ask for at most ${memoryMb} MB of memory per node (resources.memory_mb), or add nodes`;
  }
  return 'no node has all of it together: ask for less per node or fewer nodes, or add nodes';
}

/** @param drains nodes that might have done, but for their conditions */
function waitsBehind(drains: readonly NodeView[], kind: PendingReason['kind'], message: string): FitResult {
  const [first] = drains;
  if (first === undefined) return waits(kind, message, null);
  const named = drains.slice(0, drainsNamedMax).map(describeDrain);
  if (drains.length > named.length) named.push(`and ${countOf(drains.length - named.length, 'node')} more`);
  const remedy = `\`muster node ${first.name}\` says what is wrong there and what ends it`;
  return waits(kind, `${message}; ${named.join('; ')}`, remedy);
}

/** `2 of 8 GPUs of node-3 are drained (xid_79)` */
function describeDrain({ name, drained, inventory }: NodeView): string {
  const { node, gpuUuids, kinds } = drained;
  const gpus = `${gpuUuids.size} of ${countOf(inventory.gpus.length, 'GPU')} of ${name}`;
  const what = node ? `${name} is` : `${gpus} ${gpuUuids.size === 1 ? 'is' : 'are'}`;
  const more = kinds.length > drainsNamedMax ? ', …' : '';
  return `${what} drained (${kinds.slice(0, drainsNamedMax).join(', ')}${more})`;
}

function describeDemand(resources: JobResources, demand: TaskDemand): string {
  const parts: string[] = [];
  if (demand.gpus > 0) {
    const type = resources.gpuType.length > 0 ? `${resources.gpuType.join('/')} ` : '';
    const memory = resources.gpuMemoryMb === null ? '' : ` of ${resources.gpuMemoryMb} MB`;
    parts.push(`${countOf(demand.gpus, `${type}GPU`)}${memory}`);
  }
  if (demand.cpus > 0) parts.push(countOf(demand.cpus, 'CPU'));
  if (demand.memoryMb > 0) parts.push(`${demand.memoryMb} MB of memory`);
  return parts.length === 0 ? 'room' : parts.join(', ');
}

function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function waits(kind: PendingReason['kind'], message: string, remedy: string | null): FitResult {
  return { kind: 'waits', reason: { kind, message, remedy } };
}
