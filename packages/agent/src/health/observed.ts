/** What a reading of the GPUs means: values, cards that do not answer, cards that are gone. Pure. */
import { conditionKey } from '@muster/common/conditions';
import { cardUuid } from '@muster/common/hardware';
import type { GpuObservation, GpuProblem } from '../gpus/gpuSource.ts';
import { cardAt, holderOf, rememberCards } from './cards.ts';
import { rowOf } from './conditionTable.ts';
import { type ConditionObservation, endByReset, see, well } from './entries.ts';
import type { HealthContext } from './faults.ts';
import type { LevelKind } from './levelRows.ts';
import { judgeSample, type LevelVerdict } from './levels.ts';
import { judgeRecovery } from './recovery.ts';
import type { CardRecord, DeviceCounters, HealthDraft } from './state.ts';

const problemKinds = {
  lost: 'gpu_lost',
  reset_required: 'gpu_reset_required',
  driver_mismatch: 'driver_mismatch',
  driver_not_loaded: 'driver_not_loaded',
  no_permission: 'gpu_no_permission',
  unknown_error: 'gpu_unknown_error',
  hung: 'gpu_hung',
  unreadable: 'gpu_unreadable',
  no_instances: 'gpu_without_instances',
  hidden: 'gpu_hidden',
} as const satisfies Record<GpuProblem['kind'], LevelKind>;
/** What problems of the source of readings become; all others follow from values and from the kernel log. */
export const problemConditionKinds: ReadonlySet<string> = new Set(Object.values(problemKinds));
/** A driver that makes problems up must not cost us time without end. */
const problemsMax = 256;

export function applyObservation(draft: HealthDraft, context: HealthContext): void {
  const { observation } = context;
  if (observation === null || observation.atMs === 0) return;
  rememberCards(draft, observation);
  const cardOf = new Map(observation.gpus.map((gpu) => [gpu.uuid, cardUuid(gpu)]));
  applySamples(draft, context, observation, cardOf);
  const problems = observation.problems.slice(0, problemsMax);
  applyProblems(draft, context, observation, problems, cardOf);
  applyMissing(draft, context, observation, problems);
}

// ---- Values

function applySamples(
  draft: HealthDraft,
  context: HealthContext,
  observation: GpuObservation,
  cardOf: ReadonlyMap<string, string>,
): void {
  const { table, now } = context;
  const counters = new Map<string, DeviceCounters>();
  const verdicts = new Map<string, { gpuUuid: string; verdict: LevelVerdict }>();
  for (const [uuid, sample] of observation.samples) {
    const gpuUuid = cardOf.get(uuid) ?? uuid;
    const judged = judgeSample(sample, draft.counters.get(uuid) ?? null, table.thresholds, now.uptimeMs);
    counters.set(uuid, judged.counters);
    if (judged.restarted) endByReset(draft, table, gpuUuid);
    for (const verdict of judged.verdicts) {
      const key = conditionKey({ kind: verdict.kind, gpuUuid });
      // The instances of a card in MIG mode: one that is bad outweighs the others.
      if (verdict.bad || !verdicts.has(key)) verdicts.set(key, { gpuUuid, verdict });
    }
    if (sample.recoveryAction !== null) applyRecovery(draft, context, gpuUuid, sample.recoveryAction);
  }
  keepCounters(draft, counters);
  for (const { gpuUuid, verdict } of verdicts.values()) {
    if (!verdict.bad) well(draft, verdict.kind, gpuUuid, now.uptimeMs);
    else see(draft, table, conditionObservationOf(context, { ...verdict, gpuUuid }));
  }
}

/** Of a GPU that could not be read this time they stay; of devices that are no more (MIG) they go in the end. */
function keepCounters(draft: HealthDraft, counters: ReadonlyMap<string, DeviceCounters>): void {
  const old = [...draft.counters].filter(([uuid]) => !counters.has(uuid));
  draft.counters = new Map([...old, ...counters].slice(-256));
}

function applyRecovery(draft: HealthDraft, context: HealthContext, gpuUuid: string, action: number): void {
  const card = draft.cards.get(gpuUuid);
  if (card === undefined) return;
  // The driver wanted something and does no longer: it was done.
  if (action === 0 && (card.recovery?.action ?? 0) !== 0) endByReset(draft, context.table, gpuUuid);
  draft.cards.set(gpuUuid, { ...card, recovery: { action, atMs: context.now.uptimeMs } });
  const task = holderOf(context.observation, gpuUuid, null);
  judgeRecovery(draft, context.table, gpuUuid, `gpu_recovery_action is ${action}`, task, context.now);
}

