/**
 * Ends attempts that do not start in time: `prepare_timeout` limits the time from the allocation until every node is ready,
 * `rendezvous_timeout` the time from the release until every task runs. Both are counted on the monotonic clock from the
 * moment an attempt is first seen in its phase. They restart with the coordinator, because no node can get ready without it.
 */

import type { JobId } from '@muster/common/ids';
import type { TaskStatusCache } from '../agents/taskStatusCache.ts';
import { coordinatorPart } from '../caller.ts';
import type { JobEvent } from '../lifecycle/transition.ts';
import type { Loop } from '../loop.ts';
import { type Attempt, isReleased, type Job } from '../model.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import type { ClusterState } from '../state/state.ts';

const caller = coordinatorPart('start deadlines');

interface Phase {
  readonly attempt: number;
  readonly released: boolean;
  /** Monotonic. */
  readonly sinceMs: number;
}

export class StartDeadlines {
  private readonly phases = new Map<JobId, Phase>();
  private readonly monotonicMs: () => number;
  private readonly taskStatus: Pick<TaskStatusCache, 'of'>;

  constructor(monotonicMs: () => number, taskStatus: Pick<TaskStatusCache, 'of'>) {
    this.monotonicMs = monotonicMs;
    this.taskStatus = taskStatus;
  }

  /** One pass; idempotent. */
  run(state: ClusterState, loop: Loop): readonly Promise<void>[] {
    const nowMs = this.monotonicMs();
    const ended: Promise<void>[] = [];
    for (const jobId of this.phases.keys()) {
      if (state.jobs.get(jobId)?.state.kind !== 'starting') this.phases.delete(jobId);
    }
    for (const job of state.jobs.values()) {
      if (job.state.kind !== 'starting') continue;
      const { attempt } = job.state;
      const phase = this.phaseOf(job.id, attempt, nowMs);
      const { prepareTimeoutMs, rendezvousTimeoutMs } = job.spec;
      const limitMs = phase.released ? rendezvousTimeoutMs : prepareTimeoutMs;
      if (nowMs - phase.sinceMs < limitMs) continue;
      const event = this.timeout(job, attempt);
      ended.push(loop.run(caller, (draft, wallMs) => applyJobEvent(draft, job.id, event, wallMs)));
    }
    return ended;
  }

  private phaseOf(jobId: JobId, attempt: Attempt, nowMs: number): Phase {
    const before = this.phases.get(jobId);
    const released = isReleased(attempt);
    if (before?.attempt === attempt.number && before.released === released) return before;
    const phase = { attempt: attempt.number, released, sinceMs: nowMs };
    this.phases.set(jobId, phase);
    return phase;
  }

  private timeout(job: Job, attempt: Attempt): JobEvent {
    const { number } = attempt;
    if (isReleased(attempt)) return { kind: 'rendezvousTimeout', attempt: number };
    const doing = attempt.tasks.map(({ nodeRank }) => {
      return this.taskStatus.of({ jobId: job.id, attempt: number, nodeRank }).doing;
    });
    return { kind: 'prepareTimeout', attempt: number, doing };
  }
}
