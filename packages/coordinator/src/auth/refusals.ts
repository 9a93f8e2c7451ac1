/**
 * Refused calls: counted, logged at a bounded rate, and answered without a reason to those who fail again and again. A
 * flood of wrong tokens does not fill the log; the next line reports how many lines were omitted.
 */
import type { Logger } from '@muster/common/log';

export const refusalKinds = [
  'unauthenticated',
  'permission_denied',
  'too_many_failures',
  'too_many_streams',
] as const;
export type RefusalKind = (typeof refusalKinds)[number];

export interface Refusal {
  readonly kind: RefusalKind;
  /** Path of the method. */
  readonly method: string;
  /** Address of the client; null: unknown. */
  readonly peer: string | null;
  /** Id of the credential; null: none that is valid. */
  readonly by: string | null;
}

const linesAtOnce = 20;
const linesPerSecond = 0.5;

/** Fifty programs with an old token behind one address, each of which tries again every few seconds, stay below. */
const failuresAtOnce = 500;
const failuresPerSecond = 10;
/** Peers that failed lately. A peer with more addresses is held up by what limits connections. */
const peersMax = 1_024;

export interface RefusalParts {
  readonly log: Logger;
  readonly monotonicMs: () => number;
}

export class Refusals {
  /** Since the start. */
  readonly counts: Record<RefusalKind, number> = {
    unauthenticated: 0,
    permission_denied: 0,
    too_many_failures: 0,
    too_many_streams: 0,
  };
  private readonly parts: RefusalParts;
  private readonly lines: TokenBucket;
  private unlogged = 0;
  /** The one that failed last is the last. */
  private readonly failures = new Map<string, TokenBucket>();

  constructor(parts: RefusalParts) {
    this.parts = parts;
    this.lines = new TokenBucket(linesAtOnce, linesPerSecond, parts.monotonicMs());
  }

  note(refusal: Refusal): void {
    this.counts[refusal.kind] += 1;
    if (!this.lines.take(this.parts.monotonicMs())) {
      this.unlogged += 1;
      return;
    }
    const { kind, method, peer, by } = refusal;
    this.parts.log.warn({ kind, method, peer, by, ...this.takeUnlogged() }, 'a call was refused');
  }

  /**
   * Somebody there has shown no token, or a wrong one.
   * @returns whether that was within what an address may; a call with a valid token is never asked about
   */
  mayFail(peer: string | null): boolean {
    const key = peer ?? '';
    const nowMs = this.parts.monotonicMs();
    const bucket = this.failures.get(key) ?? new TokenBucket(failuresAtOnce, failuresPerSecond, nowMs);
    this.failures.delete(key);
    this.failures.set(key, bucket);
    const [oldest] = this.failures.keys();
    if (this.failures.size > peersMax && oldest !== undefined) this.failures.delete(oldest);
    return bucket.take(nowMs);
  }

  /** One pass: the end of a flood is logged too. */
  run(): void {
    if (this.unlogged === 0 || !this.lines.take(this.parts.monotonicMs())) return;
    this.parts.log.warn(this.takeUnlogged(), 'calls were refused that have no line of their own');
  }

  private takeUnlogged(): { readonly unlogged?: number } {
    const { unlogged } = this;
    this.unlogged = 0;
    return unlogged === 0 ? {} : { unlogged };
  }
}

/** So many at once, and so many a second. */
class TokenBucket {
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
