/** Where an attempt that goes wrong leads: back to the queue, on which budget and after which wait, or to its end. */
import { backoffMs } from '@muster/common/retry';
import type { Cause, TaskEnd } from '@muster/common/views';
import { type Attempt, isReleased, type Job, type Outcome, type Task } from '../model.ts';
import { causeOfEnd, endedWell, neverStarted } from './causes.ts';

/** What the end of one task means for the whole attempt; null: that one is done. */
export function outcomeOfEnd(job: Job, attempt: Attempt, task: Task, exit: TaskEnd): Outcome | null {
  if (!endedWell(exit)) {
    const cause = causeOfEnd(task);
    return neverStarted(exit) ? outcomeOfStartError(job, cause) : outcomeOfFailure(job, cause);
  }
  if (isReleased(attempt)) return null;
  // Nothing can have run. Believed, it would be a success that never was, or a gang that waits for this rank for ever.
  const { node, nodeRank } = task;
  const message = `rank ${nodeRank} on ${node} reported its end before it was allowed to start`;
  return retryAfterFailedStart(job, { kind: 'unknown', message, nodeRank, node });
}

/** A task of a released attempt ended badly: retry if the spec says so and the budget allows. */
export function outcomeOfFailure(job: Job, cause: Cause): Outcome {
  const { retry } = job.spec;
  const attemptsUsed = job.failures + 1;
  const retried = (retry.on as readonly string[]).includes(cause.kind);
  if (!retried || attemptsUsed >= retry.maxAttempts) return { next: 'failed', cause };
  return { next: 'queued', cause, backoffMs: backoffMs(retry.backoff, attemptsUsed), charge: 'failure' };
}

/** A task could not be started. The same command or image would fail again, unless the spec asks for a retry. */
function outcomeOfStartError(job: Job, cause: Cause): Outcome {
  return cause.kind === 'node_lost' ? retryAfterFailedStart(job, cause) : outcomeOfFailure(job, cause);
}

/** Nothing of the user's ran, so it costs no attempt of the budget; the backoff keeps a broken node from spinning. */
export function retryAfterFailedStart(job: Job, cause: Cause): Outcome {
  const waitMs = backoffMs(job.spec.retry.backoff, job.failedStarts + 1);
  return { next: 'queued', cause, backoffMs: waitMs, charge: 'failed_start' };
}
