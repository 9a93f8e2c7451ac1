/**
 * The stored form of the state, `{"version": 1, …}`. What is read may be of a newer version or damaged by hand: a part that
 * is not understood is left out, and the rest counts.
 */
import {
  type Condition,
  conditionActions,
  conditionEnds,
  conditionKey,
  conditionSeverities,
} from '@muster/common/conditions';
import { isJobId, type TaskRef } from '@muster/common/ids';
import type { StoredHealth } from './conditionStore.ts';
import type { CardRecord, DeviceCounters, Entry, Growth, ProgramFault, RecentXid } from './state.ts';

const version = 1;

export function encodeHealthState({ state, kernelSequence }: StoredHealth): string {
  return JSON.stringify({
    version,
    bootId: state.bootId,
    kernelSequence,
    entries: [...state.entries.values()],
    cards: [...state.cards.values()],
    counters: Object.fromEntries(state.counters),
    xids: state.xids,
    programFaults: state.programFaults,
    survivedBoots: Object.fromEntries(state.survivedBoots),
    writablePaths: [...state.writablePaths],
  });
}

/** @throws {Error} for what is no stored state at all */
export function decodeHealthState(text: string): StoredHealth {
  const root = asFields(JSON.parse(text));
  const bootId = root === null ? null : asText(root['bootId']);
  if (root === null || bootId === null) throw new Error('it is no stored state of conditions');
  const entries = list(root['entries'], asEntry);
  const cards = list(root['cards'], asCard);
  return {
    kernelSequence: asNumber(root['kernelSequence']),
    state: {
      bootId,
      entries: new Map(entries.map((entry) => [conditionKey(entry.condition), entry])),
      cards: new Map(cards.map((card) => [card.uuid, card])),
      counters: mapping(root['counters'], asCounters),
      xids: list(root['xids'], asRecentXid),
      programFaults: list(root['programFaults'], asProgramFault),
      survivedBoots: mapping(root['survivedBoots'], asNumber),
      writablePaths: new Set(list(root['writablePaths'], asText)),
    },
  };
}

function asEntry(value: unknown): Entry | null {
  const fields = asFields(value);
  const condition = asCondition(fields?.['condition']);
  const badSinceMs = asNumber(fields?.['badSinceMs']);
  const seenAtMs = asNumber(fields?.['seenAtMs']);
  if (fields === null || condition === null || badSinceMs === null || seenAtMs === null) return null;
  const wellSinceMs = asNumber(fields['wellSinceMs']);
  return { condition, raised: fields['raised'] === true, badSinceMs, seenAtMs, wellSinceMs };
}

function asCondition(value: unknown): Condition | null {
  const fields = asFields(value);
  if (fields === null) return null;
  const kind = asText(fields['kind']);
  const severity = asWord(fields['severity'], conditionSeverities);
  const action = asWord(fields['action'], conditionActions);
  const clears = asWord(fields['clears'], conditionEnds);
  const message = asText(fields['message']);
  const evidence = asText(fields['evidence']);
  const sinceMs = asNumber(fields['sinceMs']);
  const lastSeenAtMs = asNumber(fields['lastSeenAtMs']);
  const count = asNumber(fields['count']);
  if (kind === null || severity === null || action === null || clears === null) return null;
  if (message === null || evidence === null) return null;
  if (sinceMs === null || lastSeenAtMs === null || count === null) return null;
  const place = { kind, gpuUuid: asText(fields['gpuUuid']) };
  const times = { sinceMs, lastSeenAtMs, count };
  return { ...place, severity, action, message, evidence, ...times, clears, task: asTask(fields['task']) };
}

function asTask(value: unknown): TaskRef | null {
  const fields = asFields(value);
  const jobId = asText(fields?.['jobId']);
  const attempt = asNumber(fields?.['attempt']);
  const nodeRank = asNumber(fields?.['nodeRank']);
  if (jobId === null || !isJobId(jobId) || attempt === null || nodeRank === null) return null;
  return { jobId, attempt, nodeRank };
}

function asCard(value: unknown): CardRecord | null {
  const fields = asFields(value);
  const uuid = asText(fields?.['uuid']);
  if (fields === null || uuid === null) return null;
  const recovery = asFields(fields['recovery']);
  const action = asNumber(recovery?.['action']);
  const atMs = asNumber(recovery?.['atMs']);
  return {
    uuid,
    pciBusId: asText(fields['pciBusId']),
    index: asNumber(fields['index']),
    recovery: action === null || atMs === null ? null : { action, atMs },
    lastXid: asNumber(fields['lastXid']),
  };
}

function asCounters(value: unknown): DeviceCounters | null {
  const fields = asFields(value);
  if (fields === null) return null;
  return {
    energyMillijoules: asNumber(fields['energyMillijoules']),
    uncorrectedVolatile: asNumber(fields['uncorrectedVolatile']),
    uncorrectedAggregate: asNumber(fields['uncorrectedAggregate']),
    rowRemapPending: asBoolean(fields['rowRemapPending']),
    retirementPending: asBoolean(fields['retirementPending']),
    corrected: asGrowth(fields['corrected']),
    nvlink: asGrowth(fields['nvlink']),
    pcie: asGrowth(fields['pcie']),
  };
}

function asGrowth(value: unknown): Growth | null {
  const fields = asFields(value);
  const startedAtMs = asNumber(fields?.['startedAtMs']);
  const base = asNumber(fields?.['base']);
  const last = asNumber(fields?.['last']);
  return startedAtMs === null || base === null || last === null ? null : { startedAtMs, base, last };
}

function asRecentXid(value: unknown): RecentXid | null {
  const fields = asFields(value);
  const xid = asNumber(fields?.['xid']);
  const from = asWord(fields?.['from'], ['nvml', 'kernel'] as const);
  const key = asText(fields?.['key']);
  const atMs = asNumber(fields?.['atMs']);
  if (fields === null || xid === null || from === null || key === null || atMs === null) return null;
  const process = { gpuUuid: asText(fields['gpuUuid']), pid: asNumber(fields['pid']) };
  return { ...process, xid, from, key, atMs, paired: fields['paired'] === true };
}

function asProgramFault(value: unknown): ProgramFault | null {
  const fields = asFields(value);
  const gpuUuid = asText(fields?.['gpuUuid']);
  const atMs = asNumber(fields?.['atMs']);
  if (gpuUuid === null || atMs === null) return null;
  const jobId = asText(fields?.['jobId']);
  return { gpuUuid, jobId: jobId !== null && isJobId(jobId) ? jobId : null, atMs };
}

// ---- Values of unknown shape

function asFields(value: unknown): Readonly<Record<string, unknown>> | null {
  const isMapping = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isMapping ? (value as Readonly<Record<string, unknown>>) : null;
}

function asText(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function asNumber(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

function asBoolean(value: unknown): boolean | null {
  return typeof value === 'boolean' ? value : null;
}

function asWord<T extends string>(value: unknown, words: readonly T[]): T | null {
  return words.find((word) => word === value) ?? null;
}

function list<T>(value: unknown, as: (item: unknown) => T | null): readonly T[] {
  return Array.isArray(value) ? value.map(as).filter((item) => item !== null) : [];
}

function mapping<T>(value: unknown, as: (item: unknown) => T | null): ReadonlyMap<string, T> {
  const known = new Map<string, T>();
  for (const [key, item] of Object.entries(asFields(value) ?? {})) {
    const read = as(item);
    if (read !== null) known.set(key, read);
  }
  return known;
}
