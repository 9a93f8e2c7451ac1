/**
 * Detects that this process did not run for a while, because it was stopped, swapped out or suspended. Messages that nodes
 * sent in that time are not read yet, so the nodes must not be treated as silent.
 */
const missedTicks = 2;

export class ProcessStalls {
  private readonly tickMs: number;
  private lastMs: number;

  /** @param tickMs the usual time between two calls of `take` */
  constructor(tickMs: number, nowMs: number) {
    this.tickMs = tickMs;
    this.lastMs = nowMs;
  }

  /**
   * Must be called at every tick, before a pass that judges the silence of nodes.
   * @param nowMs monotonic
   * @returns milliseconds for which this process did not run since the last tick; 0 if it ran
   */
  take(nowMs: number): number {
    const lateMs = nowMs - this.lastMs - this.tickMs;
    this.lastMs = nowMs;
    return lateMs > missedTicks * this.tickMs ? lateMs : 0;
  }
}