// ---- Cards that do not answer

function applyProblems(
  draft: HealthDraft,
  context: HealthContext,
  observation: GpuObservation,
  problems: readonly GpuProblem[],
  cardOf: ReadonlyMap<string, string>,
): void {
  const reported = new Set<string>();
  for (const problem of problems) {
    for (const seen of conditionObservationsOf(draft, context, problem, cardOf)) {
      reported.add(conditionKey(seen));
      see(draft, context.table, seen);
    }
  }
  const read = new Set([...observation.samples.keys()].map((uuid) => cardOf.get(uuid) ?? uuid));
  const driverAnswers = read.size > 0 || !problems.some(isOfNode);
  for (const { condition } of Array.from(draft.entries.values())) {
    const { kind, gpuUuid } = condition;
    if (!problemConditionKinds.has(kind) || reported.has(conditionKey(condition))) continue;
    // A card of which nothing was read is not known to be well.
    const isWell = gpuUuid === null ? driverAnswers : read.has(gpuUuid);
    if (!isWell) continue;
    if (kind === 'gpu_reset_required') endByReset(draft, context.table, gpuUuid ?? '');
    well(draft, kind, gpuUuid, context.now.uptimeMs);
  }
}

function conditionObservationsOf(
  draft: HealthDraft,
  context: HealthContext,
  problem: GpuProblem,
  cardOf: ReadonlyMap<string, string>,
): readonly ConditionObservation[] {
  const kind = problemKinds[problem.kind];
  const detail = problem.message.replace(/\.$/, '');
  const seen = { kind, detail, evidence: problem.evidence, pciBusId: problem.pciBusId };
  const card = cardAt(draft.cards.values(), problem.pciBusId);
  const gpuUuid =
    problem.gpuUuid === null ? (card?.uuid ?? null) : (cardOf.get(problem.gpuUuid) ?? problem.gpuUuid);
  // Of which card is not known, or all: what keeps work from a GPU then holds for each.
  const concernsAll = isOfNode(problem) && rowOf(context.table, kind).action === 'drain_gpu';
  if (!concernsAll || draft.cards.size === 0) return [conditionObservationOf(context, { ...seen, gpuUuid })];
  return [...draft.cards.keys()].map((uuid) => conditionObservationOf(context, { ...seen, gpuUuid: uuid }));
}

function isOfNode({ gpuUuid, pciBusId }: GpuProblem): boolean {
  return gpuUuid === null && pciBusId === null;
}

// ---- Cards that are gone

function applyMissing(
  draft: HealthDraft,
  context: HealthContext,
  observation: GpuObservation,
  problems: readonly GpuProblem[],
): void {
  // Cards of the machine are no part of what is simulated; a driver that does not answer lists nothing.
  if (observation.gpuDriver.source === 'simulated') return;
  const nothingListed = problems.some(isOfNode);
  const listed = new Set(observation.gpus.map(cardUuid));
  const named = (card: CardRecord) =>
    problems.some(
      ({ gpuUuid, pciBusId }) =>
        gpuUuid === card.uuid || (gpuUuid === null && cardAt([card], pciBusId) !== null),
    );
  const missing = [...draft.cards.values()].filter(({ uuid }) => !listed.has(uuid));
  for (const uuid of listed) well(draft, 'gpu_missing', uuid, context.now.uptimeMs);
  for (const card of missing) {
    if (nothingListed || named(card)) continue;
    const evidence = `${listed.size} of ${draft.cards.size} GPUs are listed; ${card.uuid} is not`;
    const detail = '';
    see(
      draft,
      context.table,
      conditionObservationOf(context, { kind: 'gpu_missing', gpuUuid: card.uuid, detail, evidence }),
    );
  }
}

function conditionObservationOf(
  { observation, now }: HealthContext,
  what: {
    readonly kind: LevelKind;
    readonly gpuUuid: string | null;
    readonly pciBusId?: string | null;
    readonly detail: string;
    readonly evidence: string;
  },
): ConditionObservation {
  const task = what.gpuUuid === null ? null : holderOf(observation, what.gpuUuid, null);
  return { pciBusId: null, ...what, number: null, task, announced: false, at: now };
}
