/** So many at once, and so many a second. */
export class TokenBucket {
  private readonly capacity: number;
  private readonly perSecond: number;
  private left: number;
  private countedAtMs: number;

  constructor(capacity: number, perSecond: number, nowMs: number) {
    this.capacity = capacity;
    this.perSecond = perSecond;
    this.left = capacity;
    this.countedAtMs = nowMs;
  }

  /** @param nowMs monotonic */
  take(nowMs: number): boolean {
    const earned = ((nowMs - this.countedAtMs) / 1_000) * this.perSecond;
    this.left = Math.min(this.capacity, this.left + earned);
    this.countedAtMs = nowMs;
    if (this.left < 1) return false;
    this.left -= 1;
    return true;
  }
}
