/** Commands that end tasks of silent nodes as lost: plain functions on a draft. */
import type { JobId, NodeName, TaskRef } from '@muster/common/ids';
import { applyJobEvent } from '../commands/jobs.ts';
import { type Attempt, currentAttempt, type Job } from '../model.ts';
import type { Draft } from '../state.ts';

export interface HeldTask {
  readonly jobId: JobId;
  readonly attempt: Attempt;
  readonly nodeRank: number;
}

/** Tasks that have not ended, by node. */
export function heldTasks(jobs: Iterable<Job>): ReadonlyMap<NodeName, readonly HeldTask[]> {
  const held = new Map<NodeName, HeldTask[]>();
  for (const job of jobs) {
    const attempt = currentAttempt(job);
    for (const { node, nodeRank, state } of attempt?.tasks ?? []) {
      if (attempt === null || state === 'ended') continue;
      const task = { jobId: job.id, attempt, nodeRank };
      const others = held.get(node);
      if (others === undefined) held.set(node, [task]);
      else others.push(task);
    }
  }
  return held;
}

export interface Loss {
  /** Why, for the cause of the attempt. */
  readonly message: string;
  /** By our wall clock. null: not since we started. */
  readonly lastHeardMs: number | null;
}

/**
 * @param isGone whether it is certain that nothing of the attempt runs on the node any more
 * @returns those that this ended
 */
export function endLostTasks(
  draft: Draft,
  node: NodeName,
  isGone: (attempt: Attempt) => boolean,
  loss: Loss,
  nowMs: number,
): readonly TaskRef[] {
  const held = heldTasks(draft.activeJobs()).get(node) ?? [];
  const lost = held.filter(({ attempt }) => isGone(attempt));
  return lost.map(({ jobId, attempt, nodeRank }) => {
    const fence = { attempt: attempt.number, nodeRank };
    applyJobEvent(draft, jobId, { kind: 'taskLost', ...fence, ...loss }, nowMs);
    return { jobId, ...fence };
  });
}
