/**
 * Preempts the jobs on nodes whose drain has a deadline, early enough for each job to save: its `stop_grace` before the
 * deadline. Jobs that are not preemptible are no exception, because the node will be gone.
 *
 * The deadline is stored as wall-clock time, for users and for restarts. Once it is seen here, it is counted on the monotonic
 * clock, so that a change of the wall clock makes no preemption early or late.
 */

import type { NodeName } from '@muster/common/ids';
import type { Drain } from '@muster/common/views';
import { coordinatorPart } from '../caller.ts';
import { leavingReason } from '../commands/drains.ts';
import type { Loop } from '../loop.ts';
import { currentAttempt, type Job } from '../model.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import type { ClusterState } from '../state/state.ts';

const caller = coordinatorPart('drains');

/** For SIGKILL at the end of the grace, and for word of it to arrive. */
export const stopMarginMs = 5_000;

/** When a drain stops a job, by the wall clock; in the past: now. null: not before it ends by itself. */
export function stopAtMs({ spec }: Pick<Job, 'spec'>, drain: Drain | null): number | null {
  if (drain?.deadlineMs == null) return null;
  // As below: what is saved at once is safe.
  return drain.reason === leavingReason ? drain.sinceMs : drain.deadlineMs - leadMs(spec);
}

function leadMs({ stopGraceMs }: Job['spec']): number {
  return stopGraceMs + stopMarginMs;
}

interface Deadline {
  /** Wall clock, as it is stored: another one is another deadline. */
  readonly storedMs: number;
  /** Monotonic. */
  readonly atMs: number;
}

export interface Clocks {
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
}

export class Drains {
  private readonly deadlines = new Map<NodeName, Deadline>();
  private readonly clocks: Clocks;

  constructor(clocks: Clocks) {
    this.clocks = clocks;
  }

  /** One pass; idempotent. */
  run(state: ClusterState, loop: Loop): readonly Promise<void>[] {
    const nowMs = this.clocks.monotonicMs();
    this.follow(state, nowMs);
    if (this.deadlines.size === 0) return [];
    return [...state.jobs.values()].flatMap((job) => {
      const attempt = currentAttempt(job);
      if (attempt === null || job.state.kind === 'stopping') return [];
      const lead = leadMs(job.spec);
      const due = attempt.tasks.find(({ node, state: taskState }) => {
        const deadline = this.deadlines.get(node);
        return taskState !== 'ended' && deadline !== undefined && isDue(deadline.atMs, lead, nowMs);
      });
      if (due === undefined) return [];
      const why = state.nodes.get(due.node)?.drain?.reason;
      const message = `${due.node} is being drained${why ? `: ${why}` : ''}`;
      const event = { kind: 'preempt', attempt: attempt.number, message, by: null } as const;
      return [loop.run(caller, (draft, wallMs) => applyJobEvent(draft, job.id, event, wallMs))];
    });
  }

  private follow({ nodes }: ClusterState, nowMs: number): void {
    for (const name of this.deadlines.keys()) {
      if (nodes.get(name)?.drain?.deadlineMs == null) this.deadlines.delete(name);
    }
    for (const { name, drain } of nodes.values()) {
      const storedMs = drain?.deadlineMs ?? null;
      if (storedMs === null || this.deadlines.get(name)?.storedMs === storedMs) continue;
      // A machine that is switched off does not promise its time: what is saved at once is safe.
      const isMachines = drain?.reason === leavingReason;
      const inMs = isMachines ? 0 : Math.max(0, storedMs - this.clocks.wallMs());
      this.deadlines.set(name, { storedMs, atMs: nowMs + inMs });
    }
  }
}

/** Whether work that takes `lead` milliseconds to save and stop must begin to leave its node. */
export function isDue(deadlineMs: number, lead: number, nowMs: number): boolean {
  return nowMs >= deadlineMs - lead;
}
