/**
 * What the driver itself asks for, from R570 on: NVML's field 230 and Xid 154 carry the same number. Where it speaks, it
 * outranks our table of Xids. Pure.
 */
import type { Condition } from '@muster/common/conditions';
import type { TaskRef } from '@muster/common/ids';
import type { ConditionTable } from './conditionTable.ts';
import { see, well } from './entries.ts';
import type { LevelKind } from './levelRows.ts';
import type { CardRecord, Entry, HealthDraft, Moment } from './state.ts';

const kinds: ReadonlyMap<number, LevelKind> = new Map([
  [1, 'gpu_recovery_gpu_reset'],
  [2, 'gpu_recovery_node_reboot'],
  [3, 'gpu_recovery_drain_p2p'],
  [4, 'gpu_recovery_drain_and_reset'],
  [5, 'gpu_recovery_imex_domain'],
]);
export const recoveryKinds: ReadonlySet<string> = new Set([...kinds.values(), 'gpu_recovery_other']);

/** A value read earlier than this after an Xid may be from before it. */
const settleMs = 3_000;

/** Turns what the driver asks for a card into its conditions. */
export function judgeRecovery(
  draft: HealthDraft,
  table: ConditionTable,
  gpuUuid: string,
  evidence: string,
  task: TaskRef | null,
  at: Moment,
): void {
  const action = draft.cards.get(gpuUuid)?.recovery?.action;
  if (action === undefined) return;
  const wanted = action === 0 ? null : (kinds.get(action) ?? 'gpu_recovery_other');
  for (const kind of recoveryKinds) if (kind !== wanted) well(draft, kind, gpuUuid, at.uptimeMs);
  if (wanted === null) return;
  const detail = `action ${action}`;
  const place = { kind: wanted, gpuUuid, pciBusId: null, number: action };
  see(draft, table, { ...place, detail, evidence, task, announced: false, at });
}

/**
 * A condition as it counts now: an Xid keeps no work away once the driver, asked after it, says that the GPU needs
 * nothing. The condition itself stays, to be known.
 */
export function outranked({ condition, seenAtMs }: Entry, card: CardRecord | undefined): Condition {
  const announced = condition.kind.startsWith('xid_') || condition.kind === 'gsp_errors';
  const restrains = condition.action !== 'note' && condition.action !== 'blame_job';
  const recovery = card?.recovery ?? null;
  if (!announced || !restrains || recovery === null) return condition;
  if (recovery.action !== 0 || recovery.atMs < seenAtMs + settleMs) return condition;
  const message = `the driver now reports that no recovery is needed; seen before: ${condition.message}`;
  return { ...condition, action: 'note', severity: 'warning', message };
}
