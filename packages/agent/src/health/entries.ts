/** The life of a condition: seen, seen again, well again, ended. Pure. */
import {
  type Condition,
  type ConditionAction,
  type ConditionSeverity,
  conditionKey,
} from '@muster/common/conditions';
import type { TaskRef } from '@muster/common/ids';
import { gpuName } from './cards.ts';
import { type ConditionRow, type ConditionTable, fillMessage, rowOf } from './conditionTable.ts';
import type { Entry, HealthDraft, Moment } from './state.ts';

const evidenceLengthMax = 1000;
const messageLengthMax = 500;
const detailLengthMax = 200;
/** More than all kinds that are read on 16 GPUs; Xids of made-up numbers must not fill our memory. */
const entriesMax = 400;

export interface ConditionObservation {
  readonly kind: string;
  /** null: the node as a whole, or a card that was never listed. */
  readonly gpuUuid: string | null;
  /** Names the card when its UUID is not known. */
  readonly pciBusId: string | null;
  readonly number: number | null;
  readonly detail: string;
  readonly evidence: string;
  readonly task: TaskRef | null;
  /** An announcement counts each time, a state once for as long as it lasts. */
  readonly announced: boolean;
  /** When it happened: earlier than now for what the kernel log had kept. */
  readonly at: Moment;
}

/** Something is bad: a new condition, or one that persists. */
export function see(draft: HealthDraft, table: ConditionTable, seen: ConditionObservation): void {
  const key = conditionKey(seen);
  const row = rowOf(table, seen.kind);
  const before = draft.entries.get(key) ?? null;
  const { at } = seen;
  const interrupted = before === null || before.wellSinceMs !== null;
  const badSinceMs = before?.badSinceMs ?? at.uptimeMs;
  const raised = (before?.raised ?? false) || seen.announced || at.uptimeMs - badSinceMs >= row.raiseAfterMs;
  const again = seen.announced || (interrupted && before?.raised === true) ? 1 : 0;
  draft.entries.set(key, {
    condition: {
      kind: seen.kind,
      gpuUuid: seen.gpuUuid,
      severity: row.severity,
      action: actionOf(row, seen),
      message: messageOf(draft, row, seen),
      evidence: readable(seen.evidence).slice(0, evidenceLengthMax),
      sinceMs: before?.condition.sinceMs ?? at.wallMs,
      lastSeenAtMs: Math.max(at.wallMs, before?.condition.lastSeenAtMs ?? 0),
      count: before === null ? 1 : before.condition.count + again,
      clears: row.clears,
      task: seen.task ?? before?.condition.task ?? null,
    },
    raised,
    badSinceMs,
    seenAtMs: Math.max(at.uptimeMs, before?.seenAtMs ?? 0),
    wellSinceMs: null,
  });
}

/** Without a UUID there is no GPU to keep work from: the card is not on offer anyway. */
function actionOf(row: ConditionRow, { gpuUuid }: ConditionObservation): ConditionAction {
  const needsGpu = row.action === 'drain_gpu' || row.action === 'reset_when_idle';
  return needsGpu && gpuUuid === null ? 'note' : row.action;
}

function messageOf(draft: HealthDraft, row: ConditionRow, seen: ConditionObservation): string {
  const card = draft.cards.get(seen.gpuUuid ?? '') ?? null;
  return fillMessage(row.message, {
    gpu: card === null && seen.gpuUuid !== null ? seen.gpuUuid : gpuName(card, seen.pciBusId),
    number: seen.number?.toString() ?? '',
    detail: readable(seen.detail).slice(0, detailLengthMax),
  }).slice(0, messageLengthMax);
}

/** What drivers print may hold anything, and ends up in a terminal. */
function readable(text: string): string {
  return text
    .slice(0, 4 * evidenceLengthMax)
    .replaceAll(/[\p{Cc}\p{Bidi_Control}]+/gu, ' ')
    .trim();
}

/** What was bad was read, and is well. */
export function well(draft: HealthDraft, kind: string, gpuUuid: string | null, uptimeMs: number): void {
  const key = conditionKey({ kind, gpuUuid });
  const entry = draft.entries.get(key);
  if (entry === undefined || entry.wellSinceMs !== null) return;
  draft.entries.set(key, { ...entry, wellSinceMs: uptimeMs });
}

/** Ends what has been well, or unseen, for long enough, and keeps the number of conditions bounded. */
export function sweep(draft: HealthDraft, table: ConditionTable, uptimeMs: number): void {
  for (const [key, entry] of draft.entries) {
    if (isOver(entry, rowOf(table, entry.condition.kind), uptimeMs)) draft.entries.delete(key);
  }
  if (draft.entries.size <= entriesMax) return;
  const leastFirst = [...draft.entries].sort(
    ([, a], [, b]) =>
      weight(a.condition) - weight(b.condition) || a.seenAtMs - b.seenAtMs || (keyOf(a) < keyOf(b) ? -1 : 1),
  );
  for (const [key] of leastFirst.slice(0, draft.entries.size - entriesMax)) draft.entries.delete(key);
}

function isOver(entry: Entry, row: ConditionRow, uptimeMs: number): boolean {
  // It never was a condition: the next time counts from its own beginning.
  if (!entry.raised && entry.wellSinceMs !== null) return true;
  switch (row.clears) {
    case 'when_gone':
      return entry.wellSinceMs !== null && uptimeMs - entry.wellSinceMs >= row.quietMs;
    case 'when_quiet':
      return uptimeMs - entry.seenAtMs >= row.quietMs;
    case 'by_reboot':
    case 'by_hand':
      return false;
    default: {
      const never: never = row.clears;
      throw new Error(`unknown end of a condition ${String(never)}`);
    }
  }
}

const severityWeight = { info: 0, warning: 1, critical: 2 } as const satisfies Record<
  ConditionSeverity,
  number
>;

const actionWeight = {
  note: 0,
  blame_job: 0,
  reset_when_idle: 0,
  drain_gpu: 10,
  drain_node: 20,
} as const satisfies Record<ConditionAction, number>;

/** What keeps work away weighs most. */
export function weight({ action, severity }: Condition): number {
  return actionWeight[action] + severityWeight[severity];
}

function keyOf({ condition }: Entry): string {
  return conditionKey(condition);
}

/** A GPU was reset: conditions that only a reset or a reboot ends are over. */
export function endByReset(draft: HealthDraft, table: ConditionTable, gpuUuid: string): void {
  for (const [key, { condition }] of draft.entries) {
    const ends = rowOf(table, condition.kind).clears === 'by_reboot';
    if (ends && condition.gpuUuid === gpuUuid) draft.entries.delete(key);
  }
}
