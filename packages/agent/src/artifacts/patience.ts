/** Repeats requests to a store that does not answer, until nothing has succeeded for some time. */
import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '@muster/common/retry';
import { ArtifactStoreError } from './store.ts';

const pause = { initialMs: 250, maxMs: 10_000 } as const;

export class Patience {
  private readonly limitMs: number;
  private readonly monotonicMs: () => number;
  private readonly onFailed: (message: string) => void;
  private succeededAtMs: number;

  /**
   * @param limitMs from the last success to the end of all repetitions
   * @param onFailed gets the message of the store each time a request will be repeated
   */
  constructor(limitMs: number, monotonicMs: () => number, onFailed: (message: string) => void) {
    this.limitMs = limitMs;
    this.monotonicMs = monotonicMs;
    this.onFailed = onFailed;
    this.succeededAtMs = monotonicMs();
  }

  /** Something has arrived. */
  noteProgress(): void {
    this.succeededAtMs = this.monotonicMs();
  }

  /**
   * @param act runs again after a failure, and may then resume where it failed
   * @throws {ArtifactStoreError} the last error of the store, and the reason of `abort`
   */
  async insist<T>(act: () => Promise<T>, abort: AbortSignal): Promise<T> {
    for (let failures = 0; ; ) {
      try {
        const result = await act();
        this.noteProgress();
        return result;
      } catch (error) {
        abort.throwIfAborted();
        const mayHelp = error instanceof ArtifactStoreError && error.kind === 'unreachable';
        const spentMs = this.monotonicMs() - this.succeededAtMs;
        if (!mayHelp || spentMs >= this.limitMs) throw error;
        failures += 1;
        this.onFailed(error.message);
        await delay(Math.min(backoffMs(pause, failures), this.limitMs - spentMs), undefined, {
          signal: abort,
        });
      }
    }
  }
}
