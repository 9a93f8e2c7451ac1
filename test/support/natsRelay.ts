/** Both ends of the NATS relay: a log to append to, and what has arrived in the stream. */
import type { Logger } from '@muster/common/log';
import { CommitNotifier } from '@muster/coordinator/events/notices';
import type { StoredEvent } from '@muster/coordinator/model';
import { emptyBatch, type Store } from '@muster/coordinator/store/store';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { patienceMs } from './patience.ts';
import { type NatsServer, waitFor } from './services.ts';

export const clusterId = 'c0ffee';
export const streamName = `MUSTER_${clusterId}`;

/** A coordinator as far as its event log goes: appends to a real store and rings. */
export class EventLog {
  readonly store: Store;
  readonly committed = new CommitNotifier();
  readonly events: StoredEvent[] = [];
  private readonly subjectSeqs = new Map<string, number>();

  constructor(store: Store) {
    this.store = store;
  }

  /** Commits events of several subjects in turn, as one batch. */
  async append(
    count: number,
    data: (seq: number) => Record<string, unknown> = (seq) => ({ seq }),
  ): Promise<void> {
    const subjects = ['job_00000000000a', 'job_00000000000b', 'job_00000000000c', 'node-1'];
    const batch = Array.from({ length: count }, (_, index): StoredEvent => {
      const seq = this.events.length + index + 1;
      const subject = subjects[seq % subjects.length] ?? 'node-1';
      const subjectSeq = (this.subjectSeqs.get(subject) ?? 0) + 1;
      this.subjectSeqs.set(subject, subjectSeq);
      const kind = subject.startsWith('job') ? 'job.submitted' : 'node.silent';
      return {
        seq,
        id: `${clusterId}-${seq}`,
        subject,
        subjectSeq,
        kind,
        timeMs: 1_700_000_000_000 + seq,
        data: data(seq),
        by: 'admin',
        peer: '',
      };
    });
    await this.store.commit({ ...emptyBatch, events: batch });
    this.events.push(...batch);
    this.committed.notify();
  }
}

export class RecordingLog implements Logger {
  readonly lines: { level: string; fields: object; message: string }[] = [];
  info = (fields: object, message: string) => void this.lines.push({ level: 'info', fields, message });
  warn = (fields: object, message: string) => void this.lines.push({ level: 'warn', fields, message });
  error = (fields: object, message: string) => void this.lines.push({ level: 'error', fields, message });
  debug = () => {};
  warnings = () => this.lines.filter((line) => line.level === 'warn');
}

export async function withStreams<T>(
  server: NatsServer,
  use: (manager: JetStreamManager) => Promise<T>,
): Promise<T> {
  const connection = await connect({ servers: server.url.replace('nats://', ''), reconnect: false });
  try {
    return await use(await jetstreamManager(connection, { timeout: patienceMs }));
  } finally {
    await connection.close();
  }
}

interface Message {
  readonly subject: string;
  readonly id: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Waits until the stream's last message is the log's last event, and returns all messages in stream order. */
export async function messagesUpToDate(server: NatsServer, log: EventLog): Promise<readonly Message[]> {
  const lastId = log.events.at(-1)?.id;
  return withStreams(server, async (manager) => {
    await waitFor(
      `${streamName} holds ${lastId}`,
      async () => {
        const { state } = await manager.streams.info(streamName);
        const last = await manager.streams.getMessage(streamName, { seq: state.last_seq });
        return last?.header.get('Nats-Msg-Id');
      },
      { until: (seen) => seen === lastId },
    );
    return readStream(manager);
  });
}

/** All messages of the stream, in its order. */
export async function readStream(manager: JetStreamManager): Promise<readonly Message[]> {
  const { state } = await manager.streams.info(streamName);
  const consumer = await manager.jetstream().consumers.get(streamName);
  const messages: Message[] = [];
  while (messages.length < state.messages) {
    const batch = await consumer.fetch({ max_messages: Math.min(1_000, state.messages - messages.length) });
    for await (const message of batch) {
      messages.push({
        subject: message.subject,
        id: message.headers?.get('Nats-Msg-Id') ?? '',
        body: message.json(),
      });
    }
  }
  return messages;
}
