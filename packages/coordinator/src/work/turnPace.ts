/** Milliseconds. A disk that stalls for seconds must not make the coordinator wait for seconds more. */
const coalesceMsMax = 20;

/** Turns that several commands share: their interval in milliseconds, and how many come without it. */
const sharedTurns = { everyMs: 4, atOnce: 10 } as const;

/**
 * When the next turn of the loop may begin. On an idle cluster that is at once. Under load, commands gather: each turn costs a pass and a
 * commit, whatever it holds, and waiting for the disk takes no more than half of the time, with larger batches for slower disks.
 * A lone command, such as one of a client that waits for each answer, never waits for others to gather.
 */
export class TurnPace {
  private notBeforeMs = 0;
  /** When the shared turns so far would have been, one at each interval. */
  private sharedUntilMs = 0;

  /** Notes a turn. Times are monotonic milliseconds. @param commands how many it took from the queue */
  took(commands: number, beganMs: number, doneMs: number): void {
    const { everyMs, atOnce } = sharedTurns;
    if (commands > 1) this.sharedUntilMs = Math.max(this.sharedUntilMs, beganMs) + everyMs;
    const afterDisk = doneMs + Math.min(coalesceMsMax, doneMs - beganMs);
    this.notBeforeMs = Math.max(afterDisk, this.sharedUntilMs - atOnce * everyMs);
  }

  /** Milliseconds until the next turn. 0: it may begin now. @param nowMs monotonic */
  waitMs(nowMs: number): number {
    return Math.max(0, this.notBeforeMs - nowMs);
  }
}
