/** The relay and the servers of an operator: accounts with credentials files, and a cluster of three with copies of the stream. */
import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, nkeys } from '@nats-io/transport-node';
import { afterEach, expect, test } from 'vitest';
import {
  clusterId,
  EventLog,
  messagesUpToDate,
  RecordingLog,
  streamName,
  withStreams,
} from '../../../../test/support/natsRelay.ts';
import { freePort, type NatsServer, startNats, tempDir, waitFor } from '../../../../test/support/services.ts';
import { trialsOf } from '../../../../test/support/trials.ts';
import { openSqliteStore } from '../store/sqlite/sqliteStore.ts';
import { startNatsRelay } from './natsRelay.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** @returns the events that it relays, and what it logs */
function relayTo(url: string, credentials: string | null, replicas: number) {
  const store = openSqliteStore(tempDir('relay').path, () => clusterId);
  closers.push(() => store.close());
  const log = new EventLog(store);
  const logged = new RecordingLog();
  const relay = startNatsRelay(url, {
    clusterId,
    store,
    committed: log.committed,
    credentials,
    settings: { ca: null, replicas },
    log: logged,
  });
  closers.push(() => relay.close());
  return { log, logged };
}

type Signer = ReturnType<typeof nkeys.createUser>;

const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A JWT as `nsc` makes it. */
function token(subject: Signer, signer: Signer, claims: object): string {
  const [sub, iss] = [subject.getPublicKey(), signer.getPublicKey()];
  const payload = { jti: sub, iat: 1_700_000_000, iss, sub, name: 'muster', nats: { version: 2, ...claims } };
  const signed = `${encoded({ typ: 'JWT', alg: 'ed25519-nkey' })}.${encoded(payload)}`;
  return `${signed}.${Buffer.from(signer.sign(Buffer.from(signed))).toString('base64url')}`;
}

const unlimited = { subs: -1, data: -1, payload: -1 };
const accountLimits = {
  ...unlimited,
  imports: -1,
  exports: -1,
  wildcards: true,
  conn: -1,
  leaf: -1,
  mem_storage: -1,
  disk_storage: -1,
  streams: -1,
  consumer: -1,
};

test('a credentials file of an account of an operator lets the relay in, and one of another operator does not', async () => {
  const operator = nkeys.createOperator();
  const [system, account] = [nkeys.createAccount(), nkeys.createAccount()];
  const ofAccount = (each: Signer, limits: object) => token(each, operator, { type: 'account', limits });
  const server = await startNats({
    storeDir: tempDir('nats').path,
    config: `operator: ${token(operator, operator, { type: 'operator' })}
system_account: ${system.getPublicKey()}
resolver: MEMORY
resolver_preload {
  ${system.getPublicKey()}: ${ofAccount(system, { ...unlimited, conn: -1, leaf: -1 })}
  ${account.getPublicKey()}: ${ofAccount(account, accountLimits)}
}
`,
  });
  const credentialsBy = (signer: Signer) => {
    const user = nkeys.createUser();
    const jwt = token(user, signer, { type: 'user', ...unlimited, pub: {}, sub: {} });
    return `-----BEGIN NATS USER JWT-----
${jwt}
------END NATS USER JWT------

-----BEGIN USER NKEY SEED-----
${textOf(user.getSeed())}
------END USER NKEY SEED------
`;
  };
  const foreign = relayTo(server.url, credentialsBy(nkeys.createAccount()), 1);
  const member = relayTo(server.url, credentialsBy(account), 1);
  await waitFor('one is refused', () => foreign.logged.warnings().length > 0);
  await waitFor('the other gets in', () =>
    member.logged.lines.some(({ message }) => message === 'events reach NATS'),
  );
  expect(foreign.logged.lines).toMatchObject([
    { fields: { error: expect.stringMatching(/authorization/i) } },
  ]);
});

