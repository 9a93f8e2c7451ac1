/**
 * From what was read to the conditions of the node: one function, one input at a time. Pure, so that a day of readings
 * can be replayed in a test.
 */
import { type Condition, conditionKey } from '@muster/common/conditions';
import { cardUuid } from '@muster/common/hardware';
import type { DirectoryProblem } from '../checkpoints/directoryProblems.ts';
import type { XidEvent } from '../gpus/gpuSource.ts';
import { type ConditionTable, rowOf } from './conditionTable.ts';
import { see, sweep, weight, well } from './entries.ts';
import { applyKernelFact, applyXidEvent, type HealthContext } from './faults.ts';
import { applyFileSystems } from './fileSystemFacts.ts';
import type { FileSystemFact } from './fileSystems.ts';
import { applyHelpers, type HelperFacts } from './helpers.ts';
import type { KernelFact } from './kernelLines.ts';
import { applyObservation } from './observed.ts';
import { outranked, recoveryKinds } from './recovery.ts';
import { draftOf, type Entry, type HealthDraft, type HealthState, type Moment } from './state.ts';

export type HealthInput =
  /** The observation of the context is new. */
  | { readonly kind: 'observation' }
  | { readonly kind: 'xid'; readonly event: XidEvent }
  | {
      readonly kind: 'kernel';
      readonly fact: KernelFact;
      readonly at: Moment;
      /** It was in the log before the agent started. */
      readonly history: boolean;
    }
  | { readonly kind: 'file_systems'; readonly facts: readonly FileSystemFact[] }
  /** null: it could not be measured. */
  | { readonly kind: 'clock_skew'; readonly skewMs: number | null }
  /** null: nothing is wrong with any. */
  | { readonly kind: 'checkpoint_directory'; readonly problem: DirectoryProblem | null }
  | { readonly kind: 'helpers'; readonly facts: HelperFacts }
  /** A person has cleared it. */
  | { readonly kind: 'clear'; readonly conditionKind: string; readonly gpuUuid: string | null }
  | { readonly kind: 'tick' };

export function evaluateConditions(
  state: HealthState,
  input: HealthInput,
  context: HealthContext,
): HealthState {
  const draft = draftOf(state);
  apply(draft, input, context);
  sweep(draft, context.table, context.now.uptimeMs);
  return draft;
}

function apply(draft: HealthDraft, input: HealthInput, context: HealthContext): void {
  switch (input.kind) {
    case 'observation':
      applyObservation(draft, context);
      return;
    case 'xid':
      applyXidEvent(draft, context, input.event);
      return;
    case 'kernel':
      applyKernelFact(draft, context, input.fact, input.at, input.history);
      return;
    case 'file_systems':
      applyFileSystems(draft, context, input.facts);
      return;
    case 'clock_skew':
      applyClockSkew(draft, context, input.skewMs);
      return;
    case 'checkpoint_directory':
      applyDirectoryProblem(draft, context, input.problem);
      return;
    case 'helpers':
      applyHelpers(draft, context, input.facts);
      return;
    case 'clear':
      clear(draft, context, input.conditionKind, input.gpuUuid);
      return;
    case 'tick':
      return;
    default: {
      const never: never = input;
      throw new Error(`unknown input ${JSON.stringify(never)}`);
    }
  }
}

function applyClockSkew(draft: HealthDraft, { table, now }: HealthContext, skewMs: number | null): void {
  if (skewMs === null || !Number.isFinite(skewMs)) return;
  const { clockSkewMs } = table.thresholds;
  if (Math.abs(skewMs) < clockSkewMs) {
    well(draft, 'clock_skew', null, now.uptimeMs);
    return;
  }
  see(draft, table, {
    kind: 'clock_skew',
    gpuUuid: null,
    pciBusId: null,
    number: null,
    detail: `${(Math.abs(skewMs) / 1000).toFixed(1)} s`,
    evidence: `this node is ${Math.round(Math.abs(skewMs))} ms ${skewMs > 0 ? 'ahead' : 'behind'}; the limit is ${clockSkewMs} ms`,
    task: null,
    announced: false,
    at: now,
  });
}

