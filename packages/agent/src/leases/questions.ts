/**
 * The questions of this agent, and which of them were answered. A lease counts from the moment at which its question was sent.
 * All times are CLOCK_BOOTTIME, in milliseconds.
 */
export class Questions {
  private helloMs = 0;
  private readonly heartbeatsMs = new Map<number, number>();
  private newestAnsweredMs: number | null = null;

  /** Called on a new connection: questions of the last connection will not be answered. */
  helloSent(nowMs: number): void {
    this.helloMs = nowMs;
    this.heartbeatsMs.clear();
  }

  heartbeatSent(seq: number, nowMs: number): void {
    this.heartbeatsMs.set(seq, nowMs);
  }

  /** @returns when the question was sent */
  helloAnswered(): number {
    return this.answered(this.helloMs);
  }

  /** @returns when the question was sent. null: it never was, or this is a second answer, which has no effect */
  heartbeatAnswered(seq: number): number | null {
    const askedMs = this.heartbeatsMs.get(seq);
    this.heartbeatsMs.delete(seq);
    return askedMs === undefined ? null : this.answered(askedMs);
  }

  /** When the newest question that was answered was sent, on any connection. null: none was answered yet. */
  get lastAnsweredMs(): number | null {
    return this.newestAnsweredMs;
  }

  private answered(askedMs: number): number {
    this.newestAnsweredMs = Math.max(askedMs, this.newestAnsweredMs ?? askedMs);
    return askedMs;
  }
}
