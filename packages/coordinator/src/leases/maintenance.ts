/**
 * A maintenance grants long leases for some time, so that no task is frozen while the coordinator or the network is away.
 *
 * The length of these leases is stored before the first one is granted. After a restart, the coordinator does not know which
 * nodes got one. Every node then counts as having got the longest, in full, from the start on. This outlasts the end of the
 * maintenance, because a lease cannot be revoked.
 */
import type { Store } from '../store/store.ts';
import { fencedAfterMs, type LeaseSettings } from './leases.ts';

interface StoredMaintenance {
  /** The rest of the maintenance when this was written. Time in which no coordinator runs does not count. */
  readonly leftMs: number;
  /** The longest lease that a node may still hold from it. */
  readonly grantedMs: number;
}

const metaName = 'maintenance';
/** How often the rest is written, and so how much longer a maintenance may last after a restart. */
const writeEveryMs = 60_000;

export class Maintenance {
  private readonly store: Pick<Store, 'readMeta' | 'writeMeta'>;
  private readonly settings: LeaseSettings;
  private endsAtMs: number;
  private stored: StoredMaintenance;
  /** Until then, monotonic, nodes may hold leases of `stored.grantedMs`. */
  private heldUntilMs: number;
  private working: Promise<void> = Promise.resolve();
  /** When leases from a maintenance of an earlier coordinator have certainly ended, monotonic. 0: there were none. */
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

  /** @param nowMs monotonic, as everywhere in this file */
  static async open(
    store: Maintenance['store'],
    settings: LeaseSettings,
    nowMs: number,
  ): Promise<Maintenance> {
    const text = await store.readMeta(metaName);
    const stored = text === null ? { leftMs: 0, grantedMs: 0 } : (JSON.parse(text) as StoredMaintenance);
    return new Maintenance(store, settings, stored, nowMs);
  }

  /** The rest of the maintenance, in milliseconds; 0: there is none. */
  leftMs(nowMs: number): number {
    return Math.max(0, this.endsAtMs - nowMs);
  }

  /**
   * Begins a maintenance. It takes effect once it is stored, so it is on disk before the first lease of that length is granted.
   * @param forMs 0 ends it; leases that were granted last until their end
   * @param monotonicMs the clock, read when the maintenance is stored
   */
  set(forMs: number, monotonicMs: () => number): Promise<void> {
    // An end takes effect at once: no long lease is granted while the end is being stored.
    if (forMs === 0) this.endsAtMs = monotonicMs();
    return this.inTurn(async () => {
      await this.write({ leftMs: forMs, grantedMs: Math.max(this.stored.grantedMs, forMs) });
      if (forMs === 0) return;
      const nowMs = monotonicMs();
      this.endsAtMs = nowMs + forMs;
      this.heldUntilMs = Math.max(this.heldUntilMs, nowMs + fencedAfterMs(this.settings, forMs));
    });
  }

  /** One pass; idempotent. Writes the rest now and then: what is stored is never less than what is left. */
  run(nowMs: number): readonly Promise<void>[] {
    if (this.changes(nowMs) === null) return [];
    return [
      this.inTurn(async () => {
        // This write has waited for its turn: a new maintenance may have been stored meanwhile.
        const changes = this.changes(nowMs);
        if (changes !== null) await this.write(changes);
      }),
    ];
  }

  private changes(nowMs: number): StoredMaintenance | null {
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
