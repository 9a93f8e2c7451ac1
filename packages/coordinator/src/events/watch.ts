/**
 * A watch reads the event log from a sequence number and misses nothing: live news only says that there is more to
 * read, and the store, which holds exactly what was committed, is where it is read from.
 */
import type { StoredEvent } from '../model.ts';
import { nextRound } from '../rounds.ts';
import type { Store } from '../store/store.ts';
import type { Bell } from './bell.ts';

/** Read between two rounds of the event loop: a watch from the beginning of a long log gives way to everybody else. */
const pageSize = 200;

export interface WatchOptions {
  readonly sinceSeq: number;
  readonly follow: boolean;
  readonly subject: string | null;
}

export async function* watchEvents(
  store: Pick<Store, 'readEvents'>,
  bell: Bell,
  options: WatchOptions,
  abort: AbortSignal,
): AsyncGenerator<StoredEvent> {
  let position = options.sinceSeq;
  while (!abort.aborted) {
    const rung = bell.next(abort, options.subject);
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
    await rung;
  }
}
