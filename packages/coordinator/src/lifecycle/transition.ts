/**
 * The life of a job, as a plain function: (job, event, now) → (job, events). No I/O, no clock, no chance.
 *
 *                 allocate             every task running            every task ended well
 *      queued ───────────────► starting ───────────────► running ─────────────────────────► succeeded
 *        ▲  │                     │                         │
 *        │  │ stop                │ stop · a task ended badly · start error · node lost · time limit · requeue
 *        │  ▼                     ▼                         ▼
 *        │ cancelled           stopping ◄───────────────────┘
 *        │                        │ last task ended, by the outcome decided on entering
 *        └────────────────────────┴──► queued | failed | cancelled
 *
 *      attempt: allocated ──every task claimed──► claimed ──every task running──► running ──► ended(cause)
 *
 * Rules that the functions below keep:
 * - An attempt is allocated only while no other attempt of the job exists (G2). The number only grows.
 * - Before its release no task of an attempt can be executing, because agents start nothing without it. So tasks
 *   that have not been released end at once when the attempt does, without asking the node.
 * - After the release only the node's own report, or proof of death, ends a task: silent is not dead (G7).
 * - A report about anything but the current attempt changes nothing (G6): it returns the job as it was.
 * - Terminal states never change.
 */
import { assertInvariant } from '@muster/common/errors';
import type { NodeName } from '@muster/common/ids';
import { isTerminal } from '@muster/common/states';
import type { Cause, TaskEnd } from '@muster/common/views';
import {
  type Attempt,
  currentAttempt,
  isReleased,
  type Job,
  type NewEvent,
  type Outcome,
  type Task,
} from '../model.ts';
import { neverStartedEnd } from './causes.ts';
import { gpuUsageOf } from './gpuUsage.ts';
import { outcomeOfEnd, outcomeOfFailure, retryAfterFailedStart } from './outcomes.ts';

/** What can happen to a job. `attempt` is the fencing token of whoever reports. */
export type JobEvent =
  | { readonly kind: 'allocate'; readonly tasks: readonly Placement[] }
  | {
      readonly kind: 'claim';
      readonly attempt: number;
      readonly nodeRank: number;
      /** From rank 0 only. */
      readonly master: { readonly addr: string; readonly port: number } | null;
    }
  | { readonly kind: 'taskRunning'; readonly attempt: number; readonly nodeRank: number }
  | {
      readonly kind: 'taskEnded';
      readonly attempt: number;
      readonly nodeRank: number;
      readonly exit: TaskEnd;
    }
  /** Proof of death from outside the task: the node rebooted. */
  | {
      readonly kind: 'taskLost';
      readonly attempt: number;
      readonly nodeRank: number;
      readonly message: string;
    }
  /** The node, silent or gone, holds back an attempt that has not been released. */
  | { readonly kind: 'startFailed'; readonly attempt: number; readonly cause: Cause }
  | { readonly kind: 'stop'; readonly reason: string }
  | { readonly kind: 'requeue' }
  | { readonly kind: 'timeLimit'; readonly attempt: number };

export interface Placement {
  readonly node: NodeName;
  readonly gpuUuids: readonly string[];
  readonly cpus: number;
  readonly memoryMb: number;
}

export interface Transition {
  readonly job: Job;
  /** The attempt that this event ended, for the record; the job itself no longer carries it. */
  readonly ended: Attempt | null;
  readonly events: readonly NewEvent[];
}

type Handlers = {
  readonly [K in JobEvent['kind']]: (
    job: Job,
    event: Extract<JobEvent, { kind: K }>,
    nowMs: number,
  ) => Transition;
};

/**
 * @param nowMs wall clock, epoch milliseconds; only recorded, never compared
 * @throws {InvariantViolation} when the event would break a guarantee; the job is then unchanged
 */
