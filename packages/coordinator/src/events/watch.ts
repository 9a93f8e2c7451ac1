/**
 * A watch reads the event log from a sequence number and misses nothing: a notification only means that there is more to
 * read, and the store, which holds exactly what was committed, is where it is read from; `recentEvents.ts` has the newest of it in
 * memory. Notices are told between stored events, once all of those were.
 */
import type { StoredEvent } from '../model.ts';
import type { Store } from '../store/store.ts';
import { nextRound } from '../work/rounds.ts';
import type { CommitNotifier } from './commitNotifier.ts';
import type { Notice, Notices } from './notices.ts';

/** Read between two rounds of the event loop: a watch from the beginning of a long log gives way to everybody else. */
const pageSize = 200;

export interface WatchParts {
  readonly store: Pick<Store, 'readEvents'>;
  /** Rings for commits and for notices. */
  readonly notifier: CommitNotifier;
  readonly notices: Pick<Notices, 'after' | 'lastNumber'>;
}

export interface WatchOptions {
  readonly sinceSeq: number;
  readonly follow: boolean;
  readonly subject: string | null;
}

/** A watch that begins anew at `position` has missed no stored event. */
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
    const rung = notifier.next(abort, options.subject);
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
    await rung;
  }
}
