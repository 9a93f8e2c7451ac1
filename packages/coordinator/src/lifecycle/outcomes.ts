/** Decides whether a job whose attempt failed before the user's program ran is queued again or ends. */
import { causeOf } from '@muster/common/cause';
import { backoffMs } from '@muster/common/retry';
import type { CauseKind } from '@muster/common/spec/causes';
import type { Cause } from '@muster/common/views';
import type { Attempt, Job, Task } from '../model.ts';
import { type BadOutcome, recoveryOf } from './recovery.ts';

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
  // What it was to begin from is not there: another one is chosen.
  'corrupt_checkpoint',
];

/** A task could not be started, and its attempt was not released yet. */
export function outcomeOfStartError(job: Job, attempt: Attempt, cause: Cause): BadOutcome {
  // The same command would not be found anywhere else either: that is a retry like any other.
  return nodeSideCauses.includes(cause.kind)
    ? outcomeOfFailedStart(job, cause)
    : recoveryOf(job, attempt, cause).outcome;
}

/** Nothing can have run. Believed, it would be a success that never was, or a gang that waits for this rank for ever. */
export function outcomeOfEarlyEnd(job: Job, { node, nodeRank }: Task): BadOutcome {
  const message = `rank ${nodeRank} on ${node} reported its end before it was allowed to start`;
  return outcomeOfFailedStart(job, causeOf('unknown', message, { nodeRank, node }));
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
