/** Why a job waits, in words, from what `fit` found. */
import type { JobResources } from '@muster/common/spec/types';
import type { PendingReason } from '@muster/common/views';
import { acceptableGpus, type JobDemand } from './capacity.ts';
import { largestGroup, switchPath } from './topology.ts';
import type { ExcludedNodes, SchedulerNode } from './view.ts';

/** More than a person wants to read in a sentence, of nodes and of kinds. */
const namedMax = 3;

/** `2 of the 4 nodes it needs`: a job that takes a range needs its lower end. */
export function sentenceParts({ minNodes, nodes }: JobResources) {
  const isElastic = minNodes < nodes;
  return {
    ofTheNodes: `of the ${minNodes} nodes it needs${isElastic ? ' at least' : ''}`,
    needs: `it needs ${isElastic ? 'at least ' : ''}${minNodes}`,
  };
}

/** @param fitting nodes that could take one task of it, if they were empty */
export function neverFits(
  nodes: readonly SchedulerNode[],
  fitting: readonly SchedulerNode[],
  demand: JobDemand,
): PendingReason {
  const { resources, driver } = demand;
  const { needs } = sentenceParts(resources);
  if (nodes.length === 0) {
    return {
      kind: 'no_nodes',
      message: 'the cluster has no nodes yet',
      remedy: 'add one: `muster token create NAME` here, `muster agent` there',
    };
  }
  const wanted = resources.minNodes;
  if (nodes.length < wanted) {
    const message = `the cluster has ${countOf(nodes.length, 'node')}, and ${needs} at the same time`;
    return never(message, 'ask for fewer nodes (resources.nodes), or add nodes');
  }
  const withDriver = nodes.filter((node) => node.inventory.drivers.includes(driver));
  if (withDriver.length < wanted) {
    const can = `${withDriver.length} of ${nodes.length} nodes can run`;
    return driver === 'docker'
      ? never(`${can} containers, and ${needs}`, 'install Docker on the nodes, or remove `image`')
      : never(`${can} processes, and ${needs}`, 'name an `image` to run in containers');
  }
  if (fitting.length >= wanted) return { ...tooFarApart(fitting, resources, null), kind: 'never_fits' };
  const task = describeTask(demand);
  const able = `${fitting.length} of the ${countOf(nodes.length, 'node')} in the cluster`;
  const message =
    fitting.length === 0
      ? `no node has ${task}${largestText(withDriver, demand)}`
      : `only ${able} ${fitting.length === 1 ? 'has' : 'have'} ${task}, and ${needs}`;
  return never(message, remedyFor(withDriver, demand));
}

/** ` (largest has 2)`: of the one thing that no node has enough of, as far as there is one. */
function largestText(nodes: readonly SchedulerNode[], { resources, task }: JobDemand): string {
  const most = (amountOn: (node: SchedulerNode) => number) => Math.max(0, ...nodes.map(amountOn));
  const gpus = most((node) => acceptableGpus(node.inventory.gpus, resources).length);
  const cpus = most((node) => node.inventory.cpus);
  const memoryMb = most((node) => node.inventory.memoryMb);
  if (gpus < task.gpus) return gpus === 0 ? '' : ` (largest has ${gpus})`;
  if (cpus < task.cpus) return ` (largest has ${countOf(cpus, 'CPU')})`;
  return memoryMb < task.memoryMb ? ` (largest has ${memoryMb} MiB of memory)` : '';
}

/** What there is of the thing that is lacking, on nodes that may be used: how much of it, and how much is not free. */
export interface InUse {
  readonly used: number;
  readonly total: number;
  /** `GPUs`, `CPUs`, `MiB of memory`. */
  readonly unit: string;
}

/**
 * `waiting for 2 free GPUs on one node (4 of 4 GPUs in use)`,
 * `waiting for 2 nodes with 8 free GPUs each (1 has them now; 12 of 16 GPUs in use)`.
 * @param having nodes that have it now
 */
