/**
 * Notices when this very process did not run for a while: stopped, swapped out, suspended. What nodes said in that time
 * is still to be read, so it says nothing about them.
 */
const missedTicks = 2;

export class OwnPauses {
  private readonly tickMs: number;
  private lastMs: number;

  /** @param tickMs how often `take` is called when all is well */
  constructor(tickMs: number, nowMs: number) {
    this.tickMs = tickMs;
    this.lastMs = nowMs;
  }

  /**
   * To be called at every tick, before anything is concluded from somebody's silence.
   * @param nowMs monotonic
   * @returns milliseconds that we did not run since the last tick; 0: we did
   */
  take(nowMs: number): number {
    const lateMs = nowMs - this.lastMs - this.tickMs;
    this.lastMs = nowMs;
    return lateMs > missedTicks * this.tickMs ? lateMs : 0;
  }
}
