/** What the checks found. */
export interface Violation {
  /** The number of a guarantee on docs/guarantees.md, such as `G2`; or the name of another check, such as `liveness`. */
  readonly guarantee: string;
  readonly what: string;
  readonly atMs: number;
}

/** Of each guarantee. One broken rule can show a thousand times; the first few say it all. */
const violationsMax = 5;

export class Verdict {
  readonly violations: Violation[] = [];
  private readonly nowMs: () => number;

  constructor(nowMs: () => number) {
    this.nowMs = nowMs;
  }

  require(holds: boolean, guarantee: string, what: () => string): void {
    if (holds) return;
    const alike = this.violations.filter((violation) => violation.guarantee === guarantee);
    if (alike.length >= violationsMax) return;
    this.violations.push({ guarantee, what: what(), atMs: this.nowMs() });
  }
}
