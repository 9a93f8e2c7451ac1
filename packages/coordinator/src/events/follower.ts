/**
 * Follows the event log for somebody outside who gets a copy of it, or who is told of some of it: NATS, the sinks of alerts. The log
 * in the store is the truth. What is committed is sent at least once and in order, while jobs never wait for it: a target that is
 * away is tried again with a growing delay, and a cursor in the store tells how far it has come, through restarts and kills.
 * Retention removes no event that is behind a cursor.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { unlessAborted, untilAborted } from '@muster/common/async';
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import { type BackoffPolicy, backoffMs } from '@muster/common/retry';
import type { StoredEvent } from '../model.ts';
import type { Store } from '../store/store.ts';
import type { CommitNotifier } from './notices.ts';

/** One connection to where events go. */
export interface EventTarget {
  readonly name: string;
  /** Number of the last event that the target itself says it has. null: it cannot tell, and the cursor counts. */
  readonly lastEventSeq: number | null;
  /** Aborts when the connection is lost or closed. */
  readonly closed: AbortSignal;
  /** Sends in order. Never rejects: how far it came matters more than why not further. */
  publish(events: readonly StoredEvent[]): Promise<PublishResult>;
  close(): Promise<void>;
}

export interface PublishResult {
  /** How many of the events, from the first, the target has now. */
  readonly stored: number;
  /** Why not all. null: all, or the rest follows. */
  readonly error: unknown;
  /** The last of them would be noticed if it came twice, so the cursor is stored at once. */
  readonly mustRemember?: boolean;
}

/** Texts for the log, which tells of changes and not of every try. */
export interface FollowerWords {
  /** Names the target, without its credentials. */
  readonly fields: Readonly<Record<string, string>>;
  readonly reached: string;
  readonly failed: string;
  /** The target has an event that the store has not written yet. */
  readonly ahead: (target: EventTarget) => string;
}

export interface EventFollowerParts {
  /** Under which the store keeps the cursor. */
  readonly cursorName: string;
  /** Without a cursor it begins with the first event, or behind the last one. */
  readonly startsAt: 'first' | 'next';
  readonly open: () => Promise<EventTarget>;
  readonly words: FollowerWords;
  readonly backoff: BackoffPolicy;
  readonly store: Pick<Store, 'readEvents' | 'readMeta' | 'writeMeta'>;
  /** Notifies after each commit. */
  readonly committed: CommitNotifier;
  /** Number of the last event in the store. */
  readonly lastEventSeq: () => number;
  readonly log: Logger;
}

export interface RunningFollower {
  /** Resolves within a second, also when the target does not answer; what was not sent is sent after the next start. */
  close(): Promise<void>;
}

/** Acknowledged together. Also how often, in events, the cursor is written: a commit for each would slow the jobs' own. */
export const eventsPerPage = 500;

export function startFollower(parts: EventFollowerParts): RunningFollower {
  const stop = new AbortController();
  const running = new EventFollower(parts, stop.signal).run();
  return {
    close: () => {
      stop.abort();
      return running;
    },
  };
}

/** Up to which event a follower by this name has come. @param otherwise for one that has not begun */
export async function followedSeq(
  store: Pick<Store, 'readMeta'>,
  cursorName: string,
  otherwise: number,
): Promise<number> {
  return Number((await store.readMeta(cursorName)) ?? otherwise);
}

class EventFollower {
  private readonly parts: EventFollowerParts;
  private readonly stop: AbortSignal;
  /** Whether the target accepts events. null: not known yet. */
  private reaching: boolean | null = null;
  /** In a row. */
  private failures = 0;
  /** The last event known to be there, and its number in the store. */
  private position = 0;
  private storedCursor = 0;

  constructor(parts: EventFollowerParts, stop: AbortSignal) {
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
      const waitMs = backoffMs(this.parts.backoff, this.failures);
      await delay(waitMs, undefined, { signal: this.stop }).catch(() => {});
    }
  }

  /** Returns when asked to stop; every other way out throws. */
  private async connectAndCopy(): Promise<void> {
    const opening = this.parts.open();
    const target = await unlessAborted(this.stop, () => untilAborted(opening, this.stop));
    if (target === null) {
      void opening.then((late) => late.close()).catch(() => {});
      return;
    }
    const closeTarget = () => void target.close();
    this.stop.addEventListener('abort', closeTarget);
    try {
      await this.findPosition(target);
      await this.copy(target);
    } finally {
      this.stop.removeEventListener('abort', closeTarget);
      closeTarget();
      await this.storeCursor();
    }
  }

  private async findPosition(target: EventTarget): Promise<void> {
    const { store, cursorName, startsAt, lastEventSeq } = this.parts;
    const stored = await store.readMeta(cursorName);
    this.storedCursor = Number(stored ?? 0);
    this.position = this.storedCursor;
    if (stored === null && startsAt === 'next') {
      this.position = lastEventSeq();
      // Also before the first event: without it, what happens until the cursor moves would be skipped by the next start.
      await this.writeCursor();
    }
    const found = target.lastEventSeq ?? this.position;
    const [known] = found === 0 ? [] : await store.readEvents(found - 1, 1, null);
    if (target.lastEventSeq !== null && found > 0 && known === undefined)
      throw new Error(this.parts.words.ahead(target));
    this.position = found;
  }

  private async copy(target: EventTarget): Promise<void> {
    const { store, committed } = this.parts;
    const over = AbortSignal.any([this.stop, target.closed]);
    // Taken before reading, so that a commit in between is not missed.
    let notified = committed.next(over);
    while (!over.aborted) {
      const events = await store.readEvents(this.position, eventsPerPage, null);
      if (events.length > 0) {
        const { stored, error, mustRemember = false } = await target.publish(events);
        this.position = events[stored - 1]?.seq ?? this.position;
        if (error !== null) throw error instanceof Error ? error : new Error(messageOf(error));
        if (mustRemember || this.position - this.storedCursor >= eventsPerPage) await this.storeCursor();
      }
      this.succeeded(target);
      if (events.length > 0) continue;
      await notified;
      notified = committed.next(over);
    }
    if (!this.stop.aborted) throw new Error('the connection was lost');
  }

  private async storeCursor(): Promise<void> {
    if (this.position !== this.storedCursor) await this.writeCursor();
  }

  private async writeCursor(): Promise<void> {
    await this.parts.store.writeMeta(this.parts.cursorName, String(this.position));
    this.storedCursor = this.position;
  }

  private succeeded(target: EventTarget): void {
    this.failures = 0;
    if (this.reaching === true) return;
    this.reaching = true;
    const { log, words } = this.parts;
    log.info({ ...words.fields, stream: target.name, seq: this.position }, words.reached);
  }

  private failed(error: unknown): void {
    this.failures += 1;
    if (this.reaching === false) return;
    this.reaching = false;
    const { log, words } = this.parts;
    log.warn({ ...words.fields, error: messageOf(error) }, words.failed);
  }
}
