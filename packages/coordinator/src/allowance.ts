/** So many at once, and so many a second: a token bucket. */
export interface Rate {
  readonly perSecond: number;
  readonly atOnce: number;
}

export class Allowance {
  private readonly rate: Rate;
  private left: number;
  private countedAtMs: number;

  constructor(rate: Rate, nowMs: number) {
    this.rate = rate;
    this.left = rate.atOnce;
    this.countedAtMs = nowMs;
  }

  /** @param nowMs monotonic @returns false, and takes nothing, when less than one is left */
  take(nowMs: number, cost = 1): boolean {
    const earned = ((nowMs - this.countedAtMs) / 1_000) * this.rate.perSecond;
    this.left = Math.min(this.rate.atOnce, this.left + earned);
    this.countedAtMs = nowMs;
    if (this.left < 1) return false;
    // The last one may cost more than is left: it is paid for before the next.
    this.left -= cost;
    return true;
  }
}
