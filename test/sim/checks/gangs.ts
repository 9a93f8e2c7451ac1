/**
 * Checks G3 of docs/guarantees.md: when one task of a gang ends badly, the others stop within 10 s and their grace. Times
 * count only while no fault is injected.
 */
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { Fact } from '../history.ts';
import type { ExecutionCheck } from './executions.ts';
import type { Verdict } from './verdict.ts';

const stopWithinMs = 10_000;
/** Longest grace of the workload's jobs, and a moment for the kill. */
const graceMs = 15_500;
/** For everyone to find each other again after the last fault. */
const reconnectMs = 30_000;

export class GangCheck {
  /** By gang that lost a member badly: when the others must be gone. */
  private readonly deadlines = new Map<string, number>();
  private readonly executions: ExecutionCheck;
  private readonly verdict: Verdict;

  constructor(verdict: Verdict, executions: ExecutionCheck) {
    this.verdict = verdict;
    this.executions = executions;
  }

  see(fact: Fact, nowMs: number): void {
    if (fact.kind !== 'ended' || fact.by === 'stop' || fact.exitCode === 0) return;
    const gang = gangOf(fact.task);
    if (!this.deadlines.has(gang)) this.deadlines.set(gang, nowMs + stopWithinMs + graceMs);
  }

  /**
   * To be called now and then in the quiet phase.
   * @param clearSinceMs since when nothing keeps a stop from a machine. A paused agent receives no stop, and a paused coordinator
   *   sends none; tasks are frozen meanwhile
   */
  look(nowMs: number, clearSinceMs: (machine: string) => number): void {
    for (const { task, machine } of this.executions.running.values()) {
      if (nowMs < clearSinceMs(machine) + reconnectMs) continue;
      const deadlineMs = this.deadlines.get(gangOf(task)) ?? Number.POSITIVE_INFINITY;
      const what = () => `${taskKey(task)} still runs long after another of its gang ended badly`;
      this.verdict.require(nowMs <= deadlineMs, 'G3', what);
    }
  }
}

function gangOf({ jobId, attempt }: TaskRef): string {
  return `${jobId}.${attempt}`;
}
