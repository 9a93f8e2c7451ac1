/**
 * The newest events as they were committed. Every commit wakes the watchers, and nearly all of them want what it has just
 * stored: they are answered from here, without a query for each of them. Older events are read from the store.
 */
import type { StoredEvent } from '../model.ts';
import type { Store } from '../store/store.ts';

/** A watcher that is farther behind reads from the store until it has caught up. */
const keptMax = 512;

export class RecentEvents implements Pick<Store, 'readEvents'> {
  private readonly store: Pick<Store, 'readEvents'>;
  /** Numbered without a gap. */
  private newest: readonly StoredEvent[] = [];

  constructor(store: Pick<Store, 'readEvents'>) {
    this.store = store;
  }

  /** To be told of every commit, before the watchers are woken. */
  committed(events: readonly StoredEvent[]): void {
    const [first] = events;
    if (first === undefined) return;
    // One that was not told of: what came before it is of no use any more.
    const isNext = this.newest.at(-1)?.seq === first.seq - 1;
    this.newest = (isNext ? this.newest.concat(events) : events).slice(-keptMax);
  }

  /** As the store's: the same events in the same order. */
  async readEvents(sinceSeq: number, limit: number, subject: string | null): Promise<readonly StoredEvent[]> {
    const [oldest] = this.newest;
    if (oldest === undefined || sinceSeq < oldest.seq - 1) {
      return this.store.readEvents(sinceSeq, limit, subject);
    }
    const after = this.newest.slice(sinceSeq - oldest.seq + 1);
    return (subject === null ? after : after.filter((event) => event.subject === subject)).slice(0, limit);
  }
}
