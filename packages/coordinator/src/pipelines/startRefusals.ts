/**
 * Steps whose start is refused for a reason that may pass, such as a budget of jobs at a time: none of their tries is used up, and they are
 * started again later. Nothing of this is stored: after a restart each is tried once more.
 */
import { pipelineStepKey } from '../state/pipelines.ts';

/** Until the second start, and between two at most; monotonic. */
const firstWaitMs = 5_000;
const longestWaitMs = 60_000;

interface StartRefusal {
  readonly reason: string;
  readonly try: number;
  /** Monotonic: when it was refused first, and when it is started again. */
  readonly sinceMs: number;
  readonly againAtMs: number;
  readonly waitMs: number;
}

export interface RefusedStart {
  readonly run: string;
  readonly step: string;
  readonly index: number;
  readonly try: number;
}

export class StartRefusals {
  private readonly monotonicMs: () => number;
  /** By run, then by step and index. */
  private readonly refused = new Map<string, Map<string, StartRefusal>>();

  constructor(monotonicMs: () => number) {
    this.monotonicMs = monotonicMs;
  }

  note({ run, step, index, try: tryNumber }: RefusedStart, reason: string): void {
    const nowMs = this.monotonicMs();
    const ofRun = this.refused.get(run) ?? new Map<string, StartRefusal>();
    const key = pipelineStepKey(step, index);
    const before = ofRun.get(key);
    const isFirst = before?.try !== tryNumber;
    const waitMs = isFirst ? firstWaitMs : Math.min(longestWaitMs, before.waitMs * 2);
    const sinceMs = isFirst ? nowMs : before.sinceMs;
    ofRun.set(key, { reason, try: tryNumber, sinceMs, againAtMs: nowMs + waitMs, waitMs });
    this.refused.set(run, ofRun);
  }

  isHeldBack(run: string, step: string, index: number): boolean {
    const found = this.refused.get(run)?.get(pipelineStepKey(step, index));
    return found !== undefined && this.monotonicMs() < found.againAtMs;
  }

  /** How long this try has been refused. 0: it was not yet. */
  refusedForMs({ run, step, index, try: tryNumber }: RefusedStart): number {
    const found = this.refused.get(run)?.get(pipelineStepKey(step, index));
    return found?.try === tryNumber ? this.monotonicMs() - found.sinceMs : 0;
  }

  /** @returns null: nothing is in the way of this try, as far as is known */
  reasonOf({ run, step, index, try: tryNumber }: RefusedStart): string | null {
    const found = this.refused.get(run)?.get(pipelineStepKey(step, index));
    return found?.try === tryNumber ? found.reason : null;
  }

  forget(run: string): void {
    this.refused.delete(run);
  }
}
