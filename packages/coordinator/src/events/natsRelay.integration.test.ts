import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '@muster/common/log';
import { nkeys } from '@nats-io/transport-node';
import { afterEach, describe, expect, it } from 'vitest';
import {
  clusterId,
  EventLog,
  messagesUpToDate,
  RecordingLog,
  readStream,
  streamName,
  withStreams,
} from '../../../../test/support/natsRelay.ts';
import { freePort, startNats, tempDir, waitFor } from '../../../../test/support/services.ts';
import { testAuthority } from '../../../../test/support/tlsServer.ts';
import { openSqliteStore } from '../store/sqlite/sqliteStore.ts';
import { cloudEventOf } from './cloudEvents.ts';
import type { RunningFollower } from './follower.ts';
import { startNatsRelay } from './natsRelay.ts';
import type { NatsSettings } from './natsStream.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function anEventLog(): EventLog {
  const store = openSqliteStore(tempDir('relay').path, () => clusterId);
  closers.push(() => store.close());
  return new EventLog(store);
}

function startRelay(
  url: string,
  log: EventLog,
  logger: Logger = new RecordingLog(),
  credentials: string | null = null,
  settings: NatsSettings = { ca: null, replicas: 1 },
): RunningFollower {
  const relay = startNatsRelay(url, {
    clusterId,
    store: log.store,
    committed: log.committed,
    credentials,
    settings,
    log: logger,
  });
  closers.push(() => relay.close());
  return relay;
}

const idsOf = (each: readonly { readonly id: string }[]) => each.map(({ id }) => id);

describe('the NATS relay', () => {
  it('publishes every event once, in order, as a CloudEvent on its own subject', async () => {
    const server = await startNats({ storeDir: tempDir('nats').path });
    const log = anEventLog();
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
    const log = anEventLog();
    await log.append(1);
    startRelay(server.url, log);
    await messagesUpToDate(server, log);

    const { config } = await withStreams(server, (manager) => manager.streams.info(streamName));

    expect(config).toMatchObject({
      subjects: [`muster.${clusterId}.*.*.*`],
      storage: 'file',
      duplicate_window: 10 * 60 * 1e9,
      max_age: 7 * 24 * 3_600 * 1e9,
      max_bytes: 1024 ** 3,
      num_replicas: 1,
    });
  });

  it('is let in by an nkey over TLS, trusts the CA that it was given and no other', async () => {
    const authority = await testAuthority();
    const { key, cert } = await authority.issue();
    const folder = tempDir('nats-tls').path;
    if (typeof key !== 'string' || typeof cert !== 'string') throw new Error('the authority gave no PEM');
    writeFileSync(join(folder, 'key.pem'), key);
    writeFileSync(join(folder, 'cert.pem'), cert);
    const user = nkeys.createUser();
    const seed = new TextDecoder().decode(user.getSeed());
    const server = await startNats({
      storeDir: join(folder, 'store'),
      config: `tls { cert_file: "${folder}/cert.pem", key_file: "${folder}/key.pem" }
authorization { users: [ { nkey: ${user.getPublicKey()} } ] }
`,
    });
    const url = server.url.replace('nats:', 'tls:');
    const log = anEventLog();
    await log.append(3);
    const untrusting = new RecordingLog();
    const first = startRelay(url, log, untrusting, seed);
    const isRefused = () =>
      untrusting.lines.some(({ message }) => message.startsWith('NATS cannot be reached'));
    await waitFor('an unknown CA is refused', isRefused);
    await first.close();
    const trusting = new RecordingLog();
    startRelay(url, log, trusting, seed, { ca: authority.certificate, replicas: 1 });
    await waitFor('events reach NATS', () =>
      trusting.lines.some(({ message }) => message === 'events reach NATS'),
    );
  });

  it('loses nothing when NATS is killed and restarted while events are written', async () => {
    const server = await startNats({ storeDir: tempDir('nats').path });
    const log = anEventLog();
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
    const log = anEventLog();
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
    const log = anEventLog();
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
    const log = anEventLog();
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
    const log = anEventLog();
    await log.append(600);
    startRelay(server.url, log);
    await messagesUpToDate(server, log);

    await withStreams(server, (manager) => manager.streams.delete(streamName));
    await log.append(1);

    expect(idsOf(await messagesUpToDate(server, log))).toEqual(idsOf(log.events));
  });

  it('goes on after its cursor when the messages have been removed from the stream', async () => {
    const server = await startNats({ storeDir: tempDir('nats').path });
    const log = anEventLog();
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
    const log = anEventLog();
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
    const log = anEventLog();
    startRelay(server.url, log);
    await log.append(3, (seq) => ({ text: seq === 2 ? 'x'.repeat(2 * 1024 * 1024) : 'small' }));

    const messages = await messagesUpToDate(server, log);

    expect(idsOf(messages)).toEqual(idsOf(log.events));
    expect(messages[1]?.body).toMatchObject({ id: `${clusterId}-2`, data: {}, dataomitted: true });
    expect(messages[2]?.body).not.toHaveProperty('dataomitted');
  });

  it('publishes nothing behind a stream that is ahead of the store', async () => {
    const server = await startNats({ storeDir: tempDir('nats').path });
    const newer = anEventLog();
    await newer.append(40);
    const relay = startRelay(server.url, newer);
    await messagesUpToDate(server, newer);
    await relay.close();

    const restored = anEventLog();
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
    const relay = startRelay(`nats://127.0.0.1:${port}`, anEventLog(), logger);
    await waitFor('the relay has connected', () => sockets.length > 0);

    await relay.close();

    // It did not sit out the attempt: that would have been logged as an outage.
    expect(logger.lines).toEqual([]);
  });

  it('gets in by what a file says, which no argument of a process shows', async () => {
    const server = await startNats({ storeDir: tempDir('nats').path, user: 'muster', password: 'p@ss:word' });
    const log = anEventLog();
    await log.append(5);
    const [wrong, right] = [new RecordingLog(), new RecordingLog()];
    const refused = startRelay(server.url, log, wrong, 'muster:wrong\n');
    await waitFor('it is refused', () => wrong.warnings().length > 0);
    await refused.close();
    expect(JSON.stringify(wrong.lines)).not.toContain('wrong\\n');

    startRelay(server.url, log, right, 'muster:p@ss:word\n');
    await waitFor('it gets in', () => right.lines.some(({ message }) => message === 'events reach NATS'));
    expect(JSON.stringify(right.lines)).not.toContain('p@ss');
  });

  it('keeps passwords out of its log', async () => {
    const port = await freePort();
    const logger = new RecordingLog();
    startRelay(`nats://alice:s3cret@127.0.0.1:${port}`, anEventLog(), logger);

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
