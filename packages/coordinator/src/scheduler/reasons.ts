/** Why a queued job does not start, as data. `explain/waiting.ts` makes sentences of it for clients. */
import type { ArrayId, JobId, NodeName } from '@muster/common/ids';
import type { DependencyCondition } from '@muster/common/spec/after';
import type { JobResources } from '@muster/common/spec/types';
import type { Cause } from '@muster/common/views';
import { acceptableGpus, type JobDemand } from './capacity.ts';
import { byName } from './order.ts';
import { largestGroup, switchPath } from './topology.ts';
import type { ExcludedNodes, QueuedJob, SchedulerNode } from './view.ts';

export type WaitReason =
  | BlockedReason
  /** Nothing is started at the moment. */
  | { readonly kind: 'paused'; readonly why: string }
  | NeverFits
  | NodesAway
  | Shortage
  | (TooFarApart & { readonly kind: 'topology'; readonly obstacles: Obstacles })
  /** What is free is kept: for a job ahead that waits for the rest of its placement, or for one that has waited longer. */
  | { readonly kind: 'reserved'; readonly by: 'ahead' | 'waitedLonger'; readonly obstacles: Obstacles }
  /** These attempts are being preempted, and will release what it needs. */
  | { readonly kind: 'preempting'; readonly victims: readonly RankedJob[] }
  | CheckpointAway;

/** What more capacity would not change. */
export type BlockedReason =
  | { readonly kind: 'dependency_failed'; readonly on: JobId | ArrayId; readonly what: string }
  | { readonly kind: 'dependency'; readonly on: JobId | ArrayId; readonly when: DependencyCondition }
  /** Times are monotonic milliseconds. */
  | { readonly kind: 'backoff'; readonly untilMs: number }
  | { readonly kind: 'circuit_open'; readonly untilMs: number; readonly failures: number }
  | { readonly kind: 'array_limit'; readonly atOnce: number }
  /** The criterion of the phase that it has ended is being judged. */
  | { readonly kind: 'phase'; readonly phase: string };

export interface RankedJob {
  readonly id: JobId;
  readonly priority: number;
}

/** Nodes of the job: how many would do, and how many it needs. */
interface NodeCount {
  readonly have: number;
  readonly want: number;
}

/** An empty cluster would not do either. `of`: nodes in the cluster. */
export type NeverFits = NodeCount & { readonly kind: 'never_fits' } & (
    | { readonly lack: 'nodes' }
    | { readonly lack: 'driver'; readonly of: number }
    | { readonly lack: 'switch'; readonly apart: TooFarApart }
    | {
        readonly lack: 'resources';
        readonly of: number;
        /** What the largest node has of each resource. */
        readonly largest: Amounts;
        /** What each of as many nodes as the job needs has at least. */
        readonly available: Amounts;
      }
  );

/** Of nodes that can run what the job is. GPUs of the kind that it asks for. */
export interface Amounts {
  readonly gpus: number;
  readonly cpus: number;
  readonly memoryMb: number;
}

/** Too few suitable nodes are online. `of`: nodes in the cluster; 0: it has none yet. */
export interface NodesAway extends NodeCount {
  readonly kind: 'no_nodes';
  readonly of: number;
  readonly obstacles: Obstacles;
}

/** Too few nodes have room now. */
export type Shortage =
  | (NodeCount & { readonly kind: 'drained' | 'node_full'; readonly obstacles: Obstacles })
  | (NodeCount & {
      readonly kind: 'no_gpus_free' | 'no_cpus_free' | 'no_memory_free';
      /** Of what is lacking, on nodes that may be used: GPUs, CPUs, or MiB of memory. */
      readonly used: number;
      readonly total: number;
      readonly obstacles: Obstacles;
    });

/** There are enough nodes, but not under one switch, and the job is bound to one. */
export interface TooFarApart {
  /** Under the switch with the most of them, and in all. */
  readonly have: number;
  readonly of: number;
  readonly want: number;
  /** null: that switch has no name. */
  readonly switchName: string | null;
  /** One of the nodes at least has a topology label. */
  readonly isLabelled: boolean;
}

/** The job is pinned to nodes that cannot take it now. */
export interface CheckpointAway {
  readonly kind: 'checkpoint';
  readonly node: NodeName;
  /** `step 500`, or the name of a checkpoint without a step. */
  readonly checkpoint: string;
  /** Why the node cannot take it: its drain, or else. `lonely`: too few others under its switch are free. */
  readonly home: 'unsuitable' | 'silent' | 'reserved' | 'busy' | 'lonely' | DrainedNode;
}

/** Nodes that might have done, by name, and what keeps each of them out. */
export interface Obstacles {
  readonly silent: readonly NodeName[];
  readonly drained: readonly DrainedNode[];
  readonly orphaned: readonly { readonly node: NodeName; readonly gpus: number }[];
  readonly excluded: readonly { readonly node: NodeName; readonly cause: Cause['kind'] | null }[];
}

