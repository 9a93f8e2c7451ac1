/**
 * Ends attempts that do not get going: `prepare_timeout` from the allocation until every node is ready, then
 * `rendezvous_timeout` from the release until every task runs. Counted on our monotonic clock from when an attempt was first
 * seen in its phase: after a coordinator restart the time begins anew, since nobody could have become ready without us.
 */

import type { JobId } from '@muster/common/ids';
import type { AgentNotes } from '../agents/notes.ts';
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
  private readonly notes: Pick<AgentNotes, 'of'>;

  constructor(monotonicMs: () => number, notes: Pick<AgentNotes, 'of'>) {
    this.monotonicMs = monotonicMs;
    this.notes = notes;
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
      return this.notes.of({ jobId: job.id, attempt: number, nodeRank }).doing;
    });
    return { kind: 'prepareTimeout', attempt: number, doing };
  }
}
