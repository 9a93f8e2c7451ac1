/**
 * Long leases for a while, so that the coordinator or the network may be away without a task being frozen.
 *
 * What is granted in that time is stored before the first such lease is: after a restart nobody knows which nodes got
 * one, so all of them count as having got the longest, in full, from the start on. That knowledge outlives the end of the
 * maintenance, because a lease cannot be taken back.
 */
import type { Store } from '../store/store.ts';
import { fencedAfterMs, type LeaseSettings } from './leases.ts';

interface StoredMaintenance {
  /** What was left of it when this was written. Counted down by our own clock alone: while we are away it stands still. */
  readonly leftMs: number;
  /** The longest lease that a node may still hold from it. */
  readonly grantedMs: number;
}

const metaName = 'maintenance';
/** How much longer it may last after a restart for want of writing. */
const writeEveryMs = 60_000;

export class Maintenance {
  private readonly store: Pick<Store, 'readMeta' | 'writeMeta'>;
  private readonly settings: LeaseSettings;
  private endsAtMs: number;
  private stored: StoredMaintenance;
  /** Until then nodes may hold leases of `stored.grantedMs`. */
  private heldUntilMs: number;
  private working: Promise<void> = Promise.resolve();
  /** Of a coordinator before this one: no node that is silent since our start is fenced before. 0: at once. */
  readonly fencedSinceStartAtMs: number;

  private constructor(
    store: Maintenance['store'],
    settings: LeaseSettings,
    stored: StoredMaintenance,
    nowMs: number,
  ) {
    this.store = store;
    this.settings = settings;
    this.stored = stored;
    this.endsAtMs = nowMs + stored.leftMs;
    this.heldUntilMs = stored.grantedMs === 0 ? nowMs : nowMs + fencedAfterMs(settings, stored.grantedMs);
    this.fencedSinceStartAtMs = stored.grantedMs === 0 ? 0 : this.heldUntilMs;
  }

  /** @param nowMs monotonic, as in all of this */
  static async open(
    store: Maintenance['store'],
    settings: LeaseSettings,
    nowMs: number,
  ): Promise<Maintenance> {
    const text = await store.readMeta(metaName);
    const stored = text === null ? { leftMs: 0, grantedMs: 0 } : (JSON.parse(text) as StoredMaintenance);
    return new Maintenance(store, settings, stored, nowMs);
  }

  /** 0: there is none. */
  leftMs(nowMs: number): number {
    return Math.max(0, this.endsAtMs - nowMs);
  }

  /**
   * Takes effect once it is stored, and so on disk before the first lease of that length is granted.
   * @param forMs 0 ends it: what was granted holds until its time
   * @param monotonicMs read when it is stored
   */
  set(forMs: number, monotonicMs: () => number): Promise<void> {
    // Ended at once: while that is being stored no more is granted.
    if (forMs === 0) this.endsAtMs = monotonicMs();
    return this.inTurn(async () => {
      await this.write({ leftMs: forMs, grantedMs: Math.max(this.stored.grantedMs, forMs) });
      if (forMs === 0) return;
      const nowMs = monotonicMs();
      this.endsAtMs = nowMs + forMs;
      this.heldUntilMs = Math.max(this.heldUntilMs, nowMs + fencedAfterMs(this.settings, forMs));
    });
  }

  /** One pass; idempotent. Keeps what is stored near to what is true, and never below it. */
  run(nowMs: number): readonly Promise<void>[] {
    if (this.news(nowMs) === null) return [];
    return [
      this.inTurn(async () => {
        // It waited for its turn: a new maintenance may have been stored meanwhile.
        const news = this.news(nowMs);
        if (news !== null) await this.write(news);
      }),
    ];
  }

  private news(nowMs: number): StoredMaintenance | null {
    const { stored } = this;
    const leftMs = this.leftMs(nowMs);
    const grantedMs = leftMs > 0 || nowMs < this.heldUntilMs ? stored.grantedMs : 0;
    const isOld = stored.leftMs - leftMs >= writeEveryMs || (leftMs === 0 && stored.leftMs > 0);
    return isOld || grantedMs !== stored.grantedMs ? { leftMs, grantedMs } : null;
  }

  private inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.working.then(work);
    this.working = done.catch(() => {});
    return done;
  }

  private async write(next: StoredMaintenance): Promise<void> {
    await this.store.writeMeta(metaName, JSON.stringify(next));
    this.stored = next;
  }
}
