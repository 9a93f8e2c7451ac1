/**
 * The life of a job as a pure function: (job, event, now) → (job, events). It uses no I/O, no clock and no randomness.
 *
 *                 allocate             every task running            every task ended well
 *      queued ───────────────► starting ───────────────► running ─────────────────────────► succeeded
 *        ▲  │                     │                         │                                   ▲
 *        │  │ stop                │ stop · start failed · a task ended badly · node lost · hung │
 *        │  │                     │ time limit · requeue · preempted · diverged · its work is   │
 *        │  │                     │ done: its marker, or rank 0 of mpi-hostfile ended well      │
 *        │  ▼                     ▼                         ▼                                   │
 *        │ cancelled           stopping ◄───────────────────┘                                   │
 *        │                        │ last task ended, by the outcome                             │
 *        └────────────────────────┴──► queued | failed | cancelled ─────────────────────────────┘
 *
 *      attempt: allocated ──every task checked (gang.ts)──► released ──every task running──► running ──► ended(cause)
 *      task:    assigned ──► prepared ⇄ checked ──► running ──► ended
 *
 * Rules that the functions of this folder keep, with the numbers of docs/guarantees.md:
 * - An attempt is allocated only while no other attempt of the job exists (G2). Its number is higher than any before (G6).
 * - Before its release no task of an attempt can be executing, because agents start nothing without it. So tasks
 *   that have not been released end at once when the attempt does, without asking the node.
 * - After the release only the node's own report, or proof of death or fence, ends a task: silent is not dead (G7).
 * - One bad end stops the whole gang at once (G3). Which end was the first, and so the cause, is decided when the last is known.
 * - A report about any but the current attempt changes nothing (G6): it returns the job as it was. While the job waits, a
 *   node may report more about a checkpoint that it has reported before.
 * - If the coordinator ordered the stop, that is the cause, whatever the exit codes are.
 * - Terminal states never change (G6).
 */
import { causeOf, nothingRan } from '@muster/common/cause';
import type { TaskEnd } from '@muster/common/views';
import { type Attempt, isReleased, type Job, type Outcome, type Task } from '../model.ts';
import {
  causeOfEnd,
  endedLikeStopped,
  endedWell,
  hasOwnFailure,
  isConsequence,
  rootCause,
} from './causes.ts';
import { checkpoint } from './checkpoints.ts';
import {
  attemptEvent,
  fencedAttempt,
  followedBy,
  type GpuFault,
  type Handler,
  type JobEvent,
  replaceTask,
  type Transition,
  unchanged,
  withAttempt,
} from './event.ts';
import { allocate, checked, endBeforeRelease, prepared, prepareTimeout, startFailed } from './gang.ts';
import { recoveryOf } from './recovery.ts';
import { extend, phaseJudged, preempt, requeue, stop, timeLimit } from './requests.ts';
import { beginStopping, endIfDone } from './stopping.ts';
import { firstStep, hung, trainingComplete, trainingSign } from './training.ts';

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
  prepared,
  checked,
  startFailed,
  prepareTimeout,

  taskRunning(job, event, nowMs) {
    const attempt = fencedAttempt(job, event.attempt);
    const task = attempt?.tasks[event.nodeRank];
    if (attempt === null || task?.state !== 'checked' || !isReleased(attempt)) return unchanged(job);
    const startedAtMs = event.startedAtMs ?? nowMs;
    const started: Task = { ...task, state: 'running', startedAtMs };
    return afterStart(job, { ...attempt, tasks: replaceTask(attempt.tasks, started) }, startedAtMs, nowMs);
  },

  taskEnded(job, event, nowMs) {
    const attempt = fencedAttempt(job, event.attempt);
    const task = attempt?.tasks[event.nodeRank];
    if (attempt === null || task === undefined || task.state === 'ended') return unchanged(job);
    const { exit } = event;
    const failedAtMs = endedWell(exit) ? null : (event.failedAtMs ?? nowMs);
    const gpuFault = event.gpuFault ?? null;
    const ran = event.ranForMs == null ? {} : { ranForMs: event.ranForMs };
    return afterTaskEnd(job, attempt, { ...task, ...ran, state: 'ended', exit, failedAtMs }, nowMs, gpuFault);
  },

  taskLost(job, event, nowMs) {
    const attempt = fencedAttempt(job, event.attempt);
    const task = attempt?.tasks[event.nodeRank];
    if (attempt === null || task === undefined || task.state === 'ended') return unchanged(job);
    const startError = causeOf('node_lost', event.message, { nodeRank: event.nodeRank, node: task.node });
    const exit: TaskEnd = { ...nothingRan, statusLost: true, startError };
    const failedAtMs = event.lastContactMs ?? nowMs;
    return afterTaskEnd(job, attempt, { ...task, state: 'ended', exit, failedAtMs }, nowMs);
  },

  rendezvousTimeout(job, event, nowMs) {
    const attempt = fencedAttempt(job, event.attempt);
    if (attempt === null || job.state.kind !== 'starting' || !isReleased(attempt)) return unchanged(job);
    const late = attempt.tasks.filter((task) => task.state === 'checked').map(({ node }) => node);
    const limitS = Math.round(job.spec.rendezvousTimeoutMs / 1000);
    const message = `not running within the rendezvous_timeout of ${limitS} s: ${late.join(', ')}`;
    // Of several it is unknown which one kept the others waiting.
    const node = late.length === 1 ? (late[0] ?? null) : null;
    const cause = causeOf('rendezvous_timeout', message, { nodeRank: null, node });
    return beginStopping(job, attempt, recoveryOf(job, attempt, cause).outcome, nowMs);
  },

  checkpoint,
  trainingComplete,
  firstStep,
  trainingSign,
  hung,

  stop,
  requeue,
  preempt,
  extend,
  timeLimit,
  phaseJudged,
};

