/** What the planner sees: plain data, built anew for each pass. It accepts no hint about what changed. */
import type { JobId, NodeName } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import type { Gpu, NodeInventory } from '@muster/common/views';

export interface NodeView {
  readonly name: NodeName;
  /** Only online nodes get new work; the others count when asking whether a job could ever run. */
  readonly online: boolean;
  readonly inventory: NodeInventory;
  readonly freeGpus: readonly Gpu[];
  readonly freeCpus: number;
  readonly freeMemoryMb: number;
}

export interface QueuedJob {
  readonly id: JobId;
  readonly submitSeq: number;
  readonly spec: JobSpec;
  /** Monotonic milliseconds: not before this moment. */
  readonly notBeforeMs: number;
  /** Monotonic milliseconds since when it has been waiting, as far as this coordinator saw. */
  readonly waitingSinceMs: number;
  readonly dependencies: DependencyState;
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
