import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '@muster/common/log';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterEach, describe, expect, it } from 'vitest';
import { freePort, type NatsServer, startNats, tempDir, waitFor } from '../../../../test/support/services.ts';
import type { StoredEvent } from '../model.ts';
import { openSqliteStore } from '../store/sqlite/sqliteStore.ts';
import { emptyBatch, type Store } from '../store/store.ts';
import { Bell } from './bell.ts';
import { cloudEventOf } from './cloudEvents.ts';
import { type NatsRelay, startNatsRelay } from './natsRelay.ts';
import { parseNatsUrl } from './natsStream.ts';

const clusterId = 'c0ffee';
const streamName = `MUSTER_${clusterId}`;

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A coordinator as far as its event log goes: appends to a real store and rings. */
class EventLog {
  readonly store: Store;
  readonly committed = new Bell();
  readonly events: StoredEvent[] = [];
  private readonly subjectSeqs = new Map<string, number>();

  constructor() {
    this.store = openSqliteStore(tempDir('relay').path, () => clusterId);
    closers.push(() => this.store.close());
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
      };
    });
    await this.store.commit({ ...emptyBatch, events: batch });
    this.events.push(...batch);
    this.committed.ring();
  }
}

class RecordingLog implements Logger {
  readonly lines: { level: string; fields: object; message: string }[] = [];
  info = (fields: object, message: string) => void this.lines.push({ level: 'info', fields, message });
  warn = (fields: object, message: string) => void this.lines.push({ level: 'warn', fields, message });
  error = (fields: object, message: string) => void this.lines.push({ level: 'error', fields, message });
  debug = () => {};
  warnings = () => this.lines.filter((line) => line.level === 'warn');
}

function startRelay(url: string, log: EventLog, logger: Logger = new RecordingLog()): NatsRelay {
  const relay = startNatsRelay(url, { clusterId, store: log.store, committed: log.committed, log: logger });
  closers.push(() => relay.close());
  return relay;
}

