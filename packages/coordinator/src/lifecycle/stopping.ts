/** The way out of an attempt: its tasks end, and then its job goes where the outcome says. */
import { type Attempt, currentAttempt, isReleased, type Job, type Outcome, type Task } from '../model.ts';
import { neverStartedEnd } from './causes.ts';
import { attemptEvent, followedBy, jobEvent, type Transition, unchanged } from './event.ts';
import { gpuUsageOf } from './gpuUsage.ts';

/** Ends the attempt's tasks: unreleased ones at once, the others when their nodes say so. */
export function beginStopping(job: Job, attempt: Attempt, outcome: Outcome, nowMs: number): Transition {
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
export function endIfDone(job: Job, outcome: Outcome, nowMs: number): Transition {
  const attempt = currentAttempt(job);
  if (attempt === null || attempt.tasks.some((task) => task.state !== 'ended')) return unchanged(job);
  const ended: Attempt = {
    ...attempt,
    state: 'ended',
    endedAtMs: nowMs,
    cause: outcome.cause,
    // One that did its work has run, though it may have been over before anyone saw that.
    runningAtMs: attempt.runningAtMs ?? (outcome.next === 'succeeded' ? nowMs : null),
  };
  const next = end(job, outcome, nowMs);
  const data = { cause: ended.cause, tasks: ended.tasks, gpuUsage: gpuUsageOf(ended) };
  return { ...followedBy([attemptEvent(job, ended, 'attempt.ended', data)], next), ended };
}

export function end(job: Job, outcome: Outcome, nowMs: number): Transition {
  switch (outcome.next) {
    case 'succeeded':
      return {
        job: { ...job, state: { kind: 'succeeded', endedAtMs: nowMs } },
        ended: null,
        events: [jobEvent(job, 'job.succeeded', {})],
      };
    case 'failed':
    case 'cancelled': {
      const { cause } = outcome;
      return {
        job: { ...job, state: { kind: outcome.next, endedAtMs: nowMs, cause } },
        ended: null,
        events: [jobEvent(job, `job.${outcome.next}`, { cause })],
      };
    }
    case 'queued': {
      const { cause, charge, backoffMs } = outcome;
      return {
        job: {
          ...job,
          failures: job.failures + (charge === 'failure' ? 1 : 0),
          failedStarts: job.failedStarts + (charge === 'failed_start' ? 1 : 0),
          state: { kind: 'queued', backoffMs, lastCause: cause },
        },
        ended: null,
        events: [jobEvent(job, 'job.queued', { cause, backoffMs })],
      };
    }
    default: {
      const never: never = outcome;
      return never;
    }
  }
}
