/**
 * The outbox relay: everything in the event log also goes to JetStream, at least once and in order, while the jobs never
 * wait for it. The log in the store is the truth and the stream a copy. NATS acknowledges before it has synced to disk,
 * so what it once acknowledged can be gone after a power cut; therefore the relay does not trust a cursor of its own
 * where the stream itself reports its last event: on every new connection it continues after the stream's last event,
 * also when that is further back. A stream that was deleted is filled again from the first event in the store.
 *
 * Order: the events of a subject, and in fact all of them, are in the stream in the order of the log; an event that NATS
 * refuses holds back those behind it until it is taken. An event can come twice only when its first copy was removed
 * from the stream (by age, or by an operator) before the cursor was written down; both copies carry the same id.
 */
import { type EventFollowerParts, type RunningFollower, startFollower } from './follower.ts';
import { natsTarget } from './natsConnection.ts';
import { natsCursorName } from './natsCursor.ts';
import { type NatsSettings, openEventStream } from './natsStream.ts';

export interface NatsRelayParts extends Pick<EventFollowerParts, 'store' | 'committed' | 'log'> {
  readonly clusterId: string;
  /** Text of a file, see `natsTarget`; null: those of the address, or none. */
  readonly credentials: string | null;
  readonly settings: NatsSettings;
}

const retryBackoff = { initialMs: 100, maxMs: 5_000 };

/**
 * @param url of NATS, see `natsTarget`
 * @throws {MusterError} `invalid` for a malformed address; a NATS that is away is waited for
 */
export function startNatsRelay(url: string, parts: NatsRelayParts): RunningFollower {
  const { clusterId, credentials, settings, store, committed, log } = parts;
  const target = natsTarget(url, credentials);
  return startFollower({
    cursorName: natsCursorName,
    startsAt: 'first',
    lastEventSeq: () => 0,
    open: () => openEventStream(target, clusterId, settings),
    backoff: retryBackoff,
    store,
    committed,
    log,
    words: {
      fields: { nats: target.shown },
      reached: 'events reach NATS',
      failed: 'NATS cannot be reached: events are kept and sent later; jobs are not affected',
      ahead: ({ name, lastEventSeq }) =>
        `the stream ${name} holds event ${lastEventSeq}, which this store has not written yet, as after a restore ` +
        'from an older copy. Delete the stream, and it is filled again',
    },
  });
}