async function withStreams<T>(
  server: NatsServer,
  use: (manager: JetStreamManager) => Promise<T>,
): Promise<T> {
  const connection = await connect({ servers: server.url.replace('nats://', ''), reconnect: false });
  try {
    return await use(await jetstreamManager(connection));
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
async function messagesUpToDate(server: NatsServer, log: EventLog): Promise<readonly Message[]> {
  const lastId = log.events.at(-1)?.id;
  return withStreams(server, async (manager) => {
    await waitFor(
      `${streamName} holds ${lastId}`,
      async () => {
        const { state } = await manager.streams.info(streamName);
        const last = await manager.streams.getMessage(streamName, { seq: state.last_seq });
        return last?.header.get('Nats-Msg-Id');
      },
      { timeoutMs: 20_000, until: (seen) => seen === lastId },
    );
    return readStream(manager);
  });
}

async function readStream(manager: JetStreamManager): Promise<readonly Message[]> {
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

const idsOf = (each: readonly { readonly id: string }[]) => each.map(({ id }) => id);

describe('the NATS relay', () => {
  it('publishes every event once, in order, as a CloudEvent on its own subject', async () => {
    const server = await startNats({ storeDir: tempDir('nats').path });
    const log = new EventLog();
    await log.append(700);
    startRelay(server.url, log);
    await log.append(550);

    const messages = await messagesUpToDate(server, log);

    expect(idsOf(messages)).toEqual(idsOf(log.events));
    expect(messages.map(({ body }) => body)).toEqual(
      log.events.map((event) => cloudEventOf(clusterId, event)),
    );
    expect(messages[0]?.subject).toBe(`muster.${clusterId}.job.job_00000000000b.submitted`);
    expect(messages[2]?.subject).toBe(`muster.${clusterId}.node.node-1.silent`);
  });

  it('makes a stream on disk that recognises repeats for 10 minutes and keeps events for 7 days', async () => {
    const server = await startNats({ storeDir: tempDir('nats').path });
    const log = new EventLog();
    await log.append(1);
    startRelay(server.url, log);
    await messagesUpToDate(server, log);

    const { config } = await withStreams(server, (manager) => manager.streams.info(streamName));

    expect(config).toMatchObject({
      subjects: [`muster.${clusterId}.>`],
      storage: 'file',
      duplicate_window: 10 * 60 * 1e9,
      max_age: 7 * 24 * 3_600 * 1e9,
    });
  });

  it('loses nothing when NATS is killed and restarted while events are written', async () => {
    const server = await startNats({ storeDir: tempDir('nats').path });
    const log = new EventLog();
    const logger = new RecordingLog();
    startRelay(server.url, log, logger);
    const outages = 5;
    const done = new AbortController();
    const writer = writeUntil(done.signal, log);
    closers.push(async () => {
      done.abort();
      await writer;
    });

    for (let outage = 0; outage < outages; outage += 1) {
      await eventsWritten(log, 400 + 130 * outage);
      await server.kill('SIGKILL');
      await eventsWritten(log, 300);
      await server.restart();
      await waitFor('the relay reaches NATS again', () => {
        const reached = logger.lines.filter((line) => line.message === 'events reach NATS');
        return reached.length > outage;
      });
    }
    await eventsWritten(log, 400);
    done.abort();
    await writer;
    const messages = await messagesUpToDate(server, log);

    expect(log.events.length).toBeGreaterThan(3_000);
    expect(idsOf(messages)).toEqual(idsOf(log.events));
    for (const subject of new Set(log.events.map((event) => event.subject))) {
      const numbers = messages
        .filter(({ body }) => body['subject'] === subject)
        .map(({ body }) => body['subjectsequence']);
      expect(numbers).toEqual(numbers.map((_, index) => String(index + 1)));
    }
  });

  it('goes on where the relay before it stopped', async () => {
    const server = await startNats({ storeDir: tempDir('nats').path });
    const log = new EventLog();
    for (let round = 0; round < 3; round += 1) {
      const relay = startRelay(server.url, log);
      await log.append(620);
      if (round === 1) await messagesUpToDate(server, log);
      await relay.close();
      await log.append(30);
    }
    startRelay(server.url, log);

    expect(idsOf(await messagesUpToDate(server, log))).toEqual(idsOf(log.events));
  });

  it('waits for a NATS that is away at the start, says so once, and then sends everything', async () => {
    const port = await freePort();
    const log = new EventLog();
    const logger = new RecordingLog();
    await log.append(30);
    startRelay(`nats://127.0.0.1:${port}`, log, logger);
    await waitFor('the outage is logged', () => logger.warnings().length > 0);
    await log.append(30);
    // Several tries later there is still only one line.
    await delay(500);
    expect(logger.warnings()).toHaveLength(1);

    const server = await startNats({ storeDir: tempDir('nats').path, port });

    expect(idsOf(await messagesUpToDate(server, log))).toEqual(idsOf(log.events));
    expect(logger.lines.map((line) => line.level)).toEqual(['warn', 'info']);
  });

  it('holds back what comes after an event that NATS refuses', async () => {
    const server = await startNats({ storeDir: tempDir('nats').path });
    await withStreams(server, (manager) =>
      manager.streams.add({
        name: streamName,
        subjects: [`muster.${clusterId}.>`],
        storage: 'file',
        max_msg_size: 1_024,
      }),
    );
    const log = new EventLog();
    const logger = new RecordingLog();
    await log.append(30, (seq) => ({ text: 'x'.repeat(seq === 11 ? 2_000 : 10) }));
    startRelay(server.url, log, logger);
    await waitFor('the refusal is logged', () => logger.warnings().length > 0);
    expect(idsOf(await withStreams(server, readStream))).toEqual(idsOf(log.events.slice(0, 10)));

    await withStreams(server, (manager) => manager.streams.update(streamName, { max_msg_size: -1 }));

    expect(idsOf(await messagesUpToDate(server, log))).toEqual(idsOf(log.events));
    expect(logger.warnings()).toHaveLength(1);
  });

  it('fills a stream that was deleted again, from the first event', async () => {
    const server = await startNats({ storeDir: tempDir('nats').path });
    const log = new EventLog();
    await log.append(600);
    startRelay(server.url, log);
    await messagesUpToDate(server, log);

    await withStreams(server, (manager) => manager.streams.delete(streamName));
    await log.append(1);

    expect(idsOf(await messagesUpToDate(server, log))).toEqual(idsOf(log.events));
  });

  it('goes on after its cursor when the messages have been removed from the stream', async () => {
    const server = await startNats({ storeDir: tempDir('nats').path });
    const log = new EventLog();
    await log.append(600);
    const relay = startRelay(server.url, log);
    await messagesUpToDate(server, log);
    await relay.close();
    await withStreams(server, (manager) => manager.streams.purge(streamName));

    await log.append(5);
    startRelay(server.url, log);

    expect(idsOf(await messagesUpToDate(server, log))).toEqual(idsOf(log.events.slice(600)));
  });

  it('passes over events that NATS recognises as repeats, when its cursor is behind and the stream was emptied', async () => {
    const server = await startNats({ storeDir: tempDir('nats').path });
    const log = new EventLog();
    await log.append(600);
    const relay = startRelay(server.url, log);
    await messagesUpToDate(server, log);
    await relay.close();
    // Killed before the cursor was written.
    await log.store.writeMeta('nats_cursor', '590');
    await withStreams(server, (manager) => manager.streams.purge(streamName));

    await log.append(5);
    startRelay(server.url, log);

    expect(idsOf(await messagesUpToDate(server, log))).toEqual(idsOf(log.events.slice(600)));
  });

  it('publishes an event that is too large for NATS without its data', async () => {
    const server = await startNats({ storeDir: tempDir('nats').path });
    const log = new EventLog();
    startRelay(server.url, log);
    await log.append(3, (seq) => ({ text: seq === 2 ? 'x'.repeat(2 * 1024 * 1024) : 'small' }));

    const messages = await messagesUpToDate(server, log);

    expect(idsOf(messages)).toEqual(idsOf(log.events));
    expect(messages[1]?.body).toMatchObject({ id: `${clusterId}-2`, data: {}, dataomitted: true });
    expect(messages[2]?.body).not.toHaveProperty('dataomitted');
  });

  it('publishes nothing behind a stream that is ahead of the store', async () => {
    const server = await startNats({ storeDir: tempDir('nats').path });
    const newer = new EventLog();
    await newer.append(40);
    const relay = startRelay(server.url, newer);
    await messagesUpToDate(server, newer);
    await relay.close();

    const restored = new EventLog();
    const logger = new RecordingLog();
    await restored.append(20);
    startRelay(server.url, restored, logger);

    await waitFor('the refusal is logged', () => logger.warnings().length > 0);
    expect(logger.warnings()[0]?.fields).toMatchObject({ error: expect.stringContaining('holds event 40') });
    expect(await restored.store.readMeta('nats_cursor')).toBeNull();
  });

  it('closes while a server that never answers keeps it waiting', async () => {
    const sockets: { destroy(): void }[] = [];
    const mute = createServer((socket) => sockets.push(socket));
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    closers.push(async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => mute.close(resolve));
    });
    const address = mute.address();
    const port = typeof address === 'object' ? address?.port : null;
    const logger = new RecordingLog();
    const relay = startRelay(`nats://127.0.0.1:${port}`, new EventLog(), logger);
    await waitFor('the relay has connected', () => sockets.length > 0);

    await relay.close();

    // It did not sit out the attempt: that would have been logged as an outage.
    expect(logger.lines).toEqual([]);
  });

  it('keeps passwords out of its log', async () => {
    const port = await freePort();
    const logger = new RecordingLog();
    startRelay(`nats://alice:s3cret@127.0.0.1:${port}`, new EventLog(), logger);

    await waitFor('the outage is logged', () => logger.warnings().length > 0);

    expect(JSON.stringify(logger.lines)).toContain(`127.0.0.1:${port}`);
    expect(JSON.stringify(logger.lines)).not.toMatch(/s3cret|alice/);
  });
});

async function writeUntil(done: AbortSignal, log: EventLog): Promise<void> {
  while (!done.aborted) {
    await log.append(25);
    await delay(2);
  }
}

/** Waits until so many more events have been written. */
async function eventsWritten(log: EventLog, count: number): Promise<void> {
  const target = log.events.length + count;
  await waitFor(`${target} events are written`, () => log.events.length >= target);
}

describe('parseNatsUrl', () => {
  it('reads servers, credentials and whether encryption is a must', () => {
    expect(parseNatsUrl('nats://127.0.0.1:4222')).toEqual({
      servers: ['127.0.0.1:4222'],
      shown: '127.0.0.1:4222',
      tls: false,
      credentials: null,
    });
    expect(parseNatsUrl('tls://bob:p%40ss@a.example, tls://b.example:4333')).toEqual({
      servers: ['a.example', 'b.example:4333'],
      shown: 'a.example,b.example:4333',
      tls: true,
      credentials: { user: 'bob', pass: 'p@ss' },
    });
    expect(parseNatsUrl('nats://t0ken@[::1]:4222').credentials).toEqual({ token: 't0ken' });
  });

  it.each([
    '',
    'localhost',
    'http://localhost:4222',
    'nats://',
    'nats://a:4222,b:s3cret',
    'nats://b:s3cret%@a',
  ])('refuses "%s"', (url) => {
    expect(() => parseNatsUrl(url)).toThrow(/nats:\/\/host:4222/);
    expect(() => parseNatsUrl(url)).not.toThrow(/s3cret/);
  });
});
