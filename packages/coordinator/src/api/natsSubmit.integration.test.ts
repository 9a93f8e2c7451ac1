/** Submits through a real NATS: what clients are answered, and what they cannot do. */

import { execFile } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect as connectTo, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { silentLogger } from '@muster/common/log';
import type { Role, TokenBudget } from '@muster/common/people';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, headers, type Msg, type NatsConnection } from '@nats-io/transport-node';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RecordingLog } from '../../../../test/support/natsRelay.ts';
import { patienceMs } from '../../../../test/support/patience.ts';
import { type NatsServer, startNats, tempDir, waitFor } from '../../../../test/support/services.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { startNatsRelay } from '../events/natsRelay.ts';
import { ask } from './apiFixture.ts';
import { type RunningNatsSubmit, requestsMax, startNatsSubmit } from './natsSubmit.ts';
import type { ProblemDetails } from './problems.ts';

const spec = { name: 'train', command: ['true'] };
const serving = 'submits are taken through NATS';

let coordinator: TestCoordinator;
const closers: (() => unknown)[] = [];
beforeEach(async () => {
  coordinator = await startTestCoordinator({ api: {} });
  closers.push(() => coordinator.close());
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function aServer(config = ''): Promise<NatsServer> {
  return startNats({ storeDir: tempDir('nats').path, config });
}

type Calls = Parameters<typeof startNatsSubmit>[1]['calls'];

/** Between clients and a NATS: ends connections on which it sees `text`, for as long as `isCutting`. */
async function cutting(server: NatsServer, text: string) {
  const port = Number(new URL(server.url).port);
  const proxied = { isCutting: true, cuts: 0, url: '' };
  const proxy = createServer((near) => {
    const far = connectTo(port, '127.0.0.1');
    near.on('error', () => far.destroy()).on('close', () => far.destroy());
    far.on('error', () => near.destroy()).on('close', () => near.destroy());
    far.pipe(near);
    near.on('data', (chunk: Buffer) => {
      if (!proxied.isCutting || !chunk.includes(text)) {
        far.write(chunk);
        return;
      }
      proxied.cuts += 1;
      near.destroy();
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  closers.push(() => proxy.close());
  proxied.url = `nats://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return proxied;
}

function start(
  server: Pick<NatsServer, 'url'>,
  log: RecordingLog,
  calls: Calls = coordinator.musterCalls,
): RunningNatsSubmit {
  let requests = 0;
  const running = startNatsSubmit(server.url, {
    clusterId: coordinator.state.clusterId,
    gate: coordinator.gate,
    calls,
    credentials: null,
    ca: null,
    newRequestId: () => `nats-${++requests}`,
    log,
  });
  closers.push(() => running.close());
  return running;
}

const linesOf = (log: RecordingLog, message: string) => log.lines.filter((line) => line.message === message);

async function served(config = '', calls?: Calls) {
  const server = await aServer(config);
  const log = new RecordingLog();
  const running = start(server, log, calls);
  await waitFor('submits are taken', () => linesOf(log, serving).length > 0);
  return { server, running, client: await clientOf(server) };
}

/** Calls that wait to be carried out until they are released. */
function heldCalls() {
  const released = Promise.withResolvers<void>();
  let held = 0;
  const { Submit } = coordinator.musterCalls;
  const calls: Calls = {
    Submit: {
      handle: async (request, caller) => {
        held += 1;
        await released.promise;
        return Submit.handle(request, caller);
      },
    },
  };
  return { calls, held: () => held, release: () => released.resolve() };
}

async function clientOf(server: NatsServer): Promise<NatsConnection> {
  const client = await connect({ servers: server.url.replace('nats://', '') });
  closers.push(() => client.close());
  return client;
}

const subjectOf = () => `muster.${coordinator.state.clusterId}.submit`;

interface Shown {
  /** null: none. Default: the admin's. */
  readonly token?: string | null;
  readonly key?: string;
  readonly subject?: string;
}

function headersOf({ token = coordinator.adminToken, key }: Shown) {
  const fields = headers();
  if (token !== null) fields.set('Authorization', `Bearer ${token}`);
  if (key !== undefined) fields.set('Idempotency-Key', key);
  return fields;
}

function submit(client: NatsConnection, body: unknown, shown: Shown = {}): Promise<Msg> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const options = { timeout: patienceMs, headers: headersOf(shown) };
  return client.request(shown.subject ?? subjectOf(), text, options);
}

async function problemOfSubmit(
  client: NatsConnection,
  body: unknown,
  shown: Shown = {},
): Promise<ProblemDetails> {
  const answer = await submit(client, body, shown);
  const problem = answer.json<ProblemDetails>();
  expect(answer.headers?.get('Content-Type')).toBe('application/problem+json; charset=utf-8');
  expect(answer.headers?.get('Nats-Service-Error-Code')).toBe(String(problem.status));
  return problem;
}

const unlimited: TokenBudget = { gpuHours: null, gpus: null, jobs: null, jobsTotal: null, priority: null };

async function tokenOf(role: Role): Promise<string> {
  const { api } = coordinator;
  await api.addUser({ name: 'ann', role, projects: [] });
  return (await api.createUserToken({ user: 'ann', label: 'nats', projects: [], verbs: [] })).token;
}

test('a request is answered as HTTP answers it, and its event says by whom and how', async () => {
  const { client } = await served();
  const token = await tokenOf('user');
  const answer = await submit(client, spec, { token });
  const { json } = await ask(coordinator, 'POST /jobs', { body: spec });
  expect(answer.headers?.get('Content-Type')).toBe('application/json; charset=utf-8');
  expect(Object.keys(answer.json())).toEqual(Object.keys(json as object));
  const [jobId = ''] = answer.json<{ readonly jobIds: readonly string[] }>().jobIds;
  expect(await coordinator.api.getJob(jobId)).toMatchObject({ user: 'ann', spec: { name: 'train' } });
  const event = [...coordinator.memory.events.values()].find(({ subject }) => subject === jobId);
  expect(event).toMatchObject({
    kind: 'job.submitted',
    by: expect.stringMatching(/^user:ann:/),
    peer: 'nats',
  });
});

test('without a token, and with one that is unknown or has expired, nothing is looked at', async () => {
  const { client } = await served();
  const expiring = await tokenOf('user');
  expect(await problemOfSubmit(client, '{', { token: null })).toMatchObject({ status: 401 });
  expect(await problemOfSubmit(client, spec, { token: 'muster_user_guess' })).toMatchObject({ status: 401 });
  const { expiresAtMs } = (await coordinator.api.listCredentials()).find(({ user }) => user === 'ann') ?? {};
  coordinator.clock.nowMs += (expiresAtMs ?? expect.fail('it never expires')) - coordinator.clock.wallMs();
  const refused = await problemOfSubmit(client, spec, { token: expiring });
  expect(refused).toMatchObject({ status: 401, code: 'unauthenticated' });
  expect(refused.detail).toMatch(/expired/);
  expect(coordinator.state.jobs.size).toBe(0);
});

test('a viewer is refused, and so is what a budget does not allow, with the figure', async () => {
  const { client } = await served();
  const token = await tokenOf('viewer');
  expect(await problemOfSubmit(client, spec, { token })).toMatchObject({
    status: 403,
    code: 'permission_denied',
    detail: expect.stringContaining('role viewer'),
  });
  await coordinator.api.changeUser('ann', { role: 'user' });
  const request = { user: 'ann', label: 'agent', projects: [], verbs: [] };
  const limited = await coordinator.api.createUserToken({ ...request, budget: { ...unlimited, gpus: 4 } });
  const refused = await problemOfSubmit(
    client,
    { ...spec, resources: { gpus: 5 } },
    { token: limited.token },
  );
  expect(refused).toMatchObject({ status: 429, code: 'resource_exhausted' });
  expect(refused.detail).toContain('4 GPUs at a time: 5 asked for');
  expect(coordinator.state.jobs.size).toBe(0);
});

test('a wrong spec is refused with its problems and their places, as HTTP does it', async () => {
  const { client } = await served();
  for (const body of [{ ...spec, priorty: 3, resources: { gpus: -1 } }, '{', '[]', '']) {
    const { json } = await ask(coordinator, 'POST /jobs', { body });
    expect(await problemOfSubmit(client, body)).toEqual(json);
  }
  expect(coordinator.state.jobs.size).toBe(0);
});

test('a request that is repeated with its key makes one job, also through HTTP', async () => {
  const { client } = await served();
  const first = (await submit(client, spec, { key: 'r1' })).json<object>();
  const again = (await submit(client, spec, { key: 'r1' })).json<object>();
  const byHttp = await ask(coordinator, 'POST /jobs', { body: spec, headers: { 'idempotency-key': 'r1' } });
  expect(first).toMatchObject({ repeatedRequest: false });
  expect(again).toEqual({ ...first, repeatedRequest: true });
  expect(byHttp.json).toEqual(again);
  expect(await problemOfSubmit(client, { ...spec, name: 'other' }, { key: 'r1' })).toMatchObject({
    status: 409,
  });
  expect(coordinator.state.jobs.size).toBe(1);
});

test('a payload that is too large is refused, by us or by NATS, and nobody else notices', async () => {
  const { client } = await served('max_payload: 4MB');
  const large = JSON.stringify({ ...spec, env: { A: 'x'.repeat(2 * 1024 * 1024) } });
  expect(await problemOfSubmit(client, large)).toMatchObject({ status: 413, code: 'invalid_argument' });
  const refusedByNats = submit(client, 'x'.repeat(5 * 1024 * 1024));
  await expect(refusedByNats).rejects.toThrow(/payload/i);
  expect((await submit(client, spec)).json()).toMatchObject({ jobIds: [expect.any(String)] });
});

test('of 1,000 requests at once so many are carried out, and the others are told to come again', async () => {
  const { calls, held, release } = heldCalls();
  const { client } = await served('', calls);
  let refused = 0;
  const answers = Array.from({ length: 1_000 }, async (_, index) => {
    const answer = await submit(client, spec, { key: `r${index}` });
    if (answer.headers?.has('Nats-Service-Error') === true) refused += 1;
    return answer;
  });
  await waitFor('the others are refused', () => refused, { until: (seen) => seen === 1_000 - requestsMax });
  expect(held()).toBe(requestsMax);
  release();
  const problems = (await Promise.all(answers)).map((each) => each.json<Partial<ProblemDetails>>());
  expect(problems.filter(({ code }) => code === 'resource_exhausted')).toHaveLength(1_000 - requestsMax);
  expect(coordinator.state.jobs.size).toBe(requestsMax);
  expect((await submit(client, spec)).json()).toMatchObject({ jobIds: [expect.any(String)] });
});

test('requests under way are answered before the end', async () => {
  const { calls, held, release } = heldCalls();
  const { client, running } = await served('', calls);
  const answer = submit(client, spec);
  await waitFor('it is under way', () => held() === 1);
  const closed = running.close();
  release();
  expect((await answer).json()).toMatchObject({ jobIds: [expect.any(String)] });
  await closed;
});

test('the reply goes to inboxes only, so a request cannot forge events or call JetStream', async () => {
  const { client, server } = await served();
  const { clusterId } = coordinator.state;
  const relay = startNatsRelay(server.url, {
    clusterId,
    store: coordinator.store,
    committed: coordinator.committed,
    credentials: null,
    settings: { ca: null, replicas: 1 },
    log: silentLogger,
  });
  closers.push(() => relay.close());
  const manager = await jetstreamManager(client, { timeout: patienceMs });
  const stream = `MUSTER_${clusterId}`;
  await waitFor('the stream is there', () => manager.streams.info(stream).catch(() => null));
  for (const reply of [`muster.${clusterId}.job.job_000000000000.failed`, `$JS.API.STREAM.DELETE.${stream}`])
    client.publish(subjectOf(), JSON.stringify(spec), { reply, headers: headersOf({}) });
  client.publish(subjectOf(), JSON.stringify(spec), { headers: headersOf({}) });
  // Those before it were looked at by the time that it is answered.
  await submit(client, spec);
  expect(coordinator.state.jobs.size).toBe(1);
  const sent = coordinator.state.lastEventSeq;
  const { state } = await waitFor('the event is there', () => manager.streams.info(stream), {
    until: (seen) => seen.state.messages >= sent,
  });
  expect(state.messages).toBe(sent);
});

test('a stream that would keep requests with their tokens is noticed, and left alone', async () => {
  const server = await aServer();
  const client = await clientOf(server);
  const { clusterId } = coordinator.state;
  const manager = await jetstreamManager(client);
  await manager.streams.add({ name: 'ALL', subjects: [`muster.${clusterId}.>`] });
  const log = new RecordingLog();
  start(server, log);
  await waitFor('it is refused', () => log.warnings().length > 0);
  expect(log.warnings()[0]?.fields).toMatchObject({
    error: expect.stringContaining(`nats stream edit ALL --subjects 'muster.${clusterId}.*.*.*'`),
  });
  await manager.streams.update('ALL', { subjects: [`muster.${clusterId}.*.*.*`] });
  await waitFor('submits are taken', () => linesOf(log, serving).length > 0);
  expect(log.warnings()).toHaveLength(1);
});

test('requests are taken again after NATS was killed, and not after the end', async () => {
  const server = await aServer();
  const log = new RecordingLog();
  const running = start(server, log);
  await waitFor('submits are taken', () => linesOf(log, serving).length === 1);
  await server.kill('SIGKILL');
  await waitFor('the outage is logged', () => log.warnings().length === 1);
  await server.restart();
  await waitFor('submits are taken again', () => linesOf(log, serving).length === 2);
  const client = await clientOf(server);
  expect((await submit(client, spec)).json()).toMatchObject({ jobIds: [expect.any(String)] });
  await running.close();
  await expect(submit(client, spec)).rejects.toThrow(/no responders/i);
});

test('nobody answers for another cluster, and nobody at all unless it is switched on', async () => {
  const { client } = await served();
  await expect(submit(client, spec, { subject: 'muster.c0ffee.submit' })).rejects.toThrow(/no responders/i);
  const without = await clientOf(await aServer());
  await expect(submit(without, spec)).rejects.toThrow(/no responders/i);
});

test('credentials that may not subscribe are told, and tokens take no network without TLS', async () => {
  const server = await aServer(
    `authorization { users: [ { user: a, password: b, permissions: { publish: ">", subscribe: "_INBOX.>" } } ] }`,
  );
  const log = new RecordingLog();
  const url = server.url.replace('nats://', 'nats://a:b@');
  start({ ...server, url }, log);
  await waitFor('it is refused', () => log.warnings().length > 0);
  expect(JSON.stringify(log.warnings())).toMatch(/subscri/i);
  expect(() => start({ ...server, url: 'nats://nats.lan:4222' }, log)).toThrow(/without TLS beyond loopback/);
});

test('the program of docs/http.md submits as it stands', async () => {
  const { server } = await served();
  const root = join(import.meta.dirname, '../../../..');
  const page = readFileSync(join(root, 'docs/http.md'), 'utf8');
  const program = /^```js\n(.*?)^```$/ms.exec(page)?.[1] ?? expect.fail('the page has no program');
  const folder = tempDir('submit').path;
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'submit.mjs'), program);
  const args = [join(folder, 'submit.mjs'), server.url, coordinator.state.clusterId, coordinator.adminToken];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(JSON.parse(stdout)).toMatchObject({ jobIds: [expect.any(String)], repeatedRequest: false });
});

test('a connection that is lost before the subscription is confirmed is made again, and does not hold up the end', async () => {
  const server = await aServer();
  const cut = await cutting(server, `SUB ${subjectOf()} `);
  const log = new RecordingLog();
  const running = start(cut, log);
  await waitFor('several connections are lost', () => cut.cuts >= 2);
  cut.isCutting = false;
  await waitFor('submits are taken', () => linesOf(log, serving).length > 0);
  expect((await submit(await clientOf(server), spec)).json()).toMatchObject({ jobIds: [expect.any(String)] });
  await running.close();

  cut.isCutting = true;
  const another = start(cut, log);
  const before = cut.cuts;
  await waitFor('another connection is lost', () => cut.cuts > before);
  await another.close();
});
