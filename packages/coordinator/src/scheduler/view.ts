/** What the planner sees: plain data, built anew for each pass. It accepts no hint about what changed. */

import type { Drained } from '@muster/common/conditions';
import type { Gpu, NodeInventory } from '@muster/common/hardware';
import type { JobId, NodeName } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import type { Cause } from '@muster/common/views';

export interface NodeView {
  readonly name: NodeName;
  /** Only online nodes get new work; the others count when asking whether a job could ever run. */
  readonly online: boolean;
  readonly inventory: NodeInventory;
  readonly drained: DrainedView;
  /** Held by no task, and not drained. */
  readonly freeGpus: readonly Gpu[];
  readonly freeCpus: number;
  readonly freeMemoryMb: number;
}

/**
 * What conditions keep from new work. It counts when asking whether a job could ever run: it may come back.
 */
export interface DrainedView extends Drained {
  /** Of the conditions that do it: to the node when that is drained, else to its GPUs. */
  readonly kinds: readonly string[];
}

export const notDrained: DrainedView = { node: false, gpuUuids: new Set(), kinds: [] };

/** Nodes that a job does without as long as others could take it, and what happened on them. */
export type LeftOutNodes = ReadonlyMap<NodeName, Cause['kind']>;

export const nothingLeftOut: LeftOutNodes = new Map();

export interface QueuedJob {
  readonly id: JobId;
  readonly submitSeq: number;
  readonly spec: JobSpec;
  /** Monotonic milliseconds: not before this moment. */
  readonly notBeforeMs: number;
  /** Monotonic milliseconds since when it has been waiting, as far as this coordinator saw. */
  readonly waitingSinceMs: number;
  readonly dependencies: DependencyState;
  readonly leftOut: LeftOutNodes;
}

/** Of the jobs named in `after`. */
export type DependencyState =
  | { readonly kind: 'met' }
  | { readonly kind: 'waiting'; readonly on: JobId }
  | { readonly kind: 'failed'; readonly job: JobId };

export interface ClusterView {
  readonly nodes: readonly NodeView[];
  readonly queue: readonly QueuedJob[];
}