type EndedTask = Task & { readonly exit: TaskEnd };

/** One task of the current attempt has ended: what does that mean for the gang? */
function afterTaskEnd(
  job: Job,
  before: Attempt,
  task: EndedTask,
  nowMs: number,
  gpuFault: GpuFault | null = null,
): Transition {
  const attempt: Attempt = { ...before, tasks: replaceTask(before.tasks, task) };
  const { nodeRank, node, exit } = task;
  const events = [attemptEvent(job, attempt, 'task.ended', { nodeRank, node, exit })];
  return followedBy(events, afterEnd(job, before, attempt, task, gpuFault, nowMs));
}

/** One more task runs, or has done its work while others are still to start. @param startedAtMs when it began */
function afterStart(job: Job, attempt: Attempt, startedAtMs: number, nowMs: number): Transition {
  const everyTaskStarted = attempt.tasks.every((each) => each.state === 'running' || each.state === 'ended');
  if (job.state.kind === 'starting' && everyTaskStarted) {
    // News of it may be late; its node's clock may be wrong.
    const runningAtMs = Math.max(attempt.allocatedAtMs, Math.min(startedAtMs, nowMs));
    const running: Attempt = { ...attempt, state: 'running', runningAtMs };
    const state = { kind: 'running', attempt: running } as const;
    // Whatever kept it from starting is over. Nodes that it broke on while it ran are still to prove themselves.
    const excludedNodes = job.failuresInRow === 0 ? [] : job.excludedNodes;
    return {
      job: { ...job, failedStarts: 0, excludedNodes, state },
      ended: null,
      events: [attemptEvent(job, running, 'attempt.running', {})],
    };
  }
  return { job: withAttempt(job, attempt), ended: null, events: [] };
}

function afterEnd(
  job: Job,
  before: Attempt,
  attempt: Attempt,
  task: EndedTask,
  gpuFault: GpuFault | null,
  nowMs: number,
): Transition {
  if (!isReleased(before)) return endBeforeRelease(job, before, task, task.exit, nowMs);
  if (job.state.kind === 'stopping') {
    const outcome = outcomeWith(job, job.state.outcome, attempt, task, gpuFault);
    const stopping: Job = { ...job, state: { ...job.state, attempt, outcome } };
    return endIfDone(stopping, outcome, nowMs);
  }
  if (!endedWell(task.exit)) {
    const { outcome } = recoveryOf(job, attempt, causeOfEnd(task, gpuFault));
    return beginStopping(job, attempt, outcome, nowMs);
  }
  const isDone = attempt.tasks.every((each) => each.state === 'ended');
  // The other nodes only serve the one that the command runs on.
  const servedOne = job.spec.launcher === 'mpi-hostfile' && task.nodeRank === 0;
  if (!isDone && !servedOne) return afterStart(job, attempt, nowMs, nowMs);
  const outcome = { next: 'succeeded', cause: null } as const;
  if (!isDone) return beginStopping(job, attempt, outcome, nowMs);
  return endIfDone({ ...job, state: { kind: 'stopping', attempt, outcome } }, outcome, nowMs);
}

/**
 * A task has ended while its gang is being stopped. Where that began with the bad end of another one, this one may have
 * failed before it and caused it, because the reports of the two come in any order.
 */
export function outcomeWith(
  job: Job,
  outcome: Outcome,
  attempt: Attempt,
  task: EndedTask,
  gpuFault: GpuFault | null,
): Outcome {
  const rank = outcome.cause?.nodeRank ?? null;
  // Only the cause of a task's end names a rank: a stop, a time limit or a success stays what it is.
  const first = rank === null ? undefined : attempt.tasks[rank];
  if (first === undefined || endedWell(task.exit)) return outcome;
  if (gpuFault === null) {
    // A rank that was killed may hang in its launcher until our stop ends that: then its output is the evidence.
    const isAnswer = isConsequence(first) && hasOwnFailure(task.exit);
    if (endedLikeStopped(task.exit) && !isAnswer) return outcome;
    if (rootCause([first, task]) === first) return outcome;
  }
  const revised = recoveryOf(job, attempt, causeOfEnd(task, gpuFault)).outcome;
  const isWanted = outcome.next === 'failed' && outcome.isWanted === true;
  return isWanted ? { next: 'failed', cause: revised.cause, isWanted } : revised;
}

export type { JobEvent, Transition } from './event.ts';