export function transition(job: Job, event: JobEvent, nowMs: number): Transition {
  const handler = handlers[event.kind] as (job: Job, event: JobEvent, nowMs: number) => Transition;
  return handler(job, event, nowMs);
}

const handlers: Handlers = {
  allocate(job, event, nowMs) {
    assertInvariant(
      job.state.kind === 'queued',
      'G2',
      `${job.id} is ${job.state.kind} and cannot get another attempt`,
    );
    const nodeCount = job.spec.resources.nodes;
    assertInvariant(event.tasks.length === nodeCount, 'G3', `${job.id} needs ${nodeCount} nodes at once`);
    const attempt: Attempt = {
      number: job.lastAttempt + 1,
      state: 'allocated',
      tasks: event.tasks.map((placement, nodeRank) => ({
        ...placement,
        nodeRank,
        state: 'assigned',
        exit: null,
      })),
      allocatedAtMs: nowMs,
      runningAtMs: null,
      endedAtMs: null,
      cause: null,
      master: null,
    };
    return {
      job: { ...job, lastAttempt: attempt.number, state: { kind: 'starting', attempt } },
      ended: null,
      events: [
        attemptEvent(job, attempt, 'attempt.allocated', {
          tasks: event.tasks.map((placement) => ({ node: placement.node, gpuUuids: placement.gpuUuids })),
        }),
      ],
    };
  },

  claim(job, event) {
    const attempt = fencedAttempt(job, event.attempt);
    const task = attempt?.tasks[event.nodeRank];
    if (job.state.kind !== 'starting' || attempt === null || isReleased(attempt)) return unchanged(job);
    // Rank 0 claims again when its agent was restarted, and holds another port now than the one it had announced.
    const holdsAnotherPort = event.nodeRank === 0 && event.master?.port !== attempt.master?.port;
    const isNews = task?.state === 'assigned' || (task?.state === 'claimed' && holdsAnotherPort);
    if (!isNews) return unchanged(job);
    const tasks = replaceTask(attempt.tasks, { ...task, state: 'claimed' });
    const master = event.nodeRank === 0 ? event.master : attempt.master;
    const everyTaskClaimed = tasks.every((each) => each.state === 'claimed');
    const claimed: Attempt = { ...attempt, tasks, master, state: everyTaskClaimed ? 'claimed' : 'allocated' };
    return {
      job: { ...job, state: { kind: 'starting', attempt: claimed } },
      ended: null,
      events: everyTaskClaimed
        ? [
            attemptEvent(job, claimed, 'attempt.claimed', {
              masterAddr: master?.addr,
              masterPort: master?.port,
            }),
          ]
        : [],
    };
  },

  taskRunning(job, event, nowMs) {
    const attempt = fencedAttempt(job, event.attempt);
    const task = attempt?.tasks[event.nodeRank];
    if (attempt === null || task?.state !== 'claimed' || !isReleased(attempt)) return unchanged(job);
    return afterTaskChange(job, attempt, { ...task, state: 'running' }, nowMs);
  },

  taskEnded(job, event, nowMs) {
    const attempt = fencedAttempt(job, event.attempt);
    const task = attempt?.tasks[event.nodeRank];
    if (attempt === null || task === undefined || task.state === 'ended') return unchanged(job);
    return afterTaskChange(job, attempt, { ...task, state: 'ended', exit: event.exit }, nowMs);
  },

  taskLost(job, event, nowMs) {
    const attempt = fencedAttempt(job, event.attempt);
    const task = attempt?.tasks[event.nodeRank];
    if (attempt === null || task === undefined || task.state === 'ended') return unchanged(job);
    const exit: TaskEnd = {
      exitCode: null,
      signal: null,
      oomKilled: false,
      finishedAtMs: null,
      statusLost: true,
      startError: { kind: 'node_lost', message: event.message, nodeRank: event.nodeRank, node: task.node },
      logBytes: 0,
      gpuUsage: null,
    };
    return afterTaskChange(job, attempt, { ...task, state: 'ended', exit }, nowMs);
  },

  startFailed(job, event, nowMs) {
    const attempt = fencedAttempt(job, event.attempt);
    if (job.state.kind !== 'starting' || attempt === null || isReleased(attempt)) return unchanged(job);
    return beginStopping(job, attempt, retryAfterFailedStart(job, event.cause), nowMs);
  },

  stop(job, event, nowMs) {
    if (isTerminal(job.state.kind)) return unchanged(job);
    const cause = platformCause('cancelled', event.reason === '' ? 'stopped by its user' : event.reason);
    const attempt = currentAttempt(job);
    if (attempt === null) return end(job, { next: 'cancelled', cause }, nowMs);
    if (job.state.kind === 'stopping') {
      // Already on the way out: the user's wish outranks a retry, but does not hide why a job failed.
      if (job.state.outcome.next !== 'queued') return unchanged(job);
    }
    return beginStopping(job, attempt, { next: 'cancelled', cause }, nowMs);
  },

  requeue(job, _event, nowMs) {
    const attempt = currentAttempt(job);
    if (attempt === null || job.state.kind === 'stopping') return unchanged(job);
    const cause = platformCause('preempted', 'requeued by its user');
    return beginStopping(job, attempt, { next: 'queued', cause, backoffMs: 0, charge: 'nothing' }, nowMs);
  },

  timeLimit(job, event, nowMs) {
    const attempt = fencedAttempt(job, event.attempt);
    if (attempt === null || job.state.kind === 'stopping') return unchanged(job);
    const limitS = Math.round((job.spec.maxRuntimeMs ?? 0) / 1000);
    const cause = platformCause('time_limit', `ran for its max_runtime of ${limitS} s`);
    return beginStopping(job, attempt, outcomeOfFailure(job, cause), nowMs);
  },
};

