/** Where an attempt that goes wrong leads: back to the queue, on which budget and after which wait, or to its end. */
import { backoffMs } from '@muster/common/retry';
import type { CauseKind } from '@muster/common/spec/causes';
import type { Cause } from '@muster/common/views';
import type { Job, Outcome, Task } from '../model.ts';
import { causeOfEnd } from './causes.ts';

/** An outcome that has a cause: everything but success. */
type BadOutcome = Extract<Outcome, { next: 'failed' | 'queued' }>;

/** In a row. Another node could have done in so many tries, were it only the nodes. */
export const failedStartsMax = 5;

/** What keeps a task from starting on one node and may well be different on another. */
const nodeSideCauses: readonly CauseKind[] = [
  'image_pull',
  'disk_full',
  'gpu_fault',
  'rendezvous',
  'rendezvous_timeout',
  'node_lost',
];

/** A task of a released attempt ended badly. */
export function outcomeOfBadEnd(job: Job, task: Task): BadOutcome {
  const cause = causeOfEnd(task);
  return cause.kind === 'node_lost' ? outcomeOfNodeLoss(job, cause) : outcomeOfFailure(job, cause);
}

/** An attempt that ran went wrong: retry if the spec says so and the budget allows. */
export function outcomeOfFailure(job: Job, cause: Cause): BadOutcome {
  const attemptsUsed = job.failures + 1;
  if (!isRetried(job, cause) || attemptsUsed >= job.spec.retry.maxAttempts) return { next: 'failed', cause };
  const waitMs = backoffMs(job.spec.retry.backoff, attemptsUsed);
  return { next: 'queued', cause, backoffMs: waitMs, charge: 'failure' };
}

/** The program did nothing wrong, so it costs it nothing: a job on rented machines may lose many in its life. */
function outcomeOfNodeLoss(job: Job, cause: Cause): BadOutcome {
  if (!isRetried(job, cause)) return { next: 'failed', cause };
  return { next: 'queued', cause, backoffMs: backoffMs(job.spec.retry.backoff, 1), charge: 'node_loss' };
}

/** A task could not be started, and its attempt was not released yet. */
export function outcomeOfStartError(job: Job, cause: Cause): BadOutcome {
  // The same command would not be found anywhere else either: that is a retry like any other.
  return nodeSideCauses.includes(cause.kind)
    ? outcomeOfFailedStart(job, cause)
    : outcomeOfFailure(job, cause);
}

/** Nothing can have run. Believed, it would be a success that never was, or a gang that waits for this rank for ever. */
export function outcomeOfEarlyEnd(job: Job, { node, nodeRank }: Task): BadOutcome {
  const message = `rank ${nodeRank} on ${node} reported its end before it was allowed to start`;
  return outcomeOfFailedStart(job, { kind: 'unknown', message, nodeRank, node });
}

/**
 * Nothing of the user's ran, so it costs no attempt of the budget; the backoff keeps a broken node from spinning. Nodes
 * that come and go are no reason to give a job up; anything else is, in the end.
 */
export function outcomeOfFailedStart(job: Job, cause: Cause): BadOutcome {
  const failedStarts = job.failedStarts + 1;
  if (cause.kind !== 'node_lost' && failedStarts >= failedStartsMax) return { next: 'failed', cause };
  const waitMs = backoffMs(job.spec.retry.backoff, failedStarts);
  return { next: 'queued', cause, backoffMs: waitMs, charge: 'failed_start' };
}

function isRetried(job: Job, cause: Cause): boolean {
  return (job.spec.retry.on as readonly string[]).includes(cause.kind);
}