/** Servers of one cluster. */
async function startThree(): Promise<readonly NatsServer[]> {
  const routes = await Promise.all([1, 2, 3].map(() => freePort()));
  const servers: NatsServer[] = [];
  for (const [index, port] of routes.entries()) {
    const others = routes.filter((each) => each !== port).map((each) => `nats://127.0.0.1:${each}`);
    const config = `server_name: s${index}
cluster { name: three, listen: "127.0.0.1:${port}", routes: [${others.join(', ')}] }
`;
    servers.push(await startNats({ storeDir: tempDir(`nats-${index}`).path, config }));
  }
  return servers;
}

const addressesOf = (servers: readonly NatsServer[]) => servers.map(({ url }) => url).join(',');
// Before that the servers may have no leader yet, and leave requests unanswered.
const untilReached = ({ lines }: RecordingLog) =>
  waitFor('events reach NATS', () => lines.some(({ message }) => message === 'events reach NATS'));

test('in a cluster of three the stream has as many copies as asked for', async () => {
  const servers = await startThree();
  const { log, logged } = relayTo(addressesOf(servers), null, 3);
  await log.append(40);
  const [, second] = servers;
  if (second === undefined) throw new Error('there are three');
  await untilReached(logged);
  const info = await withStreams(second, (manager) => manager.streams.info(streamName));
  expect(info.config.num_replicas).toBe(3);
  expect(info.cluster?.replicas).toHaveLength(2);
  const ids = (await messagesUpToDate(second, log)).map(({ id }) => id);
  expect(ids).toEqual(log.events.map(({ id }) => id));
});

/** What a durable consumer gets until it has the last event, through whichever server answers. */
async function consumeAll(servers: readonly NatsServer[], log: EventLog, received: string[]): Promise<void> {
  const timeout = 2_000;
  const lastId = log.events.at(-1)?.id;
  const consume = async () => {
    const addresses = servers.map(({ url }) => url.replace('nats://', ''));
    const connection = await connect({ servers: addresses, reconnect: false, timeout });
    try {
      const manager = await jetstreamManager(connection, { timeout });
      await manager.consumers.add(streamName, {
        durable_name: 'checker',
        ack_policy: AckPolicy.Explicit,
        // With more of them, what was under way at a kill would come after what followed it.
        max_ack_pending: 1,
      });
      const consumer = await jetstream(connection, { timeout }).consumers.get(streamName, 'checker');
      while (received.at(-1) !== lastId) {
        const message = await consumer.next({ expires: timeout });
        if (message === null) return;
        received.push(message.headers?.get('Nats-Msg-Id') ?? '');
        await message.ackAck();
      }
    } finally {
      await connection.close();
    }
  };
  // While the servers choose a leader they answer nobody.
  await waitFor(`the consumer has ${lastId}`, () => consume().then(() => received.at(-1)), {
    until: (seen) => seen === lastId,
  });
}

/** Every other time it leads the stream. */
const serverKills = trialsOf(6, 1);

test(`of a cluster of three one server is killed, ${serverKills} times: a durable consumer gets every event, in order`, async () => {
  const servers = await startThree();
  const { log, logged } = relayTo(addressesOf(servers), null, 3);
  await log.append(20);
  await untilReached(logged);
  const received: string[] = [];
  await consumeAll(servers, log, received);
  for (let kill = 0; kill < serverKills; kill += 1) {
    const leader = await waitFor('the stream has a leader', () => leaderOf(servers));
    const at = servers.indexOf(leader);
    const victim = kill % 2 === 0 ? leader : servers[(at + 1) % servers.length];
    await victim?.kill('SIGKILL');
    await log.append(20);
    await consumeAll(servers, log, received);
    await victim?.restart();
    await log.append(20);
  }
  await consumeAll(servers, log, received);
  // What was not acknowledged before a kill comes again.
  expect([...new Set(received)]).toEqual(log.events.map(({ id }) => id));
});

/** @throws {Error} while it has none */
async function leaderOf(servers: readonly NatsServer[]): Promise<NatsServer> {
  const [first] = servers;
  if (first === undefined) throw new Error('there are three');
  const { cluster } = await withStreams(first, (manager) => manager.streams.info(streamName));
  const leader = servers.find((_, index) => `s${index}` === cluster?.leader);
  if (leader === undefined) throw new Error(`${cluster?.leader} leads`);
  return leader;
}