function applyDirectoryProblem(
  draft: HealthDraft,
  { table, now }: HealthContext,
  problem: DirectoryProblem | null,
): void {
  if (problem === null) {
    well(draft, 'checkpoint_directory', null, now.uptimeMs);
    return;
  }
  const { task, directory, problem: sentence } = problem;
  see(draft, table, {
    kind: 'checkpoint_directory',
    gpuUuid: null,
    pciBusId: null,
    number: null,
    detail: `${directory} ${sentence}`,
    evidence: `${task?.jobId ?? 'checkpoint root'}: ${directory} ${sentence}`,
    task,
    announced: false,
    at: now,
  });
}

/** What is still bad is back with the next reading; a card that was taken out is no longer missed. */
function clear(
  draft: HealthDraft,
  { observation }: HealthContext,
  kind: string,
  gpuUuid: string | null,
): void {
  draft.entries.delete(conditionKey({ kind, gpuUuid }));
  if (kind === 'gpu_missing' && gpuUuid !== null) {
    draft.cards.delete(gpuUuid);
    // Nothing could ever end what else was wrong with a card that is no longer here.
    const isBack = observation?.gpus.some((gpu) => cardUuid(gpu) === gpuUuid) === true;
    for (const [key, { condition }] of draft.entries) {
      if (!isBack && condition.gpuUuid === gpuUuid) draft.entries.delete(key);
    }
  }
  if (kind === 'hardware_suspected') {
    draft.programFaults = draft.programFaults.filter((fault) => fault.gpuUuid !== gpuUuid);
    draft.survivedBoots = new Map(
      [...draft.survivedBoots].filter(([key]) => !key.endsWith(`/${gpuUuid ?? ''}`)),
    );
  }
}

/** What there is to report, the gravest first. */
export function visibleConditions(state: HealthState): readonly Condition[] {
  return [...state.entries.values()]
    .filter(({ raised }) => raised)
    .map((entry) => outranked(entry, state.cards.get(entry.condition.gpuUuid ?? '')))
    .sort(
      (a, b) =>
        weight(b) - weight(a) || a.sinceMs - b.sinceMs || (conditionKey(a) < conditionKey(b) ? -1 : 1),
    );
}

/**
 * The state as a new start of the agent takes it up: with the table of now, and after a reboot without all that the
 * reboot has ended. What is read again anyway stays until it was read.
 */
export function takeUp(state: HealthState, bootId: string, table: ConditionTable): HealthState {
  const rebooted = state.bootId !== bootId;
  const entries = [...state.entries].map(([key, entry]) => [key, underTable(entry, table)] as const);
  if (!rebooted) return { ...state, entries: new Map(entries) };
  const ended = entries.filter(([, { condition }]) => condition.clears === 'by_reboot');
  const going = entries.filter(
    ([, { condition }]) => condition.clears !== 'by_reboot' && !recoveryKinds.has(condition.kind),
  );
  const ofThisBoot = { badSinceMs: 0, seenAtMs: 0, wellSinceMs: null };
  const cards = [...state.cards].map(
    ([uuid, card]) => [uuid, { ...card, recovery: null, lastXid: null }] as const,
  );
  return {
    bootId,
    entries: new Map(going.map(([key, entry]) => [key, { ...entry, ...ofThisBoot }])),
    cards: new Map(cards),
    counters: new Map(),
    xids: [],
    programFaults: state.programFaults.map((fault) => ({ ...fault, atMs: 0 })),
    // A boot without the condition in it breaks the row.
    survivedBoots: new Map(ended.map(([key]) => [key, (state.survivedBoots.get(key) ?? 0) + 1])),
    writablePaths: state.writablePaths,
  };
}

/** A card that is not known can be kept from nothing, whatever the table contains. */
function underTable(entry: Entry, table: ConditionTable): Entry {
  const { severity, action, clears } = rowOf(table, entry.condition.kind);
  const noGpu = entry.condition.gpuUuid === null && (action === 'drain_gpu' || action === 'reset_when_idle');
  return { ...entry, condition: { ...entry.condition, severity, clears, action: noGpu ? 'note' : action } };
}
