/**
 * Ends attempts that have run for the `max_runtime` of their job and its extensions. Agents report on their own monotonic
 * clocks how long tasks have been running, so neither a change of the wall clock nor a restart of the coordinator moves a limit.
 */

import type { JobId } from '@muster/common/ids';
import type { TaskReport } from '@muster/common/views';
import { coordinatorPart } from '../caller.ts';
import type { Loop } from '../loop.ts';
import { currentAttempt, type Job } from '../model.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import type { ClusterState } from '../state/state.ts';

const caller = coordinatorPart('time limits');

interface Runtime {
  readonly attempt: number;
  readonly runningForMs: number;
  /** Our monotonic clock when that was reported. */
  readonly notedAtMs: number;
}

export class TimeLimits {
  private readonly runtimes = new Map<JobId, Runtime>();
  private readonly monotonicMs: () => number;

  constructor(monotonicMs: () => number) {
    this.monotonicMs = monotonicMs;
  }

  /** Takes note of what an agent reports. The longest-running task of an attempt counts. */
  note(report: TaskReport): void {
    if (report.state !== 'running' || report.runningForMs === null) return;
    const { jobId, attempt } = report.task;
    const nowMs = this.monotonicMs();
    const before = this.runtimes.get(jobId);
    const beforeMs = before?.attempt === attempt ? before.runningForMs + (nowMs - before.notedAtMs) : 0;
    if (report.runningForMs < beforeMs) return;
    this.runtimes.set(jobId, { attempt, runningForMs: report.runningForMs, notedAtMs: nowMs });
  }

  /** How long the newest attempt of a job has run by now, as its nodes tell. null: it does not run, or they told nothing yet. */
  readonly runningMs = (jobId: JobId): number | null => {
    const runtime = this.runtimes.get(jobId);
    return runtime === undefined ? null : runtime.runningForMs + (this.monotonicMs() - runtime.notedAtMs);
  };

  /** One pass; idempotent. */
  run(state: ClusterState, loop: Loop): readonly Promise<void>[] {
    const nowMs = this.monotonicMs();
    const ended: Promise<void>[] = [];
    for (const [jobId, runtime] of this.runtimes) {
      const job = state.jobs.get(jobId);
      const attempt = currentAttempt(job);
      if (job === undefined || attempt?.number !== runtime.attempt) {
        this.runtimes.delete(jobId);
        continue;
      }
      const runningForMs = runtime.runningForMs + (nowMs - runtime.notedAtMs);
      if (!isOverTime(job, runningForMs) || job.state.kind === 'stopping') continue;
      const event = { kind: 'timeLimit', attempt: attempt.number } as const;
      ended.push(loop.run(caller, (draft, wallMs) => applyJobEvent(draft, jobId, event, wallMs)));
    }
    return ended;
  }
}

/** Whether an attempt of the job has run for as long as the job may. */
export function isOverTime({ spec: { maxRuntimeMs }, extraRuntimeMs }: Job, runningForMs: number): boolean {
  return maxRuntimeMs !== null && runningForMs >= maxRuntimeMs + extraRuntimeMs;
}
