/**
 * How much may go for its age: a tenth of what there is per day of monotonic time. A clock that was wrong, and was believed, then costs
 * days of a mistake that anybody can see, and not everything within a minute. What is too much goes beside that: no clock decides it.
 */
import type { Store } from '../store/store.ts';

const dayMs = 24 * 60 * 60_000;
/** Removals are kept by the hour, so that a day is a short list. */
const mergedMs = 60 * 60_000;
const usualShare = 0.1;
const shareMeta = 'retention_share';

/** Kinds of what goes for its age. Events count in bytes, the others in rows. */
const agedKinds = ['jobs', 'events', 'requests', 'removedJobs'] as const;
export type AgedKind = (typeof agedKinds)[number];

interface Removal {
  readonly kind: AgedKind;
  /** When it began, in `countedMs` of the trusted clock. */
  readonly atCountedMs: number;
  readonly amount: number;
}

export interface RetentionShareParts {
  readonly store: Pick<Store, 'readMeta' | 'writeMeta'>;
  /** Monotonic milliseconds that no restart, no reboot and no step moves. */
  readonly countedMs: () => number;
  /** Part of what there is that may go per day, above 0 and up to 1. Default: a tenth. */
  readonly share?: number;
}

export class RetentionShare {
  private readonly parts: RetentionShareParts;
  private removals: readonly Removal[] | null = null;
  private hasChanged = false;

  constructor(parts: RetentionShareParts) {
    this.parts = parts;
  }

  /** Reads what earlier runs have removed. Must have resolved before any other function is used. */
  async open(): Promise<void> {
    if (this.removals !== null) return;
    const text = await this.parts.store.readMeta(shareMeta);
    this.removals ??= text === null ? [] : (JSON.parse(text) as readonly Removal[]);
  }

  /**
   * How much of a kind may still go now, in its unit; at least one a day, so that the last ones go too.
   * @param present what there is of it
   */
  left(kind: AgedKind, present: number): number {
    const { share = usualShare } = this.parts;
    const gone = this.lastDay()
      .filter((each) => each.kind === kind)
      .reduce((sum, { amount }) => sum + amount, 0);
    return Math.max(0, Math.max(1, Math.floor((present + gone) * share)) - gone);
  }

  took(kind: AgedKind, amount: number): void {
    if (amount <= 0) return;
    const nowMs = this.parts.countedMs();
    const kept = this.lastDay();
    const last = kept.findLast((each) => each.kind === kind);
    const isMerged = last !== undefined && nowMs - last.atCountedMs < mergedMs;
    // The later moment stands for both, so that a day is never shorter than one.
    const together = { kind, atCountedMs: nowMs, amount: amount + (isMerged ? last.amount : 0) };
    this.removals = [...kept.filter((each) => !isMerged || each !== last), together];
    this.hasChanged = true;
  }

  /** Stores what was removed, so that a restart does not begin another day. */
  async store(): Promise<void> {
    if (!this.hasChanged) return;
    this.hasChanged = false;
    await this.parts.store.writeMeta(shareMeta, JSON.stringify(this.removals));
  }

  private lastDay(): readonly Removal[] {
    const sinceMs = this.parts.countedMs() - dayMs;
    return (this.removals ?? []).filter(({ atCountedMs }) => atCountedMs > sinceMs);
  }
}
