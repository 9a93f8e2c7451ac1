/** Cards at which a reader hung or crashed: left alone for a while, so that the others can be read. */
import type { Clock } from '@muster/common/clock';
import { type BackoffPolicy, backoffMs } from '@muster/common/retry';
import type { GpuProblem } from '../gpuSource.ts';

interface Suspect {
  readonly problem: GpuProblem;
  readonly failures: number;
  readonly avoidUntilMs: number;
}

export class Suspects {
  readonly #clock: Clock;
  readonly #policy: BackoffPolicy;
  readonly #byIndex = new Map<number, Suspect>();

  /** @param policy how long a card is left alone after so many failures */
  constructor(clock: Clock, policy: BackoffPolicy) {
    this.#clock = clock;
    this.#policy = policy;
  }

  get problems(): readonly GpuProblem[] {
    return [...this.#byIndex.values()].map(({ problem }) => problem);
  }

  /** Numbers of the cards to be left alone now. */
  get avoided(): readonly number[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#byIndex].filter(([, { avoidUntilMs }]) => nowMs < avoidUntilMs).map(([index]) => index);
  }

  add(index: number, problem: GpuProblem): void {
    const failures = (this.#byIndex.get(index)?.failures ?? 0) + 1;
    const avoidUntilMs = this.#clock.monotonicMs() + backoffMs(this.#policy, failures);
    this.#byIndex.set(index, { problem, failures, avoidUntilMs });
  }

  /** Every card but the avoided ones has been read, so none of them is suspect any more. */
  clearAllBut(avoided: readonly number[]): void {
    for (const index of this.#byIndex.keys()) if (!avoided.includes(index)) this.#byIndex.delete(index);
  }
}