export const noObstacles: Obstacles = { silent: [], drained: [], orphaned: [], excluded: [] };

export interface DrainedNode {
  readonly node: NodeName;
  /** How many of its GPUs are drained; null: the whole node is. */
  readonly gpus: number | null;
  readonly of: number;
  /** Kinds of the conditions that drain it. */
  readonly kinds: readonly string[];
  /** Why a user drained it. null: no user did. */
  readonly drainReason: string | null;
}

/** @param nowMs monotonic milliseconds */
export function reasonBeforeResources(
  {
    dependencies,
    notBeforeMs,
    breakerFailures,
    phase,
  }: Pick<QueuedJob, 'dependencies' | 'notBeforeMs' | 'breakerFailures' | 'phase'>,
  nowMs: number,
): BlockedReason | null {
  if (phase !== null) return { kind: 'phase', phase };
  const { kind } = dependencies;
  if (kind === 'failed') return { kind: 'dependency_failed', on: dependencies.on, what: dependencies.what };
  if (kind === 'waiting') return { kind: 'dependency', on: dependencies.on, when: dependencies.when };
  if (notBeforeMs <= nowMs) return null;
  return breakerFailures === null
    ? { kind: 'backoff', untilMs: notBeforeMs }
    : { kind: 'circuit_open', untilMs: notBeforeMs, failures: breakerFailures };
}

/** @param atWork how many jobs of each array have an attempt */
export function reasonOfArray(
  { array, spec }: Pick<QueuedJob, 'array' | 'spec'>,
  atWork: ReadonlyMap<ArrayId, number>,
): BlockedReason | null {
  const atOnce = spec.array?.atOnce ?? null;
  const running = array === null ? 0 : (atWork.get(array) ?? 0);
  return atOnce === null || running < atOnce ? null : { kind: 'array_limit', atOnce };
}

/** @param fitting nodes that could take one task of it, if they were empty: too few */
export function neverFits(
  nodes: readonly SchedulerNode[],
  fitting: readonly SchedulerNode[],
  { resources, driver }: JobDemand,
): NeverFits | NodesAway {
  const { minNodes: want } = resources;
  const kind = 'never_fits';
  const of = nodes.length;
  if (of === 0) return { kind: 'no_nodes', have: 0, want, of, obstacles: noObstacles };
  if (of < want) return { kind, lack: 'nodes', have: of, want };
  const withDriver = nodes.filter((node) => node.inventory.drivers.includes(driver));
  if (withDriver.length < want) return { kind, lack: 'driver', have: withDriver.length, want, of };
  const have = fitting.length;
  if (have >= want) return { kind, lack: 'switch', have, want, apart: tooFarApart(fitting, resources) };
  const gpus = descending(withDriver, (node) => acceptableGpus(node.inventory.gpus, resources).length);
  const cpus = descending(withDriver, ({ inventory }) => inventory.cpus);
  const memoryMb = descending(withDriver, ({ inventory }) => inventory.memoryMb);
  const amountsOf = (index: number): Amounts => ({
    gpus: gpus[index] ?? 0,
    cpus: cpus[index] ?? 0,
    memoryMb: memoryMb[index] ?? 0,
  });
  return { kind, lack: 'resources', have, want, of, largest: amountsOf(0), available: amountsOf(want - 1) };
}

function descending(nodes: readonly SchedulerNode[], amountOn: (node: SchedulerNode) => number): number[] {
  return nodes.map(amountOn).sort((a, b) => b - a);
}

/** @param nodes that would do, one by one */
export function tooFarApart(nodes: readonly SchedulerNode[], resources: JobResources): TooFarApart {
  const largest = largestGroup(nodes);
  return {
    have: largest?.nodes.length ?? 0,
    of: nodes.length,
    want: resources.minNodes,
    switchName: largest?.switchName ?? null,
    isLabelled: nodes.some((node) => switchPath(node).length > 0),
  };
}

export function namesOf(nodes: readonly SchedulerNode[]): readonly NodeName[] {
  return nodes.map(({ name }) => name).sort();
}

/** What drains leave too little of. */
export function drainsOf(nodes: readonly SchedulerNode[]): readonly DrainedNode[] {
  return nodes.toSorted(byName).map(drainOf);
}

export function drainOf({ name, drained, inventory }: SchedulerNode): DrainedNode {
  const { kinds, drainReason } = drained;
  const gpus = drained.node ? null : drained.gpuUuids.size;
  return { node: name, gpus, of: inventory.gpus.length, kinds, drainReason };
}

export function orphanedGpusOf(nodes: readonly SchedulerNode[]): Obstacles['orphaned'] {
  return nodes.toSorted(byName).map(({ name, orphanedGpus }) => ({ node: name, gpus: orphanedGpus }));
}

/** @param causes why the job does without them */
export function excludedOf(nodes: readonly SchedulerNode[], causes: ExcludedNodes): Obstacles['excluded'] {
  return nodes.toSorted(byName).map(({ name }) => ({ node: name, cause: causes.get(name) ?? null }));
}
