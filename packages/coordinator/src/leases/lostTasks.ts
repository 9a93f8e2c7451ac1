/** Commands that end the tasks of silent nodes as lost. They are plain functions on a draft. */

import type { NodeName, TaskRef } from '@muster/common/ids';
import type { Attempt } from '../model.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { heldTasks } from '../state/heldTasks.ts';
import type { Draft } from '../state/state.ts';

export interface Loss {
  /** Why, for the cause of the attempt. */
  readonly message: string;
  /** By the wall clock of this coordinator. null: not since its start. */
  readonly lastHeardMs: number | null;
}

/**
 * @param isGone whether no task of the attempt executes on the node, for certain
 * @returns the tasks that this ended
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
