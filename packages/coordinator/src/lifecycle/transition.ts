/**
 * The life of a job, as a plain function: (job, event, now) → (job, events). No I/O, no clock, no chance.
 *
 *                 allocate             every task running            every task ended well
 *      queued ───────────────► starting ───────────────► running ─────────────────────────► succeeded
 *        ▲  │                     │                         │                                   ▲
 *        │  │ stop                │ stop · start failed · a task ended badly · node lost ·      │
 *        │  │                     │ time limit · requeue · rank 0 of mpi-hostfile ended well    │
 *        │  ▼                     ▼                         ▼                                   │
 *        │ cancelled           stopping ◄───────────────────┘                                   │
 *        │                        │ last task ended, by the outcome                             │
 *        └────────────────────────┴──► queued | failed | cancelled ─────────────────────────────┘
 *
 *      attempt: allocated ──every task ready (gang.ts)──► claimed ──every task running──► running ──► ended(cause)
 *      task:    assigned ──► claimed ⇄ ready ──► running ──► ended
 *
 * Rules that the functions of this folder keep:
 * - An attempt is allocated only while no other attempt of the job exists (G2). The number only grows.
 * - Before its release no task of an attempt can be executing, because agents start nothing without it. So tasks
 *   that have not been released end at once when the attempt does, without asking the node.
 * - After the release only the node's own report, or proof of death or fence, ends a task: silent is not dead (G7).
 * - One bad end stops the whole gang at once. Which end was the first, and so the cause, is decided when the last is known.
 * - A report about anything but the current attempt changes nothing (G6): it returns the job as it was.
 * - Terminal states never change.
 */
import { assertInvariant } from '@muster/common/errors';
import { isTerminal } from '@muster/common/states';
import type { Cause, TaskEnd } from '@muster/common/views';
import { type Attempt, currentAttempt, isReleased, type Job, type Outcome, type Task } from '../model.ts';
import { endedLikeStopped, endedWell, isConsequence, rootCause, tellsOfOwnFailure } from './causes.ts';
import {
  attemptEvent,
  fencedAttempt,
  followedBy,
  type Handler,
  type JobEvent,
  replaceTask,
  type Transition,
  unchanged,
} from './event.ts';
import { allocate, checked, claim, endBeforeRelease, prepareTimeout, startFailed } from './gang.ts';
import { outcomeOfBadEnd, outcomeOfFailure } from './outcomes.ts';
import { beginStopping, end, endIfDone } from './stopping.ts';

/**
 * @param nowMs wall clock, epoch milliseconds; recorded, and compared only to tell which failure came first
 * @throws {InvariantViolation} when the event would break a guarantee; the job is then unchanged
 */
export function transition(job: Job, event: JobEvent, nowMs: number): Transition {
  const handler = handlers[event.kind] as (job: Job, event: JobEvent, nowMs: number) => Transition;
  return handler(job, event, nowMs);
}

