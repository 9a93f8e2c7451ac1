/** The part of an attempt from a stop to its end. When its tasks have ended, the job gets the state of the outcome. */
import { nothingRan } from '@muster/common/cause';
import { type Attempt, currentAttempt, isReleased, type Job, type Outcome, type Task } from '../model.ts';
import { verdictEvents } from './checkpoints.ts';
import { attemptEvent, followedBy, jobEvent, type Transition, unchanged } from './event.ts';
import { bookAttempt, bookQueued, gpuUsageOf } from './ledger.ts';
import { asMeasured } from './measured.ts';
import { afterGoodEnd, type PhaseStep } from './phases.ts';
import { finalCause, opensBreaker, recoveryOf } from './recovery.ts';

/** Begins to stop an attempt. Tasks that were not released end at once, the others when their nodes report it. */
export function beginStopping(job: Job, attempt: Attempt, outcome: Outcome, nowMs: number): Transition {
  const tasks = isReleased(attempt)
    ? attempt.tasks
    : attempt.tasks.map(
        (task): Task => (task.state === 'ended' ? task : { ...task, state: 'ended', exit: nothingRan }),
      );
  const stoppingAtMs = attempt.stoppingAtMs ?? nowMs;
  const state = { kind: 'stopping', attempt: { ...attempt, tasks, stoppingAtMs }, outcome } as const;
  // Another outcome does not undo what its user has chosen.
  const isRequeued = job.state.kind === 'stopping' && job.state.isRequeued === true;
  const stopping: Job = { ...job, state: isRequeued ? { ...state, isRequeued } : state };
  const event = jobEvent(job, 'job.stopping', {
    attempt: attempt.number,
    next: outcome.next,
    cause: outcome.cause,
  });
  return followedBy([event], endIfDone(stopping, outcome, nowMs));
}

/**
 * Ends the attempt of a stopping job if its last task has ended, and gives the job the state of the outcome. The attempt ended
 * when its last process did, even if that was reported later. A job that is queued again waits from now on.
 */
export function endIfDone(job: Job, outcome: Outcome, nowMs: number): Transition {
  const attempt = currentAttempt(job);
  if (attempt === null || attempt.tasks.some((task) => task.state !== 'ended')) return unchanged(job);
  const settled = settle(job, attempt, outcome);
  const endedAtMs = endOf(attempt, nowMs);
  const measured = asMeasured(attempt, endedAtMs);
  const ended: Attempt = {
    ...measured,
    state: 'ended',
    endedAtMs,
    cause: settled.outcome.cause,
    // A job that has succeeded has run, even if its end was reported before its start.
    runningAtMs: measured.runningAtMs ?? (outcome.next === 'succeeded' ? endedAtMs : null),
  };
  const next = end(bookAttempt(settled.job, ended), settled.outcome, nowMs, endedAtMs);
  const data = { cause: ended.cause, tasks: ended.tasks, gpuUsage: gpuUsageOf(ended), endedAtMs };
  const changes = [attemptEvent(job, ended, 'attempt.ended', data), ...verdictEvents(job, settled.job)];
  return { ...followedBy(changes, next), ended };
}

/**
 * When the last process of an attempt ended, by the wall clock: not before the attempt began, and not after now. It is now if
 * one of the ends was not observed.
 */
function endOf({ tasks, allocatedAtMs, runningAtMs }: Attempt, nowMs: number): number {
  const lastMs = Math.max(...tasks.map(({ exit }) => exit?.finishedAtMs ?? nowMs));
  return Math.min(nowMs, Math.max(runningAtMs ?? allocatedAtMs, lastMs));
}

/** Decides once more about a failure, with everything that was reported since the stop began. */
function settle(
  job: Job,
  attempt: Attempt,
  outcome: Outcome,
): { readonly job: Job; readonly outcome: Outcome } {
  const isFailure =
    (outcome.next === 'failed' && isReleased(attempt)) ||
    (outcome.next === 'queued' && (outcome.charge === 'failure' || outcome.charge === 'node_loss')) ||
    (outcome.next === 'queued' && outcome.charge === 'failed_start' && isReleased(attempt));
  if (!isFailure) return { job, outcome };
  const recovery = recoveryOf(job, attempt, outcome.cause);
  const isWanted = outcome.next === 'failed' && outcome.isWanted === true;
  if (!isWanted && recovery.outcome.next === 'queued') return recovery;
  return { job: recovery.job, outcome: { next: 'failed', cause: finalCause(recovery.job, outcome.cause) } };
}

/** Gives a job the state of an outcome. @param endedAtMs when the job ended, if it has; default: now */
export function end(before: Job, outcome: Outcome, nowMs: number, endedAtMs = nowMs): Transition {
  const job = bookQueued(before, nowMs);
  switch (outcome.next) {
    case 'succeeded': {
      const step = afterGoodEnd(job, nowMs);
      return step === null ? succeed(job, endedAtMs) : followPhase(step, nowMs, endedAtMs);
    }
    case 'failed':
    case 'cancelled': {
      const { cause } = outcome;
      return {
        job: { ...job, state: { kind: outcome.next, endedAtMs, cause } },
        ended: null,
        events: [jobEvent(job, `job.${outcome.next}`, { cause })],
      };
    }
    case 'queued': {
      const { cause, charge, backoffMs } = outcome;
      const breakerOpen = (charge === 'failure' || charge === 'node_loss') && opensBreaker(job);
      const { failuresInRow, batchScale, lrScale } = job;
      const opened = jobEvent(job, 'job.circuit_open', { cause, failuresInRow, pauseMs: backoffMs });
      return {
        job: {
          ...job,
          failures: job.failures + (charge === 'failure' ? 1 : 0),
          failedStarts: job.failedStarts + (charge === 'failed_start' ? 1 : 0),
          preemptions: job.preemptions + (charge === 'preemption' ? 1 : 0),
          state: { kind: 'queued', backoffMs, lastCause: cause, sinceMs: nowMs, breakerOpen },
        },
        ended: null,
        events: [
          jobEvent(job, 'job.queued', { cause, backoffMs, batchScale, lrScale }),
          ...(breakerOpen ? [opened] : []),
        ],
      };
    }
    default: {
      const never: never = outcome;
      return never;
    }
  }
}

function succeed(job: Job, endedAtMs: number): Transition {
  return {
    job: { ...job, state: { kind: 'succeeded', endedAtMs } },
    ended: null,
    events: [jobEvent(job, 'job.succeeded', {})],
  };
}

/** Gives a job the state that follows from the end of a phase. @param endedAtMs as `end` */
export function followPhase({ job, events, next }: PhaseStep, nowMs: number, endedAtMs = nowMs): Transition {
  if (next === 'succeeded') return followedBy(events, succeed(bookQueued(job, nowMs), endedAtMs));
  if (next !== 'waits') return followedBy(events, end(job, { next: 'failed', cause: next.failed }, nowMs));
  if (job.state.kind === 'queued') return { job, ended: null, events };
  const { batchScale, lrScale } = job;
  const queued = jobEvent(job, 'job.queued', { cause: null, backoffMs: 0, batchScale, lrScale });
  const state = {
    kind: 'queued',
    backoffMs: 0,
    lastCause: null,
    sinceMs: nowMs,
    breakerOpen: false,
  } as const;
  return { job: { ...job, state }, ended: null, events: [...events, queued] };
}
