/**
 * A watch reads the event log from a sequence number and misses nothing: a notification only means that there is more to read, and
 * the events are read from the store, which holds exactly those that were committed. `RecentEvents` has the newest of them in
 * memory. Notices are sent between stored events, once all of those are sent.
 */

import type { StoredEvent } from '../model.ts';
import type { Store } from '../store/store.ts';
import { nextRound } from '../work/inOrder.ts';
import type { CommitNotifier, Notice, Notices } from './notices.ts';

/** Events read between two rounds of the event loop, so that a watch from the beginning of a long log delays nobody else. */
const pageSize = 200;

export interface WatchParts {
  readonly store: Pick<Store, 'readEvents'>;
  /** Notifies of commits and of notices. */
  readonly notifier: CommitNotifier;
  readonly notices: Pick<Notices, 'after' | 'lastNumber'>;
}

export interface WatchOptions {
  readonly sinceSeq: number;
  readonly follow: boolean;
  readonly subject: string | null;
}

/** A new watch from `position` misses no stored event. */
export interface WatchedNotice {
  readonly notice: Notice;
  readonly position: number;
}

export async function* watchEvents(
  { store, notifier, notices }: WatchParts,
  options: WatchOptions,
  abort: AbortSignal,
): AsyncGenerator<StoredEvent | WatchedNotice> {
  let position = options.sinceSeq;
  let noticed = notices.lastNumber;
  while (!abort.aborted) {
    const notified = notifier.next(abort, options.subject);
    const events = await store.readEvents(position, pageSize, options.subject);
    for (const event of events) {
      yield event;
      position = event.seq;
    }
    if (events.length > 0) {
      await nextRound();
      continue;
    }
    if (!options.follow) return;
    for (const notice of notices.after(noticed, options.subject)) {
      yield { notice, position };
      noticed = notice.number;
    }
    await notified;
  }
}

/** A watcher that is farther behind reads from the store until it has caught up. */
const keptMax = 512;

/**
 * The newest events as they were committed. Every commit wakes the watchers, and nearly all of them want the events that it has
 * just stored: they are answered from here, without a query for each of them. Older events are read from the store.
 */
export class RecentEvents implements Pick<Store, 'readEvents'> {
  private readonly store: Pick<Store, 'readEvents'>;
  /** Numbered without a gap. */
  private newest: readonly StoredEvent[] = [];

  constructor(store: Pick<Store, 'readEvents'>) {
    this.store = store;
  }

  /** Called for every commit, before the watchers are woken. */
  committed(events: readonly StoredEvent[]): void {
    const [first] = events;
    if (first === undefined) return;
    // After a gap in the numbers, the events before it are of no use any longer.
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
