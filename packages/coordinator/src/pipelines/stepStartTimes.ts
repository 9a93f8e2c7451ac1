/**
 * When the steps that run were started, on the monotonic clock. Their starts are stored as wall-clock time, for users and for restarts.
 * Once one is seen here, it is counted on the monotonic clock, so that a change of the wall clock ends no step early or late.
 */
import { pipelineStepKey } from '../state/pipelines.ts';
import type { StoredPipelineStep } from '../store/pipelines.ts';

interface SeenStart {
  readonly tries: number;
  /** Monotonic. */
  readonly atMs: number;
}

export interface StartClocks {
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
}

export class StepStartTimes {
  private readonly clocks: StartClocks;
  /** By run, then by step and index. */
  private readonly seen = new Map<string, ReadonlyMap<string, SeenStart>>();

  constructor(clocks: StartClocks) {
    this.clocks = clocks;
  }

  /** Of a run, those of its steps that run now: when the newest try of each was started. */
  of(run: string, steps: Iterable<StoredPipelineStep>): ReadonlyMap<string, SeenStart> {
    const { wallMs, monotonicMs } = this.clocks;
    const before = this.seen.get(run);
    const now = new Map<string, SeenStart>();
    for (const { step, index, state, tries, startedAtMs } of steps) {
      if (state !== 'running') continue;
      const key = pipelineStepKey(step, index);
      const known = before?.get(key);
      const runsForMs = Math.max(0, wallMs() - startedAtMs);
      now.set(key, known?.tries === tries ? known : { tries, atMs: monotonicMs() - runsForMs });
    }
    this.seen.set(run, now);
    return now;
  }

  forget(run: string): void {
    this.seen.delete(run);
  }
}
