/** G3: when one task of a gang ends badly, the others stop within 10 s; timed while nothing is in the way. */
import { taskKey } from '@muster/common/ids';
import type { Fact } from '../history.ts';
import type { ExecutionCheck } from './executions.ts';
import type { Verdict } from './verdict.ts';

const stopWithinMs = 10_000;
/** Longest grace of the workload's jobs, and a moment for the kill. */
const graceMs = 3_500;
/** For everyone to find each other again after the last fault. */
const reconnectMs = 30_000;

export class GangCheck {
  /** `<job>.<attempt>` of gangs that lost a member badly, and when the others must be gone. */
  private readonly deadlines = new Map<string, number>();
  private quietSinceMs: number | null = null;
  private readonly executions: ExecutionCheck;
  private readonly verdict: Verdict;

  constructor(verdict: Verdict, executions: ExecutionCheck) {
    this.verdict = verdict;
    this.executions = executions;
  }

  see(fact: Fact, nowMs: number): void {
    if (fact.kind === 'phase' && fact.phase === 'quiet') this.quietSinceMs = nowMs;
    if (fact.kind === 'ended' && fact.by !== 'stop' && fact.exitCode !== 0) {
      const gang = `${fact.task.jobId}.${fact.task.attempt}`;
      if (!this.deadlines.has(gang)) this.deadlines.set(gang, nowMs + stopWithinMs + graceMs);
    }
    if (this.quietSinceMs === null || nowMs < this.quietSinceMs + reconnectMs) return;
    for (const { task } of this.executions.running.values()) {
      const deadlineMs = this.deadlines.get(`${task.jobId}.${task.attempt}`);
      const isLate = deadlineMs !== undefined && nowMs > Math.max(deadlineMs, this.quietSinceMs + reconnectMs);
      this.verdict.require(!isLate, 'G3', () => `${taskKey(task)} still runs long after another of its gang ended badly`);
    }
  }
}