/** One task of the current attempt is in another state now: what does that mean for the gang? */
function afterTaskChange(job: Job, before: Attempt, task: Task, nowMs: number): Transition {
  const attempt: Attempt = { ...before, tasks: replaceTask(before.tasks, task) };
  const events: NewEvent[] = [];
  if (task.state === 'ended') {
    events.push(
      attemptEvent(job, attempt, 'task.ended', { nodeRank: task.nodeRank, node: task.node, exit: task.exit }),
    );
  }
  if (job.state.kind === 'stopping') {
    const stopping: Job = { ...job, state: { ...job.state, attempt } };
    return followedBy(events, endIfDone(stopping, job.state.outcome, nowMs));
  }
  const outcome = task.exit === null ? null : outcomeOfEnd(job, before, task, task.exit);
  if (outcome !== null) return followedBy(events, beginStopping(job, attempt, outcome, nowMs));
  if (attempt.tasks.every((each) => each.state === 'ended')) {
    const ended: Attempt = {
      ...attempt,
      state: 'ended',
      endedAtMs: nowMs,
      runningAtMs: attempt.runningAtMs ?? nowMs,
    };
    const succeeded: Job = { ...job, state: { kind: 'succeeded', endedAtMs: nowMs } };
    return {
      job: succeeded,
      ended,
      events: [
        ...events,
        attemptEvent(job, ended, 'attempt.ended', endedData(ended)),
        jobEvent(job, 'job.succeeded', {}),
      ],
    };
  }
  const everyTaskStarted = attempt.tasks.every((each) => each.state === 'running' || each.state === 'ended');
  if (job.state.kind === 'starting' && everyTaskStarted && attempt.state === 'claimed') {
    const running: Attempt = { ...attempt, state: 'running', runningAtMs: nowMs };
    events.push(attemptEvent(job, running, 'attempt.running', {}));
    return {
      job: { ...job, failedStarts: 0, state: { kind: 'running', attempt: running } },
      ended: null,
      events,
    };
  }
  assertInvariant(
    job.state.kind === 'starting' || job.state.kind === 'running',
    'G2',
    `${job.id} has no attempt`,
  );
  return { job: { ...job, state: { ...job.state, attempt } }, ended: null, events };
}

