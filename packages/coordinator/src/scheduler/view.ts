/** What the planner sees: plain data, built from scratch for each pass. It accepts no hint about what changed. */

import type { Drained } from '@muster/common/conditions';
import type { Gpu, NodeInventory } from '@muster/common/hardware';
import type { ArrayId, JobId, NodeName } from '@muster/common/ids';
import type { DependencyCondition } from '@muster/common/spec/after';
import type { JobSpec } from '@muster/common/spec/types';
import type { Cause, Resume } from '@muster/common/views';

/** What one task takes, or has taken, of a node. */
export interface PlannedTask {
  readonly node: NodeName;
  readonly gpuUuids: readonly string[];
  readonly cpus: number;
  readonly memoryMb: number;
}

export interface SchedulerNode {
  readonly name: NodeName;
  /** Only online nodes get new work; the others count when asking whether a job could ever run. */
  readonly online: boolean;
  /**
   * Monotonic milliseconds: it was there a moment ago, or this coordinator has only just begun to listen, and until then it
   * is expected to be back. null: it is online, or has been away for longer.
   */
  readonly awaitedUntilMs: number | null;
  readonly inventory: NodeInventory;
  readonly drained: DrainedView;
  /** Held by no task, and not drained. */
  readonly freeGpus: readonly Gpu[];
  readonly freeCpus: number;
  readonly freeMemoryMb: number;
  /** How many more tasks it may have. */
  readonly freeTasks: number;
  /** GPUs that tasks hold which the store does not know: not free until a person has ended them. */
  readonly orphanedGpus: number;
  /** It has been away, and its paths to others have not been measured since. */
  readonly needsPreflight: boolean;
}

/**
 * What is kept from new work. It counts when asking whether a job could ever run: it may come back.
 */
export interface DrainedView extends Drained {
  /** Of the conditions that do it: to the node when that is drained, else to its GPUs. */
  readonly kinds: readonly string[];
  /** Why it is drained, at the request of a person or of its machine. null: it is not. */
  readonly drainReason: string | null;
}

export const notDrained: DrainedView = { node: false, gpuUuids: new Set(), kinds: [], drainReason: null };

/** Nodes that a job is not placed on as long as others could take it, each with the cause of the failure there. */
export type ExcludedNodes = ReadonlyMap<NodeName, Cause['kind']>;

export const noExcludedNodes: ExcludedNodes = new Map();

/** A job whose newest checkpoint lies on the disk of one machine: anywhere else its work would be lost. */
export interface Pin {
  readonly node: NodeName;
  /** Nodes that see the checkpoint: it, and others on the same machine where they share the directory. */
  readonly nodes: ReadonlySet<NodeName>;
  /** `step 500`, or the name of a checkpoint without a step. */
  readonly checkpoint: string;
  /** Monotonic milliseconds: its nodes are all silent, and from then on it does without. null: they are not. */
  readonly untilMs: number | null;
}

/** A checkpoint that a job may resume from. */
export interface ResumeOption extends Resume {
  /** The node that has it, or on which it was saved. */
  readonly home: NodeName;
  /** Nodes that can read it. null: all can. */
  readonly readers: ReadonlySet<NodeName> | null;
}

/** What a job's earlier attempts and its wait mean for the placement of the next one. */
export interface PlacementHistory {
  readonly excludedNodes: ExcludedNodes;
  /** Longer than `reserveAfterMs`: it no longer waits for nodes that are away when there are excluded ones to try. */
  readonly waitedLong: boolean;
  readonly pin: Pin | null;
}

export const noHistory: PlacementHistory = { excludedNodes: noExcludedNodes, waitedLong: false, pin: null };

export interface QueuedJob {
  readonly id: JobId;
  readonly submitSeq: number;
  readonly spec: JobSpec;
  /** Monotonic milliseconds: not before this moment. */
  readonly notBeforeMs: number;
  /** Monotonic milliseconds since when it has been waiting, as far as this coordinator saw. */
  readonly waitingSinceMs: number;
  readonly dependencies: DependencyState;
  readonly excludedNodes: ExcludedNodes;
  /** What its next attempt may resume from, the best first. Of what the same nodes can read, the best alone. */
  readonly resumes: readonly ResumeOption[];
  readonly pin: Pin | null;
  /** null: it belongs to none. */
  readonly array: ArrayId | null;
  /** Jobs behind it, its equals in every respect, that this pass does not see. null: there are none. */
  readonly equals: { readonly count: number } | null;
  /** Failures in a row without a newer checkpoint, when they are why it waits. null: they are not. */
  readonly breakerFailures: number | null;
  /** The phase that it has ended, and whose criterion was not judged yet. null: no verdict is due. */
  readonly phase: string | null;
}

/** An attempt that is stopping or may be preempted, as far as it holds something. */
export interface Holder {
  readonly id: JobId;
  readonly submitSeq: number;
  readonly priority: number;
  /** Those that have not ended. */
  readonly tasks: readonly PlannedTask[];
  /**
   * `preempted`: stopping for another job, and queued again afterwards; `ending`: stopping for any other reason. `active`:
   * neither, or it should have ended long ago and may never end.
   */
  readonly state: 'active' | 'preempted' | 'ending';
  /** The job that preempts it, to which what it holds is promised. null: none, or it is unknown since a restart. */
  readonly preemptor: JobId | null;
  /** Its spec and its policy allow that it is preempted. */
  readonly isPreemptible: boolean;
  /**
   * Work that would be lost with it: whole seconds since its last verified checkpoint, for each of its GPUs. 0: it is not
   * preemptible.
   */
  readonly lostGpuSeconds: number;
  /** Its start, or its newest verified checkpoint. null: nothing of it has run yet. */
  readonly lostSince: 'start' | { readonly step: number | null } | null;
}

/** Of the jobs named in `after`. */
export type DependencyState =
  | { readonly kind: 'met' }
  | { readonly kind: 'waiting'; readonly on: JobId | ArrayId; readonly when: DependencyCondition }
  /** It can no longer be met, unless `on` is requeued. */
  | { readonly kind: 'failed'; readonly on: JobId | ArrayId; readonly what: string };

export interface SchedulerView {
  readonly nodes: readonly SchedulerNode[];
  readonly queue: readonly QueuedJob[];
  readonly holders: readonly Holder[];
  /** How many jobs of an array have an attempt, of those arrays that are bounded in that. */
  readonly arraysAtWork: ReadonlyMap<ArrayId, number>;
}
