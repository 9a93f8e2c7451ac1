/** The way out of an attempt: its tasks end, and then its job goes where the outcome says. */
import { type Attempt, currentAttempt, isReleased, type Job, type Outcome, type Task } from '../model.ts';
import { neverStartedEnd } from './causes.ts';
import { verdictNews } from './checkpoints.ts';
import { attemptEvent, followedBy, jobEvent, type Transition, unchanged } from './event.ts';
import { gpuUsageOf } from './gpuUsage.ts';
import { bookAttempt, bookQueued } from './ledger.ts';
import { finalCause, opensBreaker, recoveryOf } from './recovery.ts';

/** Ends the attempt's tasks: unreleased ones at once, the others when their nodes say so. */
export function beginStopping(job: Job, attempt: Attempt, outcome: Outcome, nowMs: number): Transition {
  const tasks = isReleased(attempt)
    ? attempt.tasks
    : attempt.tasks.map(
        (task): Task => (task.state === 'ended' ? task : { ...task, state: 'ended', exit: neverStartedEnd }),
      );
  const stoppingAtMs = attempt.stoppingAtMs ?? nowMs;
  const stopping: Job = {
    ...job,
    state: { kind: 'stopping', attempt: { ...attempt, tasks, stoppingAtMs }, outcome },
  };
  const event = jobEvent(job, 'job.stopping', {
    attempt: attempt.number,
    next: outcome.next,
    cause: outcome.cause,
  });
  return followedBy([event], endIfDone(stopping, outcome, nowMs));
}

/**
 * A stopping job whose last task has ended goes where its outcome says. The attempt ended when its last process did, however
 * late that is learnt; the job waits again, if it does, from now on.
 */
export function endIfDone(job: Job, outcome: Outcome, nowMs: number): Transition {
  const attempt = currentAttempt(job);
  if (attempt === null || attempt.tasks.some((task) => task.state !== 'ended')) return unchanged(job);
  const settled = settle(job, attempt, outcome);
  const endedAtMs = endOf(attempt, nowMs);
  const ended: Attempt = {
    ...attempt,
    state: 'ended',
    endedAtMs,
    cause: settled.outcome.cause,
    // One that did its work has run, though it may have been over before anyone saw that.
    runningAtMs: attempt.runningAtMs ?? (outcome.next === 'succeeded' ? endedAtMs : null),
  };
  const next = end(bookAttempt(settled.job, ended), settled.outcome, nowMs, endedAtMs);
  const data = { cause: ended.cause, tasks: ended.tasks, gpuUsage: gpuUsageOf(ended), endedAtMs };
  const news = [attemptEvent(job, ended, 'attempt.ended', data), ...verdictNews(job, settled.job)];
  return { ...followedBy(news, next), ended };
}

/**
 * When the last of its processes ended, by the wall clock: not before the attempt began, and not after now. Now, where nobody
 * saw one of the ends.
 */
function endOf({ tasks, allocatedAtMs, runningAtMs }: Attempt, nowMs: number): number {
  const lastMs = Math.max(...tasks.map(({ exit }) => exit?.finishedAtMs ?? nowMs));
  return Math.min(nowMs, Math.max(runningAtMs ?? allocatedAtMs, lastMs));
}

/** What went wrong is looked at once more, with all that has come to light since the stop began. */
function settle(
  job: Job,
  attempt: Attempt,
  outcome: Outcome,
): { readonly job: Job; readonly outcome: Outcome } {
  const isFailure =
    (outcome.next === 'failed' && isReleased(attempt)) ||
    (outcome.next === 'queued' && (outcome.charge === 'failure' || outcome.charge === 'node_loss'));
  if (!isFailure) return { job, outcome };
  const recovery = recoveryOf(job, attempt, outcome.cause);
  const isWanted = outcome.next === 'failed' && outcome.isWanted === true;
  if (!isWanted && recovery.outcome.next === 'queued') return recovery;
  return { job: recovery.job, outcome: { next: 'failed', cause: finalCause(recovery.job, outcome.cause) } };
}

/** @param endedAtMs when it ended, if it does: its attempt's end. Left out: now */
export function end(before: Job, outcome: Outcome, nowMs: number, endedAtMs = nowMs): Transition {
  const job = bookQueued(before, nowMs);
  switch (outcome.next) {
    case 'succeeded':
      return {
        job: { ...job, state: { kind: 'succeeded', endedAtMs } },
        ended: null,
        events: [jobEvent(job, 'job.succeeded', {})],
      };
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
