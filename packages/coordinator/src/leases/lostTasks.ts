/** Commands that end tasks of silent nodes as lost: plain functions on a draft. */

import type { NodeName, TaskRef } from '@muster/common/ids';
import type { Attempt } from '../model.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { heldTasks } from '../state/heldTasks.ts';
import type { Draft } from '../state/state.ts';

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
  return lost.map(({ job, attempt, task }) => {
    const fence = { attempt: attempt.number, nodeRank: task.nodeRank };
    applyJobEvent(draft, job.id, { kind: 'taskLost', ...fence, ...loss }, nowMs);
    return { jobId: job.id, ...fence };
  });
}
