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
import {
  asBoolean,
  asListOf,
  asMapOf,
  asNumber,
  asObject,
  asOneOf,
  asText,
  type Decoder,
  isTrue,
  orNull,
} from '@muster/common/decoders';
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

  /** @returns whether it is on disk; a full disk is logged once, and is no reason to stop */
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
  const bootId = isMapping(root) ? asText(root['bootId']) : undefined;
  if (!isMapping(root) || bootId === undefined) throw new Error('it is no stored state of conditions');
  const entries = asListOf(entry)(root['entries']);
  const cards = asListOf(card)(root['cards']);
  return {
    kernelSequence: orNull(asNumber)(root['kernelSequence']),
    state: {
      bootId,
      entries: new Map(entries.map((each) => [conditionKey(each.condition), each])),
      cards: new Map(cards.map((each) => [each.uuid, each])),
      counters: asMapOf(counters)(root['counters']),
      xids: asListOf(recentXid)(root['xids']),
      programFaults: asListOf(programFault)(root['programFaults']),
      survivedBoots: asMapOf(asNumber)(root['survivedBoots']),
      writablePaths: new Set(asListOf(asText)(root['writablePaths'])),
    },
  };
}

const asJobId: Decoder<JobId> = (value) => (typeof value === 'string' && isJobId(value) ? value : undefined);

const entry = asObject<Entry>({
  condition: asObject<Condition>({
    kind: asText,
    gpuUuid: orNull(asText),
    severity: asOneOf(conditionSeverities),
    action: asOneOf(conditionActions),
    message: asText,
    evidence: asText,
    sinceMs: asNumber,
    lastSeenAtMs: asNumber,
    count: asNumber,
    clears: asOneOf(conditionEnds),
    task: orNull(asObject<TaskRef>({ jobId: asJobId, attempt: asNumber, nodeRank: asNumber })),
  }),
  raised: isTrue,
  badSinceMs: asNumber,
  seenAtMs: asNumber,
  wellSinceMs: orNull(asNumber),
});

const card = asObject<CardRecord>({
  uuid: asText,
  pciBusId: orNull(asText),
  index: orNull(asNumber),
  recovery: orNull(asObject<NonNullable<CardRecord['recovery']>>({ action: asNumber, atMs: asNumber })),
  lastXid: orNull(asNumber),
});

const growth = orNull(asObject<Growth>({ startedAtMs: asNumber, base: asNumber, last: asNumber }));

const counters = asObject<DeviceCounters>({
  energyMillijoules: orNull(asNumber),
  uncorrectedVolatile: orNull(asNumber),
  uncorrectedAggregate: orNull(asNumber),
  rowRemapPending: orNull(asBoolean),
  retirementPending: orNull(asBoolean),
  corrected: growth,
  nvlink: growth,
  pcie: growth,
});

const recentXid = asObject<RecentXid>({
  gpuUuid: orNull(asText),
  xid: asNumber,
  pid: orNull(asNumber),
  from: asOneOf(['nvml', 'kernel']),
  key: asText,
  atMs: asNumber,
  paired: isTrue,
});

const programFault = asObject<ProgramFault>({ gpuUuid: asText, jobId: orNull(asJobId), atMs: asNumber });
