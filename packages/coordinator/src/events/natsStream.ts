/**
 * One connection to NATS, and the JetStream stream there that holds a copy of the event log.
 *
 * Events go out a page at a time without waiting for each acknowledgement, so one that the server refuses in the middle
 * could be overtaken by those behind it. Therefore each names the stream position that it follows
 * (`Nats-Expected-Last-Sequence`): when one is missing, everything behind it is refused as well. The stream is a prefix
 * of the event log at every instant, in order and without repeats, and its last message shows where to continue.
 */

import {
  JetStreamApiCodes,
  JetStreamApiError,
  jetstream,
  jetstreamManager,
  type PubAck,
} from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { StoredEvent } from '../model.ts';
import { cloudEventOf } from './cloudEvents.ts';
import type { EventTarget, PublishResult } from './follower.ts';
import { answerTimeoutMs, connectNats, type NatsTarget } from './natsConnection.ts';

/** Of the stream that is made, and of the connection. */
export interface NatsSettings {
  /** PEM of the authority that has signed the servers' certificates; null: those that the system trusts. */
  readonly ca: string | null;
  /** Copies of the stream in a cluster of NATS, 1 to 5. */
  readonly replicas: number;
}

const nanosPerMs = 1_000_000;
/** Ids seen this long are recognised when they come again. */
const duplicateWindowMs = 10 * 60_000;
const maxAgeMs = 7 * 24 * 3_600_000;
/** Some two million events; of more, the oldest go. A server without limits of its own must not fill its disk with copies. */
const streamBytesMax = 1024 ** 3;
/** What the subject and headers of a message take of the server's payload limit, at most. */
const headerBytesMax = 1_024;

/**
 * Connects, makes the stream `MUSTER_<cluster>` if there is none, and finds out how far it has come. A stream that is
 * there keeps its settings, so operators may choose replicas and limits of their own.
 * @throws {Error} when NATS does not answer, refuses, or has no JetStream
 */
export async function openEventStream(
  target: NatsTarget,
  clusterId: string,
  { ca, replicas }: NatsSettings,
): Promise<EventTarget> {
  // A new connection starts from what the stream holds; a patched-up one would send what it had buffered before.
  const connection = await connectNats(target, `muster ${clusterId}`, ca);
  try {
    const manager = await jetstreamManager(connection, { timeout: answerTimeoutMs, checkAPI: false });
    const name = `MUSTER_${clusterId}`;
    const { state } = await manager.streams.info(name).catch((error: unknown) => {
      const isMissing = error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound;
      if (!isMissing) throw error;
      return manager.streams.add({
        name,
        subjects: [eventSubjects(clusterId)],
        storage: 'file',
        duplicate_window: duplicateWindowMs * nanosPerMs,
        max_age: maxAgeMs * nanosPerMs,
        max_bytes: streamBytesMax,
        num_replicas: replicas,
      });
    });
    const last =
      state.messages === 0 ? null : await manager.streams.getMessage(name, { seq: state.last_seq });
    const lastEventSeq =
      state.last_seq === 0 ? 0 : eventSeqOf(last?.header.get('Nats-Msg-Id') ?? '', clusterId);
    const client = jetstream(connection, { timeout: answerTimeoutMs });
    return new JetStreamCopy(
      connection,
      { name, clusterId, lastEventSeq, lastStreamSeq: state.last_seq },
      (message) =>
        client.publish(message.subject, message.body, {
          msgID: message.id,
          expect: { lastSequence: message.afterStreamSeq },
        }),
    );
  } catch (error) {
    await connection.close();
    throw error;
  }
}

interface Message {
  readonly subject: string;
  readonly id: string;
  readonly body: string;
  readonly afterStreamSeq: number;
}

interface Position {
  readonly name: string;
  readonly clusterId: string;
  readonly lastEventSeq: number | null;
  readonly lastStreamSeq: number;
}

class JetStreamCopy implements EventTarget {
  readonly name: string;
  readonly lastEventSeq: number | null;
  readonly closed: AbortSignal;
  private readonly clusterId: string;
  private readonly connection: NatsConnection;
  private readonly send: (message: Message) => Promise<PubAck>;
  private streamSeq: number;

  constructor(connection: NatsConnection, position: Position, send: (message: Message) => Promise<PubAck>) {
    this.connection = connection;
    this.send = send;
    this.name = position.name;
    this.clusterId = position.clusterId;
    this.lastEventSeq = position.lastEventSeq;
    this.streamSeq = position.lastStreamSeq;
    const closing = new AbortController();
    this.closed = closing.signal;
    // Resolves, also when the connection was lost.
    void connection.closed().then(() => closing.abort());
  }

  async publish(events: readonly StoredEvent[]): Promise<PublishResult> {
    const bodyBytesMax = (this.connection.info?.max_payload ?? Number.POSITIVE_INFINITY) - headerBytesMax;
    const acknowledgements = await Promise.allSettled(
      events.map((event, index) =>
        this.send({
          subject: subjectOf(this.clusterId, event),
          id: event.id,
          body: bodyOf(this.clusterId, event, bodyBytesMax),
          afterStreamSeq: this.streamSeq + index,
        }),
      ),
    );
    const failed = acknowledgements.findIndex(({ status }) => status === 'rejected');
    const stored = failed === -1 ? events.length : failed;
    this.streamSeq += stored;
    const failure = acknowledgements[failed];
    return { stored, error: failure?.status === 'rejected' ? failure.reason : null };
  }

  async close(): Promise<void> {
    await this.connection.close();
  }
}

/** Of all events of a cluster, and of nothing else that is sent to it: requests have fewer parts. */
export function eventSubjects(clusterId: string): string {
  return `muster.${clusterId}.*.*.*`;
}

/** `muster.<cluster>.job.<job id>.submitted` of a `job.submitted`. Job ids and node names are free of dots. */
function subjectOf(clusterId: string, { kind, subject }: StoredEvent): string {
  const dot = kind.indexOf('.');
  return `muster.${clusterId}.${kind.slice(0, dot)}.${subject}.${kind.slice(dot + 1)}`;
}

/**
 * One event that the server cannot take would hold back all that follow. Its fact still goes out; who needs the data,
 * such as every GPU of a thousand nodes, asks the coordinator for the event.
 */
function bodyOf(clusterId: string, event: StoredEvent, bytesMax: number): string {
  const envelope = cloudEventOf(clusterId, event);
  const body = JSON.stringify(envelope);
  if (Buffer.byteLength(body) <= bytesMax) return body;
  return JSON.stringify({ ...envelope, data: {}, dataomitted: true });
}

function eventSeqOf(eventId: string, clusterId: string): number | null {
  const prefix = `${clusterId}-`;
  const seq = eventId.startsWith(prefix) ? Number(eventId.slice(prefix.length)) : Number.NaN;
  return Number.isSafeInteger(seq) ? seq : null;
}
