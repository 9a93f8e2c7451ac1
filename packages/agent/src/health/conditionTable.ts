/** What each condition means and what ends it, as data. The operator's file changes rows and thresholds of it. */
import type { ConditionAction, ConditionEnd, ConditionSeverity } from '@muster/common/conditions';
import { levelRows } from './levelRows.ts';
import { xidRows } from './xidRows.ts';

export interface ConditionRow {
  readonly severity: ConditionSeverity;
  readonly action: ConditionAction;
  readonly clears: ConditionEnd;
  /** `when_quiet`: unseen for this long ends it. `when_gone`: well for this long ends it, so that flapping does not show. */
  readonly quietMs: number;
  /** What is read at intervals has to be bad for this long before it is a condition. */
  readonly raiseAfterMs: number;
  /** One sentence; `{gpu}`, `{number}` and `{detail}` are filled in. */
  readonly message: string;
}

export interface HealthThresholds {
  /** The window that growing counters are judged in. */
  readonly growthWindowMs: number;
  /** Growth within the window that is a condition: corrected ECC errors, NVLink errors, PCIe replays. */
  readonly eccCorrected: number;
  readonly nvlinkErrors: number;
  readonly pcieReplays: number;
  /** Retired pages; at 64 the card has to be replaced. */
  readonly retiredPages: number;
  readonly clockSkewMs: number;
  /** Free space below this is full; on a small disk, below `diskFreePercent` of it. */
  readonly diskFreeMb: number;
  readonly diskFreePercent: number;
  readonly inodesFreePercent: number;
  /** A follow-up (Xid 43 or 45) of a process that is not named belongs to an Xid of the same GPU this long before. */
  readonly followUpMs: number;
  /** Faults of the programs of this many jobs on one GPU, in the window, while all others are clean: the GPU's own. */
  readonly suspectJobs: number;
  readonly suspectWindowMs: number;
  /** Boots that did not help. */
  readonly suspectBoots: number;
}

export interface ConditionTable {
  readonly rows: ReadonlyMap<string, ConditionRow>;
  readonly thresholds: HealthThresholds;
}

const defaultThresholds: HealthThresholds = {
  growthWindowMs: 600_000,
  eccCorrected: 1_000,
  nvlinkErrors: 100,
  pcieReplays: 100,
  retiredPages: 62,
  clockSkewMs: 2_000,
  diskFreeMb: 1_024,
  diskFreePercent: 5,
  inodesFreePercent: 1,
  followUpMs: 5_000,
  suspectJobs: 2,
  suspectWindowMs: 86_400_000,
  suspectBoots: 2,
};

export const defaultConditionTable: ConditionTable = {
  rows: new Map(Object.entries({ ...levelRows, ...xidRows })),
  thresholds: defaultThresholds,
};

const unknownRow: ConditionRow = {
  severity: 'warning',
  action: 'note',
  clears: 'when_quiet',
  quietMs: 3_600_000,
  raiseAfterMs: 0,
  message: '{gpu}: {detail}',
};

/** The row of a kind; numbers that have none of their own share one. */
export function rowOf(table: ConditionTable, kind: string): ConditionRow {
  return table.rows.get(kind) ?? table.rows.get(fallbackKind(kind)) ?? unknownRow;
}

function fallbackKind(kind: string): string {
  if (kind.startsWith('sxid_')) return kind.endsWith('_fatal') ? 'sxid_fatal' : 'sxid_other';
  return kind.startsWith('xid_') ? 'xid_other' : kind;
}

/** Kinds that may have a row of their own although the table comes without one. */
export function isNumberedKind(kind: string): boolean {
  return /^s?xid_\d{1,5}(?:_fatal)?$/.test(kind);
}

export const messageFields = ['gpu', 'number', 'detail'] as const;
type MessageField = (typeof messageFields)[number];

export function fillMessage(template: string, fields: Readonly<Record<MessageField, string>>): string {
  return template.replaceAll(/\{(gpu|number|detail)\}/g, (_, field: MessageField) => fields[field]);
}
