import type { NodeName } from '@muster/common/ids';

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

  /** Milliseconds, at least 1, from the last `take` until the next one can succeed. */
  get waitMs(): number {
    return Math.max(1, Math.ceil(((1 - this.left) / this.rate.perSecond) * 1_000));
  }
}

/** Of each node, over all of its streams: a new connection earns nothing. */
export class NodeAllowances {
  private readonly rate: Rate;
  private readonly monotonicMs: () => number;
  private readonly byNode = new Map<NodeName, Allowance>();

  constructor(rate: Rate, monotonicMs: () => number) {
    this.rate = rate;
    this.monotonicMs = monotonicMs;
  }

  /** As `Allowance.take`. */
  take(node: NodeName, cost = 1): boolean {
    const nowMs = this.monotonicMs();
    const allowance = this.byNode.get(node) ?? new Allowance(this.rate, nowMs);
    this.byNode.set(node, allowance);
    return allowance.take(nowMs, cost);
  }
}
