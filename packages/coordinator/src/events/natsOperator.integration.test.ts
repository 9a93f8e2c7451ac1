/** The relay and the servers of an operator: accounts with credentials files, and a cluster of three with copies of the stream. */
import { nkeys } from '@nats-io/transport-node';
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
  const said = new RecordingLog();
  const relay = startNatsRelay(url, {
    clusterId,
    store,
    committed: log.committed,
    credentials,
    settings: { ca: null, replicas },
    log: said,
  });
  closers.push(() => relay.close());
  return { log, said };
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
  const stranger = relayTo(server.url, credentialsBy(nkeys.createAccount()), 1);
  const member = relayTo(server.url, credentialsBy(account), 1);
  await waitFor('one is refused', () => stranger.said.warnings().length > 0);
  await waitFor('the other gets in', () =>
    member.said.lines.some(({ message }) => message === 'events reach NATS'),
  );
  expect(stranger.said.lines).toMatchObject([{ fields: { error: expect.stringMatching(/authorization/i) } }]);
});

test('in a cluster of three the stream has as many copies as asked for', async () => {
  const routes = await Promise.all([1, 2, 3].map(() => freePort()));
  const servers: NatsServer[] = [];
  for (const [index, port] of routes.entries()) {
    const others = routes.filter((each) => each !== port).map((each) => `nats://127.0.0.1:${each}`);
    const config = `server_name: s${index}
cluster { name: three, listen: "127.0.0.1:${port}", routes: [${others.join(', ')}] }
`;
    servers.push(await startNats({ storeDir: tempDir(`nats-${index}`).path, config }));
  }
  const { log, said } = relayTo(servers.map(({ url }) => url).join(','), null, 3);
  await log.append(40);
  const [, second] = servers;
  if (second === undefined) throw new Error('there are three');
  // Before that the servers may have no leader yet, and leave requests unanswered.
  await waitFor('events reach NATS', () => said.lines.some(({ message }) => message === 'events reach NATS'));
  const info = await withStreams(second, (manager) => manager.streams.info(streamName));
  expect(info.config.num_replicas).toBe(3);
  expect(info.cluster?.replicas).toHaveLength(2);
  const ids = (await messagesUpToDate(second, log)).map(({ id }) => id);
  expect(ids).toEqual(log.events.map(({ id }) => id));
});
