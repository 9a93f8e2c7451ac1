/** One task on this node: what was ordered, what is, and what has been said about it. */
import type { TaskRef } from '@muster/common/ids';
import type { TaskEnd, TaskReport } from '@muster/common/views';
import type { HeldPort } from '../hooks/masterPort.ts';
import type { Desired, Local } from '../reconcile.ts';
import type { Assignment, Phase } from './records.ts';

/** What the coordinator says of a task, with what is needed to do it. */
export type Order =
  | { readonly kind: 'prepare'; readonly assignment: Assignment }
  | {
      readonly kind: 'run';
      readonly assignment: Assignment | null;
      readonly addr: string;
      readonly port: number;
    }
  | {
      readonly kind: 'stop';
      readonly assignment: Assignment | null;
      readonly graceMs: number;
      readonly signal: string;
    }
  | { readonly kind: 'forget' };

export interface TaskEntry {
  readonly task: TaskRef;
  assignment: Assignment | null;
  /** The driver that knew of it, for a task without a record. */
  foundBy: 'process' | 'docker' | null;
  order: Order | null;
  phase: Phase | null;
  port: HeldPort | null;
  /** A driver was asked to start it, or to tell what became of it, and has not answered. */
  uncertain: boolean;
  /** Gives up the start that is under way. */
  starting: AbortController | null;
  /** The claim of this preparation has been sent on the present connection. */
  claimed: boolean;
  uploaded: boolean;
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
    port: null,
    uncertain: false,
    starting: null,
    claimed: false,
    uploaded: false,
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
};

export function desiredOf(order: Order | null): Desired | undefined {
  return order === null ? undefined : { kind: order.kind };
}

export function localOf(entry: TaskEntry): Local | undefined {
  const { phase, task } = entry;
  switch (phase?.kind) {
    case undefined:
      return undefined;
    case 'prepared':
      if (entry.uncertain) return { kind: 'uncertain' };
      return { kind: 'prepared', claimable: task.nodeRank !== 0 || entry.port !== null };
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

/** @param boottimeNowMs CLOCK_BOOTTIME; @returns null for a task that was only heard of */
export function reportOf(entry: TaskEntry, boottimeNowMs: number): TaskReport | null {
  const { task, phase } = entry;
  const none = { exit: null, startedAtMs: null, runningForMs: null };
  switch (phase?.kind) {
    case undefined:
      return null;
    case 'prepared':
      return { task, state: 'claimed', ...none };
    case 'started': {
      const runningForMs = Math.max(0, boottimeNowMs - phase.startedBoottimeMs);
      return { task, state: 'running', exit: null, startedAtMs: phase.startedAtMs, runningForMs };
    }
    case 'ended':
      return { task, state: 'ended', ...none, exit: phase.exit };
    default: {
      const never: never = phase;
      return never;
    }
  }
}
