/**
 * When this agent asked, and what was answered: leases count from the moment their question was sent. All times are
 * CLOCK_BOOTTIME, milliseconds.
 */
export class Questions {
  private helloMs = 0;
  private readonly heartbeatsMs = new Map<number, number>();
  private newestAnsweredMs: number | null = null;

  /** On a new connection; nothing that was asked on the last one will be answered. */
  helloSent(nowMs: number): void {
    this.helloMs = nowMs;
    this.heartbeatsMs.clear();
  }

  heartbeatSent(seq: number, nowMs: number): void {
    this.heartbeatsMs.set(seq, nowMs);
  }

  /** @returns when it was asked */
  helloAnswered(): number {
    return this.answered(this.helloMs);
  }

  /** @returns when it was asked. null: it never was, or this is its second answer, which says nothing */
  heartbeatAnswered(seq: number): number | null {
    const askedMs = this.heartbeatsMs.get(seq);
    this.heartbeatsMs.delete(seq);
    return askedMs === undefined ? null : this.answered(askedMs);
  }

  /** The newest question that was answered, on whatever connection. null: none was yet. */
  get lastAnsweredMs(): number | null {
    return this.newestAnsweredMs;
  }

  private answered(askedMs: number): number {
    this.newestAnsweredMs = Math.max(askedMs, this.newestAnsweredMs ?? askedMs);
    return askedMs;
  }
}
