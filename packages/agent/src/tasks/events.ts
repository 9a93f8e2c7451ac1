/** What happens to a task on its node, and what follows from that. */

import type { PathFindings } from '@muster/common/gangs';
import type { TaskEnd } from '@muster/common/views';
import type { StopOptions, TaskExit, TaskObservation } from '../taskFacts/execution.ts';
import type { Phase } from './records.ts';
import type { Order, StartOrder, TaskState } from './state.ts';

export type TaskEvent =
  | { readonly kind: 'ordered'; readonly order: Order }
  /** The coordinator has connected and does not name the task. */
  | { readonly kind: 'unnamed' }
  /** What was sent on the connection before may not have arrived. */
  | { readonly kind: 'connected' }
  /** A lease has begun, or the task was frozen or thawed. */
  | { readonly kind: 'leaseChanged' }
  /** The coordinator has all of the output. */
  | { readonly kind: 'uploaded' }
  /** The pause after a failure has ended. */
  | { readonly kind: 'pauseOver' }
  /** The shortened grace of a stop has ended. */
  | { readonly kind: 'graceOver' }
  /** The intent is on disk. */
  | { readonly kind: 'recorded' }
  | { readonly kind: 'doing'; readonly text: string }
  | { readonly kind: 'prepared'; readonly port: number | null }
  | { readonly kind: 'checked'; readonly findings: PathFindings }
  | { readonly kind: 'started' }
  /** What the driver knows of the task. */
  | {
      readonly kind: 'examined';
      readonly observed: TaskObservation;
      /** The record was written in the present boot of this machine. */
      readonly isSameBoot: boolean;
    }
  /** The driver cannot say now what became of the task. */
  | { readonly kind: 'unseen' }
  /** No process of the task is left. */
  | { readonly kind: 'exited'; readonly exit: TaskExit }
  /** The stop was carried out. */
  | { readonly kind: 'stopped'; readonly exit: TaskExit }
  /** The end is final: the task could not be prepared or started, or its last output and checkpoints have been read. */
  | { readonly kind: 'ended'; readonly end: TaskEnd }
  | { readonly kind: 'removed' }
  /** The work was given up, as `cancel` asked. */
  | { readonly kind: 'cancelled' }
  /**
   * Something of the node failed, not of the task. `mayRun`: a driver was asked to start the task before.
   */
  | { readonly kind: 'failed'; readonly message: string; readonly mayRun: boolean };

/** The work of a task, which `cancelled`, `failed` or an event of its own ends; then what is done at once. */
export type Effect =
  | { readonly kind: 'prepare' }
  | { readonly kind: 'check'; readonly order: Extract<Order, { kind: 'check' }> }
  | { readonly kind: 'start'; readonly order: StartOrder }
  | { readonly kind: 'examine' }
  | { readonly kind: 'stop'; readonly options: StopOptions }
  | { readonly kind: 'remove' }
  /** Gives up the work that is under way. */
  | { readonly kind: 'cancel' }
  /** Ends the grace of the stop that is under way. */
  | { readonly kind: 'kill' }
  /** Follows a task that runs: lease, output, checkpoints, end. */
  | { readonly kind: 'follow'; readonly how: 'started' | 'found' | 'frozen' | 'unseen' }
  /** Reads what the task saved and printed last; `ended` is the answer. */
  | { readonly kind: 'conclude'; readonly exit: TaskExit | null; readonly isStopping: boolean }
  /** A stop has come while the end is being concluded: what takes its time is given up after the grace. */
  | { readonly kind: 'hurry'; readonly graceMs: number }
  /** The task has ended: hands over its output, and lets go of what it had. */
  | { readonly kind: 'close' }
  | { readonly kind: 'record'; readonly phase: Phase }
  | { readonly kind: 'announce'; readonly port: number | null }
  | { readonly kind: 'sendFindings'; readonly findings: PathFindings }
  | { readonly kind: 'report' }
  /** Sends `pauseOver` after this time. */
  | { readonly kind: 'pause'; readonly ms: number; readonly message: string }
  /** Sends `graceOver` after this time. */
  | { readonly kind: 'grace'; readonly ms: number };

/** What an event meets besides the state. */
export interface TaskMoment {
  /** For display. */
  readonly wallMs: number;
  /** CLOCK_BOOTTIME. */
  readonly boottimeMs: number;
  /** A lease lets the task run now. */
  readonly isLeased: boolean;
}

export interface TaskStep {
  readonly state: TaskState;
  readonly effects: readonly Effect[];
}
