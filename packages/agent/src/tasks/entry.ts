/** One task on this node: what was ordered, what is, and what has been said about it. */

import type { PathCheck, PathFindings } from '@muster/common/gangs';
import type { TaskRef } from '@muster/common/ids';
import type { HangSign, TrainingProgress } from '@muster/common/training';
import type { TaskEnd, TaskReport } from '@muster/common/views';
import type { HeldPort } from '../launch/masterPort.ts';
import type { Assignment } from '../taskFacts/assignment.ts';
import type { ActualState, DesiredState } from './reconcile.ts';
import type { Phase } from './records.ts';

/** What the coordinator says of a task, with what is needed to do it. */
export type Order =
  | { readonly kind: 'prepare'; readonly assignment: Assignment }
  | { readonly kind: 'check'; readonly assignment: Assignment | null; readonly check: PathCheck }
  | {
      readonly kind: 'start';
      readonly assignment: Assignment | null;
      readonly addr: string;
      readonly port: number;
      /** Of every node of the gang, by node rank; empty: the coordinator did not say. */
      readonly addresses: readonly string[];
    }
  | {
      readonly kind: 'stop';
      readonly assignment: Assignment | null;
      readonly graceMs: number;
      readonly signal: string;
    }
  | { readonly kind: 'forget' };

/** What takes its time and may turn out to be in vain. */
export type Work =
  | { readonly kind: 'preparing' }
  | { readonly kind: 'checking'; readonly round: number }
  | { readonly kind: 'starting' };

export interface TaskEntry {
  readonly task: TaskRef;
  assignment: Assignment | null;
  /** The driver that knew of it, for a task without a record. */
  foundBy: 'process' | 'docker' | null;
  order: Order | null;
  phase: Phase | null;
  /** By this agent, and its port, if it needs one, was held from then on. */
  prepared: boolean;
  port: HeldPort | null;
  /** What the preparation is busy with, in words for people. */
  doing: string | null;
  /** Of the message that it is prepared; `lost`: it may not have arrived. */
  preparedMessage: 'unsent' | 'lost' | 'sent';
  findings: PathFindings | null;
  /** They have been sent on the present connection, after the coordinator last asked. */
  findingsSent: boolean;
  /** A driver was asked to start it, or to tell what became of it, and has not answered. */
  uncertain: boolean;
  /** Under way, with the means to give it up. */
  work: { readonly what: Work; readonly abort: AbortController } | null;
  uploaded: boolean;
  /** It has ended, and its last checkpoint is being looked at before that is said. */
  ending: Promise<void> | null;
  /** CLOCK_BOOTTIME: the end of its grace. null: it has not been told to stop. */
  graceEndsAtMs: number | null;
  /** Runs where that comes sooner than its driver was told. */
  graceTimer: NodeJS.Timeout | null;
  /** An action is under way; look again when it is done. */
  busy: boolean;
  again: boolean;
  /** The report that was sent last, so that looking again does not repeat it. */
  reported: string | null;
  failures: number;
  /** Ends the pause after a failure. */
  wake: (() => void) | null;
}

export function newEntry(task: TaskRef): TaskEntry {
  return {
    task,
    assignment: null,
    foundBy: null,
    order: null,
    phase: null,
    prepared: false,
    port: null,
    doing: null,
    preparedMessage: 'unsent',
    findings: null,
    findingsSent: false,
    uncertain: false,
    work: null,
    uploaded: false,
    ending: null,
    graceEndsAtMs: null,
    graceTimer: null,
    busy: false,
    again: false,
    reported: null,
    failures: 0,
    wake: null,
  };
}

/** The end of a task that did nothing. */
export const nothingRan: TaskEnd = {
  exitCode: null,
  signal: null,
  oomKilled: false,
  finishedAtMs: null,
  statusLost: false,
  startError: null,
  logBytes: 0,
  gpuUsage: null,
  failure: null,
  training: null,
};

/** What is under way is of no use for what is wanted now. */
export function isNotWanted(work: Work, order: Order): boolean {
  if (order.kind === 'stop' || order.kind === 'forget') return true;
  return work.kind === 'checking' && !(order.kind === 'check' && order.check.round === work.round);
}

/** Came late: paths of a later round are being tried, or have been. */
export function isOutdated(entry: TaskEntry, order: Order): boolean {
  if (order.kind !== 'check' || entry.order?.kind !== 'check') return false;
  return order.check.round < entry.order.check.round;
}

export function desiredStateOf(order: Order | null): DesiredState | undefined {
  if (order === null) return undefined;
  return order.kind === 'check' ? { kind: 'check', round: order.check.round } : { kind: order.kind };
}

/** @param leased whether it may run now */
export function actualStateOf(entry: TaskEntry, leased: boolean): ActualState | undefined {
  const { phase } = entry;
  switch (phase?.kind) {
    case undefined:
      return undefined;
    case 'prepared': {
      if (entry.uncertain) return { kind: 'uncertain' };
      if (!entry.prepared) return { kind: 'assigned', leased };
      const checkedRound = entry.findings?.round ?? null;
      return { kind: 'prepared', announced: entry.preparedMessage !== 'unsent', checkedRound, leased };
    }
    case 'started':
      return { kind: 'running' };
    case 'ended':
      return { kind: 'ended', exit: phase.exit, uploaded: entry.uploaded };
    default: {
      const never: never = phase;
      return never;
    }
  }
}

/** What others know of a task at the moment it is reported. */
export interface SeenOfTask {
  readonly frozen: boolean;
  /** Its program has left a `training_complete.marker`. */
  readonly trainingComplete: boolean;
  readonly training: TrainingProgress | null;
  readonly hang: HangSign | null;
}

/** @param boottimeNowMs CLOCK_BOOTTIME; @returns null for a task that was only heard of */
export function reportOf(entry: TaskEntry, boottimeNowMs: number, seen: SeenOfTask): TaskReport | null {
  const { task, phase } = entry;
  const none = {
    ...{ exit: null, startedAtMs: null, runningForMs: null, frozen: false, doing: null },
    ...{ trainingComplete: false, training: null, hang: null },
  };
  switch (phase?.kind) {
    case undefined:
      return null;
    case 'prepared':
      return { task, ...none, state: entry.prepared ? 'prepared' : 'assigned', doing: entry.doing };
    case 'started': {
      const runningForMs = Math.max(0, boottimeNowMs - phase.startedBoottimeMs);
      return { task, ...none, ...seen, state: 'running', startedAtMs: phase.startedAtMs, runningForMs };
    }
    case 'ended': {
      const { exit } = phase;
      const { trainingComplete } = seen;
      return { task, ...none, state: 'ended', exit, training: exit.training, trainingComplete };
    }
    default: {
      const never: never = phase;
      return never;
    }
  }
}