const handlers: { readonly [K in JobEvent['kind']]: Handler<K> } = {
  allocate,
  claim,
  checked,
  startFailed,
  prepareTimeout,

  taskRunning(job, event, nowMs) {
    const attempt = fencedAttempt(job, event.attempt);
    const task = attempt?.tasks[event.nodeRank];
    if (attempt === null || task?.state !== 'ready' || !isReleased(attempt)) return unchanged(job);
    return afterTaskChange(job, attempt, { ...task, state: 'running' }, nowMs);
  },

  taskEnded(job, event, nowMs) {
    const attempt = fencedAttempt(job, event.attempt);
    const task = attempt?.tasks[event.nodeRank];
    if (attempt === null || task === undefined || task.state === 'ended') return unchanged(job);
    const { exit } = event;
    const failedAtMs = endedWell(exit) ? null : (event.failedAtMs ?? nowMs);
    return afterTaskChange(job, attempt, { ...task, state: 'ended', exit, failedAtMs }, nowMs);
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
      failure: null,
    };
    const failedAtMs = event.lastHeardMs ?? nowMs;
    return afterTaskChange(job, attempt, { ...task, state: 'ended', exit, failedAtMs }, nowMs);
  },

  rendezvousTimeout(job, event, nowMs) {
    const attempt = fencedAttempt(job, event.attempt);
    if (attempt === null || job.state.kind !== 'starting' || !isReleased(attempt)) return unchanged(job);
    const late = attempt.tasks.filter((task) => task.state === 'ready').map(({ node }) => node);
    const limitS = Math.round(job.spec.rendezvousTimeoutMs / 1000);
    const message = `not running within the rendezvous_timeout of ${limitS} s: ${late.join(', ')}`;
    const outcome = outcomeOfFailure(job, platformCause('rendezvous_timeout', message));
    return beginStopping(job, attempt, outcome, nowMs);
  },

  stop(job, event, nowMs) {
    if (isTerminal(job.state.kind)) return unchanged(job);
    const cause = platformCause('cancelled', event.reason === '' ? 'stopped by its user' : event.reason);
    const attempt = currentAttempt(job);
    if (attempt === null) return end(job, { next: 'cancelled', cause }, nowMs);
    if (job.state.kind === 'stopping') {
      // Already on the way out: the user's wish outranks a retry, but does not hide why a job failed.
      const { state } = job;
      if (state.outcome.next === 'failed') {
        const outcome: Outcome = { ...state.outcome, isWanted: true };
        return { job: { ...job, state: { ...state, outcome } }, ended: null, events: [] };
      }
      if (state.outcome.next !== 'queued') return unchanged(job);
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
  if (task.exit === null) return afterStart(job, attempt, nowMs);
  const { nodeRank, node, exit } = task;
  const events = [attemptEvent(job, attempt, 'task.ended', { nodeRank, node, exit })];
  return followedBy(events, afterEnd(job, before, attempt, { ...task, exit }, nowMs));
}

/** One more task runs, or has done its work while others are still to start. */
function afterStart(job: Job, attempt: Attempt, nowMs: number): Transition {
  const everyTaskStarted = attempt.tasks.every((each) => each.state === 'running' || each.state === 'ended');
  if (job.state.kind === 'starting' && everyTaskStarted) {
    const running: Attempt = { ...attempt, state: 'running', runningAtMs: nowMs };
    const state = { kind: 'running', attempt: running } as const;
    // Whatever was wrong with nodes, it is over: the job has begun.
    return {
      job: { ...job, failedStarts: 0, leftOut: [], state },
      ended: null,
      events: [attemptEvent(job, running, 'attempt.running', {})],
    };
  }
  const { state } = job;
  assertInvariant('attempt' in state, 'G2', `${job.id} has no attempt`);
  return { job: { ...job, state: { ...state, attempt } }, ended: null, events: [] };
}

function afterEnd(
  job: Job,
  before: Attempt,
  attempt: Attempt,
  task: Task & { readonly exit: TaskEnd },
  nowMs: number,
): Transition {
  if (!isReleased(before)) return endBeforeRelease(job, before, task, task.exit, nowMs);
  if (job.state.kind === 'stopping') {
    const outcome = outcomeWith(job, job.state.outcome, attempt, task);
    const stopping: Job = { ...job, state: { ...job.state, attempt, outcome } };
    return endIfDone(stopping, outcome, nowMs);
  }
  if (!endedWell(task.exit)) return beginStopping(job, attempt, outcomeOfBadEnd(job, task), nowMs);
  const isDone = attempt.tasks.every((each) => each.state === 'ended');
  // The other nodes only serve the one that the command runs on.
  const servedOne = job.spec.launcher === 'mpi-hostfile' && task.nodeRank === 0;
  if (!isDone && !servedOne) return afterStart(job, attempt, nowMs);
  const outcome = { next: 'succeeded', cause: null } as const;
  if (!isDone) return beginStopping(job, attempt, outcome, nowMs);
  return endIfDone({ ...job, state: { kind: 'stopping', attempt, outcome } }, outcome, nowMs);
}

/**
 * A task has ended while its gang is being stopped. Where that began with the bad end of another one, this one may have
 * failed before it, and be the reason: news of the two can come in any order.
 */
function outcomeWith(
  job: Job,
  outcome: Outcome,
  attempt: Attempt,
  task: Task & { readonly exit: TaskEnd },
): Outcome {
  const rank = outcome.cause?.nodeRank ?? null;
  // Only the cause of a task's end names a rank: a stop, a time limit or a success stays what it is.
  const first = rank === null ? undefined : attempt.tasks[rank];
  if (first === undefined || endedWell(task.exit)) return outcome;
  // A rank that was killed may hang in its launcher until our stop ends that: then what it has said tells of it.
  const isAnswer = isConsequence(first) && tellsOfOwnFailure(task.exit);
  if (endedLikeStopped(task.exit) && !isAnswer) return outcome;
  if (rootCause([first, task]) === first) return outcome;
  const revised = outcomeOfBadEnd(job, task);
  const isWanted = outcome.next === 'failed' && outcome.isWanted === true;
  return isWanted ? { next: 'failed', cause: revised.cause, isWanted } : revised;
}

/** Of no task: it names no rank. */
function platformCause(kind: Cause['kind'], message: string): Cause {
  return { kind, message, nodeRank: null, node: null };
}

export type { JobEvent, Transition } from './event.ts';
