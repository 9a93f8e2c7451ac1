/**
 * The outbox relay: everything in the event log also goes to JetStream, at least once and in order, while the jobs never
 * wait for it. The log in the store is the truth and the stream a copy. NATS acknowledges before it has synced to disk,
 * so what it once acknowledged can be gone after a power cut; therefore the relay does not trust a cursor of its own
 * where the stream can say itself how far it has come: on every new connection it goes on after the stream's last event,
 * also when that is further back. A stream that was deleted is filled again from the first event in the store.
 *
 * Order: the events of a subject, and in fact all of them, are in the stream in the order of the log; an event that NATS
 * refuses holds back those behind it until it is taken. An event can come twice only when its first copy was removed
 * from the stream (by age, or by an operator) before the cursor was written down; both copies carry the same id.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { unlessAborted, untilAborted } from '@muster/common/async';
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import { backoffMs } from '@muster/common/retry';
import type { Store } from '../store/store.ts';
import { natsCursorName } from './natsCursor.ts';
import {
  type EventStream,
  type NatsTarget,
  openEventStream,
  parseNatsCredentials,
  parseNatsUrl,
} from './natsStream.ts';
import type { CommitNotifier } from './notices.ts';

export interface NatsRelayParts {
  readonly clusterId: string;
  readonly store: Pick<Store, 'readEvents' | 'readMeta' | 'writeMeta'>;
  /** Notifies after each commit. */
  readonly committed: CommitNotifier;
  /** Text of a file, see `parseNatsCredentials`; null: those of the address, or none. */
  readonly credentials: string | null;
  readonly log: Logger;
}

export interface NatsRelay {
  /** Resolves within a second, also when NATS does not answer; what was not sent is sent after the next start. */
  close(): Promise<void>;
}

/** Acknowledged together. Also how often, in events, the cursor is written: a commit for each would slow the jobs' own. */
const pageSize = 500;
const retryBackoff = { initialMs: 100, maxMs: 5_000 };

/**
 * @param url see `parseNatsUrl`
 * @throws {MusterError} `invalid` for a malformed address; a NATS that is away is waited for
 */
export function startNatsRelay(url: string, parts: NatsRelayParts): NatsRelay {
  const stop = new AbortController();
  const target = parseNatsUrl(url);
  const named = parts.credentials === null ? null : parseNatsCredentials(parts.credentials);
  const running = new Relay(
    named === null ? target : { ...target, credentials: named },
    parts,
    stop.signal,
  ).run();
  return {
    close: () => {
      stop.abort();
      return running;
    },
  };
}

class Relay {
  private readonly target: NatsTarget;
  private readonly parts: NatsRelayParts;
  private readonly stop: AbortSignal;
  /** Whether NATS accepts events. null: not known yet. */
  private reaching: boolean | null = null;
  /** In a row. */
  private failures = 0;
  /** The last event known to be in the stream, and its number in the store. */
  private position = 0;
  private storedCursor = 0;

  constructor(target: NatsTarget, parts: NatsRelayParts, stop: AbortSignal) {
    this.target = target;
    this.parts = parts;
    this.stop = stop;
  }

  async run(): Promise<void> {
    while (!this.stop.aborted) {
      try {
        await this.connectAndCopy();
      } catch (error) {
        if (!this.stop.aborted) this.failed(error);
      }
      if (this.failures === 0) continue;
      await delay(backoffMs(retryBackoff, this.failures), undefined, { signal: this.stop }).catch(() => {});
    }
  }

  /** Returns when asked to stop; every other way out throws. */
  private async connectAndCopy(): Promise<void> {
    const opening = openEventStream(this.target, this.parts.clusterId);
    const stream = await unlessAborted(this.stop, () => untilAborted(opening, this.stop));
    if (stream === null) {
      void opening.then((late) => late.close()).catch(() => {});
      return;
    }
    const closeStream = () => void stream.close();
    this.stop.addEventListener('abort', closeStream);
    try {
      await this.findPosition(stream);
      await this.copy(stream);
    } finally {
      this.stop.removeEventListener('abort', closeStream);
      closeStream();
      await this.storeCursor();
    }
  }

  private async findPosition(stream: EventStream): Promise<void> {
    const { store } = this.parts;
    this.storedCursor = Number((await store.readMeta(natsCursorName)) ?? 0);
    this.position = this.storedCursor;
    const found = stream.lastEventSeq ?? this.storedCursor;
    const [known] = found === 0 ? [] : await store.readEvents(found - 1, 1, null);
    if (found > 0 && known === undefined) {
      throw new Error(
        `the stream ${stream.name} holds event ${found}, which this store has not written yet, as after a restore ` +
          'from an older copy. Delete the stream, and it is filled again',
      );
    }
    this.position = found;
  }

  private async copy(stream: EventStream): Promise<void> {
    const { store, committed } = this.parts;
    const over = AbortSignal.any([this.stop, stream.closed]);
    // Taken before reading, so that a commit in between is not missed.
    let notified = committed.next(over);
    while (!over.aborted) {
      const events = await store.readEvents(this.position, pageSize, null);
      if (events.length > 0) {
        const { stored, error } = await stream.publish(events);
        this.position = events[stored - 1]?.seq ?? this.position;
        if (stored < events.length) throw error;
        if (this.position - this.storedCursor >= pageSize) await this.storeCursor();
      }
      this.succeeded(stream);
      if (events.length > 0) continue;
      await notified;
      notified = committed.next(over);
    }
    if (!this.stop.aborted) throw new Error('the connection was lost');
  }

  private async storeCursor(): Promise<void> {
    if (this.position === this.storedCursor) return;
    await this.parts.store.writeMeta(natsCursorName, String(this.position));
    this.storedCursor = this.position;
  }

  /** A change is logged, and not every try. */
  private succeeded(stream: EventStream): void {
    this.failures = 0;
    if (this.reaching === true) return;
    this.reaching = true;
    const fields = { nats: this.target.shown, stream: stream.name, seq: this.position };
    this.parts.log.info(fields, 'events reach NATS');
  }

  private failed(error: unknown): void {
    this.failures += 1;
    if (this.reaching === false) return;
    this.reaching = false;
    const fields = { nats: this.target.shown, error: messageOf(error) };
    this.parts.log.warn(
      fields,
      'NATS cannot be reached: events are kept and sent later; jobs are not affected',
    );
  }
}
