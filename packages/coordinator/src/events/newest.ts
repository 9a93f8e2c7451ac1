/** Where the newest events of a long log begin, found from its end: a log of a month has a million events before them. */
import type { StoredEvent } from '../model.ts';
import type { Store } from '../store/store.ts';
import { nextRound } from '../work/inOrder.ts';

/** Events read at once. */
const pageSize = 200;
/** Growth of the part of the log that is read, if it has too few events that are wanted. */
const growth = 4;

export interface NewestWanted {
  /** Events to find. From 1 on. */
  readonly count: number;
  /** Only events after this sequence number. */
  readonly sinceSeq: number;
  /** Null for events of every subject. */
  readonly subject: string | null;
  /** False for an event that the caller may not see or did not ask for. */
  readonly isWanted: (event: StoredEvent) => Promise<boolean>;
}

/**
 * Finds the sequence number after which exactly `count` wanted events follow, or fewer if there are not so many.
 * @param lastSeq sequence number of the newest event
 */
export async function positionOfNewest(
  store: Pick<Store, 'readEvents'>,
  lastSeq: number,
  { count, sinceSeq, subject, isWanted }: NewestWanted,
  abort: AbortSignal,
): Promise<number> {
  for (let length = Math.max(pageSize, count); ; length *= growth) {
    const from = Math.max(sinceSeq, lastSeq - length);
    /** Sequence numbers of the last wanted events, in a ring. */
    const ring: number[] = [];
    let found = 0;
    for (let position = from; position < lastSeq && !abort.aborted; ) {
      const events = await store.readEvents(position, pageSize, subject);
      for (const event of events) {
        position = event.seq;
        if (await isWanted(event)) ring[found++ % count] = event.seq;
      }
      if (events.length === 0) break;
      await nextRound();
    }
    if (found >= count) return (ring[found % count] ?? from + 1) - 1;
    if (from === sinceSeq || abort.aborted) return from;
  }
}