/** Ends the attempt's tasks: unreleased ones at once, the others when their nodes say so. */
function beginStopping(job: Job, attempt: Attempt, outcome: Outcome, nowMs: number): Transition {
  const tasks = isReleased(attempt)
    ? attempt.tasks
    : attempt.tasks.map(
        (task): Task => (task.state === 'ended' ? task : { ...task, state: 'ended', exit: neverStartedEnd }),
      );
  const stopping: Job = { ...job, state: { kind: 'stopping', attempt: { ...attempt, tasks }, outcome } };
  const event = jobEvent(job, 'job.stopping', {
    attempt: attempt.number,
    next: outcome.next,
    cause: outcome.cause,
  });
  return followedBy([event], endIfDone(stopping, outcome, nowMs));
}

/** A stopping job whose last task has ended goes where its outcome says. */
function endIfDone(job: Job, outcome: Outcome, nowMs: number): Transition {
  const attempt = currentAttempt(job);
  if (attempt === null || attempt.tasks.some((task) => task.state !== 'ended')) return unchanged(job);
  const ended: Attempt = { ...attempt, state: 'ended', endedAtMs: nowMs, cause: outcome.cause };
  const next = end(job, outcome, nowMs);
  return {
    ...next,
    ended,
    events: [attemptEvent(job, ended, 'attempt.ended', endedData(ended)), ...next.events],
  };
}

function end(job: Job, outcome: Outcome, nowMs: number): Transition {
  const { cause } = outcome;
  switch (outcome.next) {
    case 'failed':
    case 'cancelled':
      return {
        job: { ...job, state: { kind: outcome.next, endedAtMs: nowMs, cause } },
        ended: null,
        events: [jobEvent(job, `job.${outcome.next}`, { cause })],
      };
    case 'queued':
      return {
        job: {
          ...job,
          failures: job.failures + (outcome.charge === 'failure' ? 1 : 0),
          failedStarts: job.failedStarts + (outcome.charge === 'failed_start' ? 1 : 0),
          state: { kind: 'queued', backoffMs: outcome.backoffMs, lastCause: cause },
        },
        ended: null,
        events: [jobEvent(job, 'job.queued', { cause, backoffMs: outcome.backoffMs })],
      };
    default: {
      const never: never = outcome;
      return never;
    }
  }
}

/** The current attempt, if that is the one the reporter speaks of (G6). */
function fencedAttempt(job: Job, attemptNumber: number): Attempt | null {
  const attempt = currentAttempt(job);
  return attempt?.number === attemptNumber ? attempt : null;
}

function replaceTask(tasks: readonly Task[], task: Task): readonly Task[] {
  return tasks.map((each) => (each.nodeRank === task.nodeRank ? task : each));
}

function platformCause(kind: Cause['kind'], message: string): Cause {
  return { kind, message, nodeRank: null, node: null };
}

function unchanged(job: Job): Transition {
  return { job, ended: null, events: [] };
}

function followedBy(events: readonly NewEvent[], next: Transition): Transition {
  return { ...next, events: [...events, ...next.events] };
}

function endedData(attempt: Attempt): Readonly<Record<string, unknown>> {
  return { cause: attempt.cause, tasks: attempt.tasks, gpuUsage: gpuUsageOf(attempt) };
}

function jobEvent(job: Job, kind: string, data: Readonly<Record<string, unknown>>): NewEvent {
  return { kind, subject: job.id, data: { name: job.spec.name, ...data } };
}

function attemptEvent(
  job: Job,
  attempt: Attempt,
  kind: string,
  data: Readonly<Record<string, unknown>>,
): NewEvent {
  return jobEvent(job, kind, { attempt: attempt.number, ...data });
}
