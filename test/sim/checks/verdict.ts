/** What the checks found. */
export interface Violation {
  /** `G1` … `G10` of the guarantees, or `liveness`. */
  readonly guarantee: string;
  readonly what: string;
  readonly atMs: number;
}

/** One broken rule can show a thousand times; the first few say it all. */
const violationsMax = 20;

export class Verdict {
  readonly violations: Violation[] = [];
  private readonly nowMs: () => number;

  constructor(nowMs: () => number) {
    this.nowMs = nowMs;
  }

  require(holds: boolean, guarantee: string, what: () => string): void {
    if (holds || this.violations.length >= violationsMax) return;
    this.violations.push({ guarantee, what: what(), atMs: this.nowMs() });
  }
}
