/** What becomes of a job whose attempt could not start because of a node. */
import { backoffMs } from '@muster/common/retry';
import type { CauseKind } from '@muster/common/spec/causes';
import type { Cause } from '@muster/common/views';
import type { Attempt, Job, Outcome } from '../model.ts';

/** An outcome with a cause that nobody requested. */
export type BadOutcome = Extract<Outcome, { next: 'failed' | 'queued' }>;

/** Failed starts in a row. If only nodes were at fault, one of this many attempts would have started on another node. */
export const failedStartsMax = 5;

/** What keeps a task from starting on one node and may well be different on another. */
export const nodeSideCauses: readonly CauseKind[] = [
  'image_pull',
  'artifact_store',
  'container_engine',
  'disk_full',
  'gpu_fault',
  'rendezvous',
  'rendezvous_timeout',
  'node_lost',
  // The checkpoint that it should resume from is not there: another one is chosen.
  'corrupt_checkpoint',
];

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

/**
 * Whether `cause` is that a task of a released attempt could not be started by its node, such as one whose disk has filled since
 * it was prepared. The program of that rank has never run, so the job is placed elsewhere, as if the node had failed to prepare.
 */
export function couldNotStart({ tasks }: Attempt, { kind, nodeRank }: Cause): boolean {
  const exit = nodeRank === null ? null : (tasks[nodeRank]?.exit ?? null);
  // A task that was lost, or whose checkpoint is corrupt, has a treatment of its own.
  const isTreated = kind === 'node_lost' || kind === 'corrupt_checkpoint';
  return exit?.startError?.kind === kind && !exit.statusLost && !isTreated && nodeSideCauses.includes(kind);
}
