/** Conditions: problems of a node or of one of its GPUs, and what they mean for new work. */
import { cardUuid, type NodeInventory } from './hardware.ts';
import type { TaskRef } from './ids.ts';

export const conditionSeverities = ['info', 'warning', 'critical'] as const;
export type ConditionSeverity = (typeof conditionSeverities)[number];

/** What follows. Muster itself never resets a GPU and never reboots a node. */
export const conditionActions = [
  /** To be known. */
  'note',
  /** The task that ran there is at fault, not the hardware. */
  'blame_job',
  /** Works for now; somebody should reset the GPU when nothing runs on it. */
  'reset_when_idle',
  /** No new work on this GPU. */
  'drain_gpu',
  /** No new work on this node. */
  'drain_node',
] as const;
export type ConditionAction = (typeof conditionActions)[number];

/** What ends a condition. */
export const conditionEnds = [
  /** What was read is well again. */
  'when_gone',
  /** It has not been seen again for a while. */
  'when_quiet',
  /** The machine was rebooted, or the GPU was reset. */
  'by_reboot',
  /** A user ends it: `muster node clear`. */
  'by_hand',
] as const;
export type ConditionEnd = (typeof conditionEnds)[number];

export interface Condition {
  /** `xid_79`, `ecc_uncorrectable`, `disk_full` … lower case, digits and underscores. */
  readonly kind: string;
  /** A card; null: the node as a whole. */
  readonly gpuUuid: string | null;
  readonly severity: ConditionSeverity;
  readonly action: ConditionAction;
  /** One sentence for people. */
  readonly message: string;
  /** What was read: the line of the log, the values. At most 1000 characters. */
  readonly evidence: string;
  /** Wall clock, for display. */
  readonly sinceMs: number;
  readonly lastSeenAtMs: number;
  readonly count: number;
  readonly clears: ConditionEnd;
  /** The task that ran on the GPU then. */
  readonly task: TaskRef | null;
}

/** Kind and place: a node has at most one condition of each. */
export function conditionKey(condition: Pick<Condition, 'kind' | 'gpuUuid'>): string {
  return `${condition.kind}/${condition.gpuUuid ?? ''}`;
}

export interface Drained {
  readonly node: boolean;
  /** Devices of the inventory, MIG instances of a drained card included. */
  readonly gpuUuids: ReadonlySet<string>;
}

/** What conditions keep from new work. */
export function drainedBy(conditions: readonly Condition[], inventory: NodeInventory): Drained {
  const cards = new Set(
    conditions.flatMap(({ action, gpuUuid }) =>
      action === 'drain_gpu' && gpuUuid !== null ? [gpuUuid] : [],
    ),
  );
  const drained = inventory.gpus.filter((gpu) => cards.has(cardUuid(gpu)) || cards.has(gpu.uuid));
  return {
    node: conditions.some(({ action }) => action === 'drain_node'),
    gpuUuids: new Set(drained.map(({ uuid }) => uuid)),
  };
}
