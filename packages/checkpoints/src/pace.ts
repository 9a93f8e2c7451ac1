/** How fast a verification goes, and whether it goes on. */
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';

/** Longer, and a timer fires at once. */
const timerMaxMs = 2 ** 31 - 1;

export class ReadPace {
  private readonly signal: AbortSignal | undefined;
  private readonly bytesPerSecondMax: number | undefined;

  constructor({
    signal,
    bytesPerSecondMax,
  }: { readonly signal?: AbortSignal; readonly bytesPerSecondMax?: number }) {
    this.signal = signal;
    this.bytesPerSecondMax = bytesPerSecondMax;
  }

  /**
   * Lets others have their turn, and waits as long as so many bytes take at the highest rate; the reading itself comes on
   * top, so the rate is never reached. @throws the signal's reason
   */
  async spend(bytes: number): Promise<void> {
    this.signal?.throwIfAborted();
    if (this.bytesPerSecondMax === undefined) await turn();
    else await this.wait(Math.min(timerMaxMs, (bytes / this.bytesPerSecondMax) * 1_000));
    this.signal?.throwIfAborted();
  }

  private async wait(ms: number): Promise<void> {
    // An abort is thrown afterwards, with its reason and not with the timer's error.
    await delay(ms, undefined, this.signal === undefined ? {} : { signal: this.signal }).catch(() => {});
  }
}
