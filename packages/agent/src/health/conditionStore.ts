/**
 * The state of the node's health on disk, so that a restart of the agent forgets no condition and no GPU: one JSON object,
 * `{"version": 1, …}`. A file of a newer version, or one changed by hand, is read as far as it is understood.
 */
import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Condition,
  conditionActions,
  conditionEnds,
  conditionKey,
  conditionSeverities,
} from '@muster/common/conditions';
import { messageOf } from '@muster/common/errors';
import { writeFileDurably } from '@muster/common/files';
import { isJobId, type JobId, type TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { isMapping } from '@muster/common/spec/path';
import type {
  CardRecord,
  DeviceCounters,
  Entry,
  Growth,
  HealthState,
  ProgramFault,
  RecentXid,
} from './state.ts';

export interface StoredHealth {
  readonly state: HealthState;
  /** Of the newest record of the kernel log that the state knows of, in its boot; null: none. */
  readonly kernelSequence: number | null;
}

export class ConditionStore {
  private readonly path: string;
  private readonly log: Logger;
  private failing = false;

  /** @param dataDir absolute, exists */
  constructor(dataDir: string, log: Logger) {
    this.path = join(dataDir, 'conditions.json');
    this.log = log;
  }

  /** @returns null when there is none. One that is damaged is put aside: conditions are read again, jobs are not at stake. */
  load(): StoredHealth | null {
    const { path } = this;
    try {
      return decodeHealthState(readFileSync(path, 'utf8'));
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
      this.log.warn(
        { path, err: messageOf(error) },
        `the stored conditions in ${path} cannot be read; starting without them, the file is kept as ${path}.damaged`,
      );
      this.putAside();
      return null;
    }
  }

  /** @returns whether it is on disk; a full disk is said once, and is no reason to stop */
  save(health: StoredHealth): boolean {
    try {
      writeFileDurably(this.path, encodeHealthState(health), 0o600);
      this.failing = false;
      return true;
    } catch (error) {
      const fields = { path: this.path, err: messageOf(error) };
      const message = `conditions cannot be stored in ${this.path}; a restart of the agent would forget them until they are seen again`;
      if (!this.failing) this.log.warn(fields, message);
      this.failing = true;
      return false;
    }
  }

  private putAside(): void {
    try {
      renameSync(this.path, `${this.path}.damaged`);
    } catch {
      // It is overwritten by the next save then.
    }
  }
}

// ---- The stored form

const version = 1;

function encodeHealthState({ state, kernelSequence }: StoredHealth): string {
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
function decodeHealthState(stored: string): StoredHealth {
  const root: unknown = JSON.parse(stored);
  const bootId = isMapping(root) ? text(root['bootId']) : undefined;
  if (!isMapping(root) || bootId === undefined) throw new Error('it is no stored state of conditions');
  const entries = listOf(entry)(root['entries']);
  const cards = listOf(card)(root['cards']);
  return {
    kernelSequence: orNull(number)(root['kernelSequence']),
    state: {
      bootId,
      entries: new Map(entries.map((each) => [conditionKey(each.condition), each])),
      cards: new Map(cards.map((each) => [each.uuid, each])),
      counters: mapOf(counters)(root['counters']),
      xids: listOf(recentXid)(root['xids']),
      programFaults: listOf(programFault)(root['programFaults']),
      survivedBoots: mapOf(number)(root['survivedBoots']),
      writablePaths: new Set(listOf(text)(root['writablePaths'])),
    },
  };
}

/** undefined: the value is not understood. A list or a mapping leaves such a value out, an object with one is not understood. */
type Decoder<T> = (value: unknown) => T | undefined;

const text: Decoder<string> = (value) => (typeof value === 'string' ? value : undefined);
const number: Decoder<number> = (value) =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined;
const boolean: Decoder<boolean> = (value) => (typeof value === 'boolean' ? value : undefined);
const isTrue: Decoder<boolean> = (value) => value === true;
const jobId: Decoder<JobId> = (value) => (typeof value === 'string' && isJobId(value) ? value : undefined);

function oneOf<T extends string>(words: readonly T[]): Decoder<T> {
  return (value) => words.find((word) => word === value);
}

function orNull<T>(decode: Decoder<T>): (value: unknown) => T | null {
  return (value) => decode(value) ?? null;
}

function object<T extends object>(fields: { readonly [K in keyof T]: Decoder<T[K]> }): Decoder<T> {
  const decoders = Object.entries<Decoder<unknown>>(fields);
  return (value) => {
    if (!isMapping(value)) return undefined;
    const decoded = decoders.map(([key, decode]) => [key, decode(value[key])] as const);
    const isWhole = decoded.every(([, each]) => each !== undefined);
    return isWhole ? (Object.fromEntries(decoded) as T) : undefined;
  };
}

function listOf<T>(decode: Decoder<T>): (value: unknown) => readonly T[] {
  return (value) => (Array.isArray(value) ? value.map(decode).filter((each) => each !== undefined) : []);
}

function mapOf<T>(decode: Decoder<T>): (value: unknown) => ReadonlyMap<string, T> {
  return (value) => {
    const decoded = Object.entries(isMapping(value) ? value : {}).map(([key, each]) => [key, decode(each)]);
    return new Map(decoded.filter((pair): pair is [string, T] => pair[1] !== undefined));
  };
}

const entry = object<Entry>({
  condition: object<Condition>({
    kind: text,
    gpuUuid: orNull(text),
    severity: oneOf(conditionSeverities),
    action: oneOf(conditionActions),
    message: text,
    evidence: text,
    sinceMs: number,
    lastSeenAtMs: number,
    count: number,
    clears: oneOf(conditionEnds),
    task: orNull(object<TaskRef>({ jobId, attempt: number, nodeRank: number })),
  }),
  raised: isTrue,
  badSinceMs: number,
  seenAtMs: number,
  wellSinceMs: orNull(number),
});

const card = object<CardRecord>({
  uuid: text,
  pciBusId: orNull(text),
  index: orNull(number),
  recovery: orNull(object<NonNullable<CardRecord['recovery']>>({ action: number, atMs: number })),
  lastXid: orNull(number),
});

const growth = orNull(object<Growth>({ startedAtMs: number, base: number, last: number }));

const counters = object<DeviceCounters>({
  energyMillijoules: orNull(number),
  uncorrectedVolatile: orNull(number),
  uncorrectedAggregate: orNull(number),
  rowRemapPending: orNull(boolean),
  retirementPending: orNull(boolean),
  corrected: growth,
  nvlink: growth,
  pcie: growth,
});

const recentXid = object<RecentXid>({
  gpuUuid: orNull(text),
  xid: number,
  pid: orNull(number),
  from: oneOf(['nvml', 'kernel']),
  key: text,
  atMs: number,
  paired: isTrue,
});

const programFault = object<ProgramFault>({ gpuUuid: text, jobId: orNull(jobId), atMs: number });
