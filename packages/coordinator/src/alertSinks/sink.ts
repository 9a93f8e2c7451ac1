/**
 * A sink sends the notifications of alerts to people. Each follows the event log on its own, with a cursor in the store, so that
 * what was committed while a sink or the coordinator was away is delivered afterwards, once unless a kill falls between a
 * delivery and its record. A sink that refuses a notification for good, or does not answer for a day, is given up on for this
 * notification, and those behind it follow.
 */
import { createHash } from 'node:crypto';
import { messageOf } from '@muster/common/errors';
import type { EventFollowerParts, EventTarget, PublishResult, RunningFollower } from '../events/follower.ts';
import { startFollower } from '../events/follower.ts';
import type { StoredEvent } from '../model.ts';
import { type AlertNotification, notificationOf } from './notification.ts';

/** The receiver will never take this notification. */
export class RefusedNotification extends Error {
  override readonly name = 'RefusedNotification';
}

export interface AlertSink {
  readonly kind: SinkKind;
  /** Where it goes, without passwords and keys: for the log. */
  readonly shown: string;
  /** Tells one place from another, and reveals nothing of it. */
  readonly identity: string;
  /** @throws {RefusedNotification}, or any other error when it may succeed later */
  deliver(notification: AlertNotification, abort: AbortSignal): Promise<void>;
  /** Ends what runs besides the deliveries, such as a timer. */
  close?(): void;
}

export const sinkKinds = ['webhook', 'slack', 'smtp', 'alertmanager'] as const;
export type SinkKind = (typeof sinkKinds)[number];

export type DeliveryResult = 'delivered' | 'failed' | 'given_up';

export interface SinkParts extends Pick<EventFollowerParts, 'store' | 'committed' | 'log' | 'lastEventSeq'> {
  readonly wallMs: () => number;
  readonly onDelivery: (kind: SinkKind, result: DeliveryResult) => void;
}

const retryBackoff = { initialMs: 1_000, maxMs: 5 * 60_000 };
/** A notification that was not delivered within this duration is no longer of use. */
const giveUpAfterMs = 24 * 60 * 60_000;

/** The name of the cursor of a sink: another place has a cursor of its own, and begins with what happens next. */
export function sinkCursorName({ kind, identity }: Pick<AlertSink, 'kind' | 'identity'>): string {
  return `alert_sink_${kind}_${createHash('sha256').update(identity).digest('hex').slice(0, 12)}`;
}

export function startSink(sink: AlertSink, parts: SinkParts): RunningFollower {
  const follower = startFollower({
    ...parts,
    cursorName: sinkCursorName(sink),
    startsAt: 'next',
    open: async () => new SinkTarget(sink, parts),
    backoff: retryBackoff,
    words: {
      fields: { sink: sink.kind, to: sink.shown },
      reached: 'alerts reach this sink',
      failed: 'alerts do not reach this sink: they are kept and sent later; jobs are not affected',
      ahead: () => 'the sink is ahead of the store',
    },
  });
  return {
    close: async () => {
      sink.close?.();
      await follower.close();
    },
  };
}

class SinkTarget implements EventTarget {
  readonly name: string;
  readonly lastEventSeq = null;
  readonly closed: AbortSignal;
  private readonly closing = new AbortController();
  private readonly sink: AlertSink;
  private readonly parts: SinkParts;

  constructor(sink: AlertSink, parts: SinkParts) {
    this.sink = sink;
    this.parts = parts;
    this.name = sink.kind;
    this.closed = this.closing.signal;
  }

  /** Up to and with the first notification: the cursor is stored behind each one. */
  async publish(events: readonly StoredEvent[]): Promise<PublishResult> {
    for (const [index, event] of events.entries()) {
      const notification = notificationOf(event);
      if (notification === null) continue;
      const error = await this.tried(notification);
      if (error !== null) return { stored: index, error };
      return { stored: index + 1, error: null, mustRemember: true };
    }
    return { stored: events.length, error: null };
  }

  /** @returns null: it is dealt with */
  private async tried(notification: AlertNotification): Promise<unknown> {
    const { sink } = this;
    const { onDelivery, wallMs, log } = this.parts;
    try {
      await sink.deliver(notification, this.closed);
      onDelivery(sink.kind, 'delivered');
      return null;
    } catch (error) {
      if (this.closed.aborted) return error;
      const isTooOld = wallMs() - notification.atMs > giveUpAfterMs;
      if (!(error instanceof RefusedNotification) && !isTooOld) {
        onDelivery(sink.kind, 'failed');
        return error;
      }
      onDelivery(sink.kind, 'given_up');
      const fields = { sink: sink.kind, to: sink.shown, alert: notification.alert, error: messageOf(error) };
      log.error(fields, 'a notification was given up: this sink refuses it, or has not taken it for a day');
      return null;
    }
  }

  async close(): Promise<void> {
    this.closing.abort();
  }
}
