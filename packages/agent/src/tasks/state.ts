/** The state of one task on this node: what is ordered, what is true, and what is under way. */

import type { PathCheck, PathFindings } from '@muster/common/gangs';
import type { TaskRef } from '@muster/common/ids';
import type { Resume, TaskEnd } from '@muster/common/views';
import type { Assignment } from '../taskFacts/assignment.ts';
import type { TaskExit } from '../taskFacts/execution.ts';

/** An order of the coordinator, with what is needed to follow it. */
export type Order =
  | { readonly kind: 'prepare'; readonly assignment: Assignment }
  | { readonly kind: 'check'; readonly assignment: Assignment | null; readonly check: PathCheck }
  | StartOrder
  | {
      readonly kind: 'stop';
      readonly assignment: Assignment | null;
      readonly graceMs: number;
      readonly signal: string;
    }
  /** The coordinator has recorded the end of the task, or has replaced its attempt. */
  | { readonly kind: 'forget' };

export interface StartOrder {
  readonly kind: 'start';
  readonly assignment: Assignment | null;
  /** The address and the port of the rendezvous. */
  readonly addr: string;
  readonly port: number;
  /** The addresses of all nodes of the gang, by node rank. Empty: the coordinator did not send them. */
  readonly addresses: readonly string[];
  /** What the attempt resumes from. null: from nothing. Absent: as the assignment says. */
  readonly resume?: Resume | null;
}

/** Everything that the task needs is there: GPUs, image, directories and ports. */
export interface Prepared {
  /** The port that is held for the task. null: the task needs none, or has got it. */
  readonly port: number | null;
  /** Whether this was sent to the coordinator. `lost`: on a connection that has ended since, or the coordinator has asked again. */
  readonly announced: 'no' | 'lost' | 'yes';
  /** What was found on the paths to the other nodes. null: they were not tried. */
  readonly findings: PathFindings | null;
  /** The findings were sent on the present connection, after the coordinator asked last. */
  readonly areFindingsSent: boolean;
}

/** When a task was started, on both clocks. */
export interface StartMoment {
  /** Wall clock, for display. */
  readonly startedAtMs: number;
  /** CLOCK_BOOTTIME. */
  readonly startedBoottimeMs: number;
}

/** When a task of this boot began, and when its last process ended. */
export interface RanMoments extends StartMoment {
  /** CLOCK_BOOTTIME. Absent if no one who could tell saw the end as it happened. */
  readonly endedBoottimeMs?: number;
}

/**
 * What is true of the task. A state holds what exists in it, and nothing else.
 *
 *     unrecorded ──prepare──► assigned ──► prepared ──start──► starting ──► running ──► ending ──► ended ──► removed
 *
 * After a restart of the agent a task is `assigned` or `starting` again, because ports are held by an agent; `running`
 * and `ended` are found as they were.
 */
export type Life =
  /** An order has come, and nothing is on disk. */
  | { readonly kind: 'unrecorded' }
  /** The intent is on disk, and something that the task needs is missing. */
  | {
      readonly kind: 'assigned';
      /** What the preparation is busy with, for people. */
      readonly doing: string | null;
    }
  | ({ readonly kind: 'prepared' } & Prepared)
  /** A driver was asked to start the task, and has not answered: the task may be running. */
  | {
      readonly kind: 'starting';
      /** What holds again when the driver says that nothing was started. null: `assigned` does. */
      readonly prepared: Prepared | null;
    }
  | ({
      readonly kind: 'running';
      /** The task was asked to stop. */
      readonly isStopping: boolean;
      /** CLOCK_BOOTTIME at which the grace of the stop ends. null: no stop, or an earlier agent began it. */
      readonly graceEndsAtMs: number | null;
    } & StartMoment)
  /** No process of the task is left, and what it saved and printed last is being read. */
  | ({
      readonly kind: 'ending';
      readonly isStopping: boolean;
      /** null: nobody knows how it ended. */
      readonly exit: TaskExit | null;
      /** What the conclusion is busy with, for people. */
      readonly doing: string | null;
    } & StartMoment)
  | {
      readonly kind: 'ended';
      readonly end: TaskEnd;
      /** null: it never ran, or ran in another boot. */
      readonly started: RanMoments | null;
      /** The coordinator has all of its output. */
      readonly isUploaded: boolean;
    }
  | { readonly kind: 'removed' };

/** What takes its time. A task has at most one of these under way. */
export type Work =
  | { readonly kind: 'prepare' }
  | { readonly kind: 'check'; readonly round: number }
  | { readonly kind: 'start' }
  | { readonly kind: 'examine' }
  | { readonly kind: 'stop' }
  | { readonly kind: 'remove' };

export interface TaskState {
  readonly task: TaskRef;
  /** null: the task was found without a record, or the coordinator has not sent which job it belongs to. */
  readonly assignment: Assignment | null;
  /** null: the coordinator has sent no order, so the task is left as it is. */
  readonly order: Order | null;
  readonly life: Life;
  readonly work: Work | null;
  /** How often the present work has failed in a row. */
  readonly failures: number;
  /** The pause after a failure has not ended. */
  readonly isPaused: boolean;
}

export function unrecordedTask(task: TaskRef): TaskState {
  return {
    task,
    assignment: null,
    order: null,
    life: { kind: 'unrecorded' },
    work: null,
    failures: 0,
    isPaused: false,
  };
}

/** A process of the task exists, or may exist: nobody else can have its GPUs. */
export function mayHoldGpus({ life }: TaskState): boolean {
  return life.kind === 'starting' || life.kind === 'running' || life.kind === 'ending';
}

/** What is known of the job of a task once an order has come. A release says what the attempt resumes from. */
export function assignmentAfter({ assignment }: TaskState, order: Order): Assignment | null {
  const assigned = assignment ?? ('assignment' in order ? order.assignment : null);
  if (assigned === null || order.kind !== 'start' || order.resume === undefined) return assigned;
  return { ...assigned, resume: order.resume };
}

/** When a task that runs, or is being concluded, began and ended. */
export function ranMoments(life: Extract<Life, StartMoment>): RanMoments {
  const { startedAtMs, startedBoottimeMs } = life;
  const endedBoottimeMs = life.kind === 'ending' ? life.exit?.finishedBoottimeMs : undefined;
  return { startedAtMs, startedBoottimeMs, ...(endedBoottimeMs === undefined ? {} : { endedBoottimeMs }) };
}
