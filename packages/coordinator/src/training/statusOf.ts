/** What threatens a job from outside, gathered from what agents say and what persons have said of its nodes. */

import type { TaskStatusCache } from '../agents/taskStatusCache.ts';
import { pendingReason } from '../explain/waiting.ts';
import { currentAttempt, type Job } from '../model.ts';
import type { WaitReason } from '../scheduler/reasons.ts';
import type { ClusterState } from '../state/state.ts';
import type { JobRecord } from '../store/store.ts';
import { jobView } from '../views.ts';
import type { TrainingSurroundings } from './risks.ts';
import { trainingStatus } from './status.ts';

export interface StatusParts {
  readonly state: Pick<ClusterState, 'nodes'>;
  readonly taskStatus: Pick<TaskStatusCache, 'of'>;
  /** Why each queued job waits. */
  readonly reasons: { get(job: Job): WaitReason | undefined };
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
}

/** The page of a job as it is now. */
export function statusOf(
  { state, taskStatus, reasons, wallMs, monotonicMs }: StatusParts,
  { job, attempts }: JobRecord,
): string {
  const nowMs = wallMs();
  const reason = reasons.get(job);
  const pending = reason === undefined ? undefined : pendingReason(reason, job.spec, monotonicMs());
  const view = jobView(job, attempts, pending, taskStatus, nowMs);
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