export function waitingFor(demand: JobDemand, having: number, { used, total, unit }: InUse): string {
  const { minNodes, nodes } = demand.resources;
  const free = describeTask(demand, 'free ');
  const inUse = `${amount(used)} of ${amount(total)} ${unit} in use`;
  if (minNodes === 1) return `waiting for ${free} on one node (${inUse})`;
  const each = `${minNodes < nodes ? 'at least ' : ''}${minNodes} nodes with ${free} each`;
  return `waiting for ${each} (${having === 1 ? '1 has' : `${having} have`} them now; ${inUse})`;
}

/** CPUs come in fractions. */
function amount(value: number): string {
  return String(Number(value.toFixed(1)));
}

function never(message: string, remedy: string): PendingReason {
  return { kind: 'never_fits', message, remedy };
}

/** Names the one thing that is asked for too much of, as far as there is one. */
function remedyFor(nodes: readonly SchedulerNode[], { resources, task }: JobDemand): string {
  /** What as many nodes as the job needs have at least. */
  const available = (amountOn: (node: SchedulerNode) => number) =>
    nodes.map(amountOn).sort((a, b) => b - a)[resources.minNodes - 1] ?? 0;
  const gpus = available((node) => acceptableGpus(node.inventory.gpus, resources).length);
  const cpus = available((node) => node.inventory.cpus);
  const memoryMb = available((node) => node.inventory.memoryMb);
  const isChoosy = resources.gpuType.length > 0 || resources.gpuMemoryMb !== null;
  if (gpus === 0 && task.gpus > 0) {
    return isChoosy
      ? 'ask for GPUs that the nodes have (resources.gpu_type, resources.gpu_memory_mb), or add nodes'
      : 'add nodes with GPUs, or ask for none (resources.gpus)';
  }
  if (gpus < task.gpus) {
    const kind = isChoosy ? ' of that kind' : '';
    return `ask for at most ${countOf(gpus, 'GPU')}${kind} per node (resources.gpus), or add nodes`;
  }
  if (cpus < task.cpus)
    return `ask for at most ${countOf(cpus, 'CPU')} per node (resources.cpus), or add nodes`;
  if (memoryMb < task.memoryMb) {
    return `ask for at most ${memoryMb} MiB of memory per node (resources.memory_mb), or add nodes`;
  }
  return 'no node has all of these resources: ask for less per node or fewer nodes, or add nodes';
}

/**
 * There are enough nodes, but not under one switch, and the job is bound to one.
 * @param nodes that would do
 * @param what is special about them; null: they are there
 */
export function tooFarApart(
  nodes: readonly SchedulerNode[],
  resources: JobResources,
  what: 'free' | null,
): PendingReason {
  const { ofTheNodes } = sentenceParts(resources);
  const largest = largestGroup(nodes);
  if (largest === null || nodes.every((node) => switchPath(node).length === 0)) {
    const kind = what === null ? 'node' : `${what} node`;
    return {
      kind: 'topology',
      message: `topology: required needs nodes under one switch, and none of the ${countOf(nodes.length, kind)} has a topology label`,
      remedy: 'start agents with --label topology=RACK/LEAF/SPINE, or ask for topology: preferred',
    };
  }
  const place = largest.switchName === null ? '' : ` (${largest.switchName})`;
  const are = what === null ? 'are' : `are ${what}`;
  return {
    kind: 'topology',
    message: `at most ${largest.nodes.length} ${ofTheNodes} ${are} under one switch${place}`,
    remedy: 'ask for topology: preferred to start across switches, or for fewer nodes',
  };
}

/** @param silent nodes that might have done, but do not answer */
export function withSilent(reason: PendingReason, silent: readonly SchedulerNode[]): PendingReason {
  if (silent.length === 0) return reason;
  const named = listed(silent.map(({ name }) => `${name} is silent`));
  const remedy = 'bring silent nodes back; `muster nodes` shows which are';
  return { ...reason, message: `${reason.message}; ${named.join('; ')}`, remedy };
}

