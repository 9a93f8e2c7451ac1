/** What threatens a job from outside, gathered from what agents say and what persons have said of its nodes. */

import type { PendingReason } from '@muster/common/views';
import type { TaskStatusCache } from '../agents/taskStatusCache.ts';
import { currentAttempt, type Job } from '../model.ts';
import type { ClusterState } from '../state/state.ts';
import type { JobRecord } from '../store/store.ts';
import { jobView } from '../views.ts';
import type { TrainingSurroundings } from './risks.ts';
import { trainingStatus } from './status.ts';

export interface StatusParts {
  readonly state: Pick<ClusterState, 'nodes'>;
  readonly taskStatus: Pick<TaskStatusCache, 'of'>;
  /** Why each queued job waits. */
  readonly reasons: { get(job: Job): PendingReason | undefined };
  readonly wallMs: () => number;
}

/** The page of a job as it is now. */
export function statusOf(
  { state, taskStatus, reasons, wallMs }: StatusParts,
  { job, attempts }: JobRecord,
): string {
  const nowMs = wallMs();
  const view = jobView(job, attempts, reasons.get(job), taskStatus, nowMs);
  return trainingStatus(view, surroundingsOf(job, taskStatus, state), nowMs);
}

function surroundingsOf(
  job: Job,
  taskStatus: Pick<TaskStatusCache, 'of'>,
  state: StatusParts['state'],
): TrainingSurroundings {
  const tasks = (currentAttempt(job)?.tasks ?? []).filter((task) => task.state !== 'ended');
  const noted = tasks.map(({ nodeRank }) => ({
    nodeRank,
    note: taskStatus.of({ jobId: job.id, attempt: job.lastAttempt, nodeRank }),
  }));
  return {
    hangs: noted.flatMap(({ nodeRank, note }) => (note.hang === null ? [] : [{ nodeRank, sign: note.hang }])),
    signs: noted.flatMap(({ nodeRank, note }) => note.signs.map((sign) => ({ nodeRank, sign }))),
    drains: [...new Set(tasks.map(({ node }) => node))].flatMap((node) => {
      const drain = state.nodes.get(node)?.drain ?? null;
      return drain === null ? [] : [{ node, drain }];
    }),
  };
}
