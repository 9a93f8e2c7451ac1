/**
 * What the health of a node is judged from, as a value: conditions with their timing, what was read of each card before,
 * and the Xids of late. It survives restarts of the agent, so times are of the clock that counts from boot.
 */
import type { Condition } from '@muster/common/conditions';
import type { JobId } from '@muster/common/ids';

/** The two clocks: one for display, one for every decision. */
export interface Moment {
  readonly wallMs: number;
  /** Since boot. */
  readonly uptimeMs: number;
}

export interface HealthState {
  readonly bootId: string;
  /** By `conditionKey`. */
  readonly entries: ReadonlyMap<string, Entry>;
  /** Every card that was ever listed, by UUID. */
  readonly cards: ReadonlyMap<string, CardRecord>;
  /** Counters at the last reading, by UUID of the device that was read: a card or a MIG instance. */
  readonly counters: ReadonlyMap<string, DeviceCounters>;
  /** The newest last. */
  readonly xids: readonly RecentXid[];
  /** Faults of programs (Xids 13 and 31), the newest last. */
  readonly programFaults: readonly ProgramFault[];
  /** How many boots in a row did not end a condition, by `conditionKey`. */
  readonly survivedBoots: ReadonlyMap<string, number>;
  /** Paths that could be written to once: only these can turn read-only. */
  readonly writablePaths: ReadonlySet<string>;
}

/** A condition and its timing. */
export interface Entry {
  readonly condition: Condition;
  /** False while it has not been bad for long enough to be reported. */
  readonly raised: boolean;
  readonly badSinceMs: number;
  readonly seenAtMs: number;
  /** null: at the last reading it was not well. */
  readonly wellSinceMs: number | null;
}

export interface CardRecord {
  readonly uuid: string;
  readonly pciBusId: string | null;
  readonly index: number | null;
  /** What the driver last asked for (NVML field 230 or Xid 154); null: it never asked for anything. */
  readonly recovery: { readonly action: number; readonly atMs: number } | null;
  /** In this boot. */
  readonly lastXid: number | null;
}

export interface DeviceCounters {
  readonly energyMillijoules: number | null;
  readonly uncorrectedVolatile: number | null;
  readonly uncorrectedAggregate: number | null;
  readonly rowRemapPending: boolean | null;
  readonly retirementPending: boolean | null;
  readonly corrected: Growth | null;
  readonly nvlink: Growth | null;
  readonly pcie: Growth | null;
}

/** A counter over a window of time. */
export interface Growth {
  readonly startedAtMs: number;
  readonly base: number;
  readonly last: number;
}

export interface RecentXid {
  readonly gpuUuid: string | null;
  readonly xid: number;
  readonly pid: number | null;
  readonly from: 'nvml' | 'kernel';
  /** The condition that it raised, or that its cause did. */
  readonly key: string;
  readonly atMs: number;
  /** The same Xid was seen on the other way as well. */
  readonly paired: boolean;
}

export interface ProgramFault {
  readonly gpuUuid: string;
  /** null: nobody held the GPU, or it is not known who did. */
  readonly jobId: JobId | null;
  readonly atMs: number;
}

export function emptyHealthState(bootId: string): HealthState {
  return {
    bootId,
    entries: new Map(),
    cards: new Map(),
    counters: new Map(),
    xids: [],
    programFaults: [],
    survivedBoots: new Map(),
    writablePaths: new Set(),
  };
}

/** A state in the making: what one evaluation changes, on copies of its own. */
export interface HealthDraft {
  readonly bootId: string;
  readonly entries: Map<string, Entry>;
  readonly cards: Map<string, CardRecord>;
  counters: Map<string, DeviceCounters>;
  xids: readonly RecentXid[];
  programFaults: readonly ProgramFault[];
  survivedBoots: ReadonlyMap<string, number>;
  writablePaths: ReadonlySet<string>;
}

export function draftOf(state: HealthState): HealthDraft {
  return {
    ...state,
    entries: new Map(state.entries),
    cards: new Map(state.cards),
    counters: new Map(state.counters),
  };
}