/** @param drains nodes that might have done, but for their conditions */
export function withDrains(reason: PendingReason, drains: readonly SchedulerNode[]): PendingReason {
  const [first] = drains;
  if (first === undefined) return reason;
  return {
    kind: reason.kind,
    message: `${reason.message}; ${listed(drains.map(describeDrain)).join('; ')}`,
    remedy: drainRemedy(first),
  };
}

/** What ends the drain of a drained node. */
export function drainRemedy({
  name,
  drained: { drainReason },
}: Pick<SchedulerNode, 'name' | 'drained'>): string {
  return drainReason === null
    ? `\`muster node ${name}\` shows what is wrong there and what clears it`
    : `\`muster node undrain ${name}\` gives it new tasks again`;
}

/** @param nodes that might have done, but for tasks that the store does not know */
export function withOrphans(reason: PendingReason, nodes: readonly SchedulerNode[]): PendingReason {
  const [first] = nodes;
  if (first === undefined) return reason;
  const held = nodes.map(
    ({ name, orphanedGpus }) =>
      `${countOf(orphanedGpus, 'GPU')} of ${name} held by tasks unknown to the store`,
  );
  return {
    kind: reason.kind,
    message: `${reason.message}; ${listed(held).join('; ')}`,
    remedy: `\`muster node end-orphans ${first.name}\` kills the tasks there that the store does not know`,
  };
}

/** @param spared nodes that might have done, but for what happened on them */
export function namingExcludedNodes(
  reason: PendingReason,
  spared: readonly SchedulerNode[],
  excludedNodes: ExcludedNodes,
): PendingReason {
  if (spared.length === 0) return reason;
  const named = spared.map(({ name }) => `${name} is excluded (${excludedNodes.get(name) ?? 'unknown'})`);
  return { ...reason, message: `${reason.message}; ${listed(named).join('; ')}` };
}

/** The first few, and how many more there are. */
function listed(sentences: readonly string[]): readonly string[] {
  const more = sentences.length - namedMax;
  return more <= 0 ? sentences : [...sentences.slice(0, namedMax), `and ${countOf(more, 'node')} more`];
}

/** `2 of 8 GPUs of node-3 are drained (xid_79)`, `node-3 is drained (kernel update)` */
function describeDrain(node: SchedulerNode): string {
  const { name, drained, inventory } = node;
  const { size } = drained.gpuUuids;
  const gpus = `${size} of ${countOf(inventory.gpus.length, 'GPU')} of ${name}`;
  return `${drained.node ? `${name} is` : `${gpus} ${size === 1 ? 'is' : 'are'}`} ${drainText(node)}`;
}

/** `drained (xid_79, clock_skew)` */
export function drainText({ drained: { drainReason, kinds } }: Pick<SchedulerNode, 'drained'>): string {
  const all = drainReason === null ? kinds : [drainReason, ...kinds];
  return `drained (${all.slice(0, namedMax).join(', ')}${all.length > namedMax ? ', …' : ''})`;
}

/** What one task takes: `8 H100 GPUs and 4 CPUs`. @param free `free `: before the first thing */
export function describeTask({ resources, task }: JobDemand, free: 'free ' | '' = ''): string {
  const parts: string[] = [];
  if (task.gpus > 0) {
    const type = resources.gpuType.length > 0 ? `${resources.gpuType.join('/')} ` : '';
    const memory = resources.gpuMemoryMb === null ? '' : ` of ${resources.gpuMemoryMb} MiB`;
    parts.push(`${countOf(task.gpus, `${free}${type}GPU`)}${memory}`);
  }
  const first = () => (parts.length === 0 ? free : '');
  if (task.cpus > 0) parts.push(countOf(task.cpus, `${first()}CPU`));
  if (task.memoryMb > 0) parts.push(`${task.memoryMb} ${first()}MiB of memory`);
  const last = parts.pop();
  if (last === undefined) return 'room';
  return parts.length === 0 ? last : `${parts.join(', ')} and ${last}`;
}

function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
