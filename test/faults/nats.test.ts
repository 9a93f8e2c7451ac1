/**
 * kill -9 of the coordinator and of NATS while jobs are submitted through NATS: a durable consumer receives every event, none before
 * an earlier one, and twice only under the same id; every request makes one job. The seed of a run is printed when it fails;
 * MUSTER_TEST_SEED repeats its choices. With MUSTER_TEST_TRIALS=full there are more kills.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { AckPolicy, DeliverPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, headers, type NatsConnection } from '@nats-io/transport-node';
import { expect, onTestFailed, test } from 'vitest';
import { type Chance, seededChance } from '../support/chance.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { patienceMs } from '../support/patience.ts';
import { type NatsServer, startNats, tempDir, waitFor } from '../support/services.ts';
import { trialsOf } from '../support/trials.ts';

/** Of each three, one kills the coordinator, one NATS, and one both. */
const rounds = trialsOf(300, 3);
const submitters = 2;
/** For one answer; who gets none repeats the request. */
const answerTimeoutMs = 2_000;
const nanosPerMs = 1_000_000;

interface Received {
  readonly id: string;
  readonly subject: string;
  readonly body: unknown;
}

/** Connects again and again, because the server is killed now and then, until `isOver`. */
async function overOutages(
  server: NatsServer,
  isOver: () => boolean,
  use: (connection: NatsConnection) => Promise<void>,
): Promise<void> {
  while (!isOver()) {
    try {
      const connection = await connect({ servers: server.url.replace('nats://', ''), reconnect: false });
      try {
        await use(connection);
      } finally {
        await connection.close();
      }
    } catch {
      // It was killed, or the stream is not there yet.
      await delay(50);
    }
  }
}

/** A consumer that NATS itself keeps the position of, one message after the other. */
async function consume(
  connection: NatsConnection,
  stream: string,
  signal: AbortSignal,
  received: Received[],
): Promise<void> {
  const manager = await jetstreamManager(connection, { timeout: answerTimeoutMs });
  const name = 'checker';
  await manager.consumers.add(stream, {
    durable_name: name,
    ack_policy: AckPolicy.Explicit,
    deliver_policy: DeliverPolicy.All,
    // With more of them, what was under way at a kill would come after what followed it.
    max_ack_pending: 1,
    ack_wait: 1_000 * nanosPerMs,
  });
  const consumer = await jetstream(connection, { timeout: answerTimeoutMs }).consumers.get(stream, name);
  while (!signal.aborted) {
    const message = await consumer.next({ expires: 1_000 });
    if (message === null) continue;
    const id = message.headers?.get('Nats-Msg-Id') ?? '';
    received.push({ id, subject: message.subject, body: message.json() });
    message.ack();
  }
}

/** Submits jobs, each until it is answered. */
class Submits {
  readonly jobIds: string[] = [];
  private readonly cluster: Cluster;
  private readonly subject: string;
  private requests = 0;

  constructor(cluster: Cluster, clusterId: string) {
    this.cluster = cluster;
    this.subject = `muster.${clusterId}.submit`;
  }

  /** @param stop lets it end with an answer @param end ends it */
  async run(server: NatsServer, chance: Chance, stop: AbortSignal, end: AbortSignal): Promise<void> {
    let key: string | null = null;
    const isOver = () => stop.aborted && (key === null || end.aborted);
    await overOutages(server, isOver, async (connection) => {
      while (!isOver()) {
        key ??= `request-${++this.requests}`;
        const { jobIds } = await this.submit(connection, key);
        this.jobIds.push(...jobIds);
        key = null;
        await delay(chance.integer(20, 200));
      }
    });
  }

  private async submit(
    connection: NatsConnection,
    key: string,
  ): Promise<{ readonly jobIds: readonly string[] }> {
    const fields = headers();
    fields.set('Authorization', `Bearer ${this.cluster.adminToken}`);
    fields.set('Idempotency-Key', key);
    const options = { headers: fields, timeout: answerTimeoutMs };
    const answer = await connection.request(this.subject, JSON.stringify({ command: 'true' }), options);
    if (answer.headers?.has('Nats-Service-Error') === true) throw new Error(answer.string());
    return answer.json();
  }
}

test(`kill -9 of NATS and of the coordinator, ${rounds} times: nothing is missing, and all is in order`, async () => {
  const chance = seededChance();
  onTestFailed(() => {
    process.stderr.write(`MUSTER_TEST_SEED=${chance.seed}\n`);
  });
  const nats = await startNats({ storeDir: tempDir('nats').path });
  const cluster = await startCluster({
    nodes: 1,
    cpus: 16,
    coordinatorFlags: ['--nats', nats.url, '--nats-submit'],
  });
  const { id: clusterId } = await cluster.api.getCluster();
  const stream = `MUSTER_${clusterId}`;
  const [submitting, consuming] = [new AbortController(), new AbortController()];
  const submits = new Submits(cluster, clusterId);
  const clients = Array.from({ length: submitters }, () =>
    submits.run(nats, chance, submitting.signal, consuming.signal),
  );
  const received: Received[] = [];
  const consumer = overOutages(
    nats,
    () => consuming.signal.aborted,
    (connection) => consume(connection, stream, consuming.signal, received),
  );
  try {
    await waitFor('a job is submitted', () => submits.jobIds.length > 0);
    const kinds = ['coordinator', 'nats', 'both'] as const;
    for (let round = 0; round < rounds; round += 1) {
      const kind = kinds[round % kinds.length];
      const before = submits.jobIds.length;
      await delay(chance.integer(0, 300));
      if (kind !== 'nats') await cluster.coordinator.kill();
      if (kind !== 'coordinator') await nats.kill('SIGKILL');
      await delay(chance.integer(0, 300));
      if (kind !== 'coordinator') await nats.restart();
      if (kind !== 'nats') await cluster.coordinator.start();
      await waitFor('jobs are submitted again', () => submits.jobIds.length > before);
    }
    submitting.abort();
    await Promise.all(clients);
    await waitFor('all jobs have ended', () => cluster.api.getCluster(), {
      until: ({ jobsActive, jobsQueued }) => jobsActive + jobsQueued === 0,
    });
    const events = await cluster.events();
    const firsts = await waitFor('every event is received', () => [...firstOfEach(received).values()], {
      until: (seen) => seen.length >= events.length,
      timeoutMs: patienceMs,
    });
    expect(firsts).toEqual(
      events.map(({ id, kind, subject, cloudEvent }) => {
        const [category, type] = kind.split('.');
        return { id, subject: `muster.${clusterId}.${category}.${subject}.${type}`, body: cloudEvent };
      }),
    );
    for (const wanted of ['job.submitted', 'job.succeeded']) {
      const jobs = events.filter(({ kind }) => kind === wanted).map(({ subject }) => subject);
      expect(jobs.sort()).toEqual([...submits.jobIds].sort());
    }
  } finally {
    submitting.abort();
    consuming.abort();
    await Promise.allSettled([consumer, ...clients]);
  }
});

/** In the order in which they came first. What comes again is the same under its id. */
function firstOfEach(received: readonly Received[]): ReadonlyMap<string, Received> {
  const firsts = new Map<string, Received>();
  for (const message of received) {
    const first = firsts.get(message.id);
    if (first === undefined) firsts.set(message.id, message);
    else expect(message).toEqual(first);
  }
  return firsts;
}
