import type { ServiceError } from '@grpc/grpc-js';
import type { TelemetryUpload } from '@muster/common/gen/muster/v1/TelemetryUpload';
import { connectMuster } from '@muster/common/wire/client';
import { gpuReadingToWire } from '@muster/common/wire/codec';
import { agentHubService } from '@muster/common/wire/service';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { hashToken } from '../auth/tokens.ts';
import {
  addCredential,
  startTestCoordinator,
  type TestCoordinator,
  withToken,
} from '../coordinatorFixture.ts';
import { nodeNameOf, someMs } from '../modelFixture.ts';
import type { ReadHistory } from '../prometheus/metricHistory.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { openAgentStream, storeNode } from '../telemetry/agentStreamFixture.ts';
import { aReading, runningJob, runningJobId, storeRunningJob } from '../telemetry/telemetryFixture.ts';

/** Of a user without a project. */
const outsiderToken = 'muster_user_eve';

let coordinator: TestCoordinator;
let readHistory: ReadHistory;
beforeEach(async () => {
  const memory = new Memory('test');
  for (const name of ['node-1', 'node-2']) storeNode(memory, name);
  storeRunningJob(memory);
  memory.users.set('eve', { name: 'eve', role: 'user', projects: [], createdAtMs: someMs });
  const secretHash = hashToken(outsiderToken);
  addCredential(memory, { id: 'user:eve:1', kind: 'user', subject: 'eve', secretHash });
  readHistory = () => Promise.resolve('there is none');
  coordinator = await startTestCoordinator({
    memory,
    pageTimeoutMs: 3_000,
    readHistory: (question, range) => readHistory(question, range),
  });
});
afterEach(() => coordinator.close());

const openTelemetry = (node: string) => openAgentStream(coordinator, node);
const now = () => coordinator.clock.wallMs();
const task = { jobId: runningJobId, attempt: 1, nodeRank: 0 };
const uploadOf = (...readings: Parameters<typeof aReading>): TelemetryUpload => ({
  gpus: readings.map((fields) => gpuReadingToWire(aReading({ atMs: now(), ...fields }))),
});
const reads = (path: string) => fetch(`${coordinator.httpUrl}${path}`);

test('what a node uploads can be asked for by job, by the beginning of its id, and by node', async () => {
  const { send } = openTelemetry('node-1');
  send(uploadOf({ task, utilization: 88, smActive: null }));
  await vi.waitFor(() => expect(coordinator.telemetry.taken).toBe(1));
  const series = { attempt: 1, nodeRank: 0, node: 'node-1', gpuUuid: 'GPU-node-1-0' };
  expect(await coordinator.api.queryMetrics({ jobId: runningJobId, name: 'gpu_utilization' })).toEqual({
    unit: 'percent',
    series: [{ ...series, points: [{ atMs: now(), value: 88 }] }],
    origin: {
      name: 'gpu_utilization',
      sources: [{ source: 'memory', fromMs: now(), toMs: now() }],
      notes: [],
    },
  });
  const prefix = runningJobId.slice(0, 8);
  expect(
    await coordinator.api.queryMetrics({ jobId: prefix, name: 'sm_active', sinceMs: 1_000 }),
  ).toMatchObject({
    unit: 'ratio',
    series: [{ ...series, points: [{ atMs: now(), value: null }] }],
  });
  const nodes = await coordinator.api.listTelemetry();
  expect(nodes.map(({ node, gpus }) => [node, gpus.map(({ utilization }) => utilization)])).toEqual([
    ['node-1', [88]],
    ['node-2', []],
  ]);
  expect(await coordinator.api.listTelemetry('node-2')).toEqual([{ node: 'node-2', host: null, gpus: [] }]);
});

test('a question that cannot be answered says why', async () => {
  const ask = (query: object) =>
    coordinator.api.queryMetrics({ jobId: runningJobId, name: 'gpu_utilization', ...query });
  expect(await ask({})).toMatchObject({ unit: 'percent', series: [], origin: { sources: [] } });
  await expect(ask({ name: 'gpu_utilisation' })).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(
      /did you mean gpu_utilization\? The metrics are gpu_utilization, .*dram_active, .*train_loss, .*step/,
    ),
  });
  await expect(ask({ name: 'x' })).rejects.toThrow(/there is no metric "x"; The metrics are/);
  await expect(ask({ jobId: 'job_zzzzzzzzzzzz' })).rejects.toMatchObject({ code: 'not_found' });
  await expect(ask({ sinceMs: -1 })).rejects.toMatchObject({ code: 'invalid' });
  await expect(coordinator.api.listTelemetry('node-9')).rejects.toMatchObject({ code: 'not_found' });
});

test('values become one by rank, job or node, and nodes and the queue have a history too', async () => {
  const agents = ['node-1', 'node-2'].map((node) => openTelemetry(node));
  const host = { intervalMs: 10_000, networkReceiveBytes: 5e9, networkTransmitBytes: 1e9 };
  for (let index = 0; index < 4; index += 1) {
    coordinator.clock.nowMs += 10_000;
    for (const [rank, agent] of agents.entries()) {
      const gpuUuid = `GPU-node-${rank + 1}-0`;
      const reading = { gpuUuid, task: { ...task, nodeRank: rank }, utilization: 40 * rank + index };
      agent.send({ ...uploadOf({ ...reading, nvlinkReceiveBytes: 12.5e9 }), host: { ...host, atMs: now() } });
    }
    await vi.waitFor(() => expect(coordinator.telemetry.taken).toBe(2 * (index + 1)));
    await coordinator.reconcile();
  }
  const ask = async (query: Parameters<typeof coordinator.api.queryMetrics>[0]) => {
    const { series } = await coordinator.api.queryMetrics(query);
    return series.map(({ points, ...of }) => [of, points.map(({ value }) => value)] as const);
  };
  const name = 'gpu_utilization';
  const none = { attempt: null, nodeRank: null, node: '', gpuUuid: '' };
  expect(await ask({ jobId: runningJobId, name, aggregation: 'max', by: 'rank' })).toMatchObject([
    [{ nodeRank: 0, node: 'node-1' }, [3]],
    [{ nodeRank: 1, node: 'node-2' }, [43]],
  ]);
  expect(await ask({ jobId: runningJobId, name, stepMs: 20_000, by: 'job', startTime: '-1m' })).toEqual([
    [{ ...none, attempt: 1 }, [20, 21.5, 23]],
  ]);
  expect(
    await ask({ node: 'node-2', name: 'nvlink_receive_bytes_per_second', aggregation: 'last' }),
  ).toMatchObject([[{ jobId: runningJobId, node: 'node-2', gpuUuid: 'GPU-node-2-0' }, [12.5e9]]]);
  expect(await ask({ project: runningJob.spec.project, name, aggregation: 'min' })).toMatchObject([
    [{ jobId: runningJobId, node: '' }, [0]],
  ]);
  expect(await ask({ project: 'other', name })).toEqual([]);
  expect(await ask({ user: runningJob.user, name: 'train_loss' })).toEqual([]);
  const ofNodes = ['node-1', 'node-2'].map((node) => [{ ...none, node }, [5e9, 5e9]]);
  expect(await ask({ name: 'network_receive_bytes_per_second' })).toEqual(ofNodes);
  expect(await ask({ name: 'network_receive_bytes_per_second', node: 'node-1' })).toEqual([ofNodes[0]]);
  expect(await ask({ jobId: runningJobId, name: 'network_receive_bytes_per_second' })).toEqual(ofNodes);
  expect(await ask({ name: 'jobs_running' })).toEqual([[none, [1, 1]]]);
  await expect(ask({ name, node: 'node-9' })).rejects.toMatchObject({ code: 'not_found' });
  const { origin } = await coordinator.api.queryMetrics({ jobId: runningJobId, name, startTime: '-1h' });
  expect(origin?.notes).toEqual(['there is none']);
});

test('what memory no longer has comes from Prometheus, and the answer says which is which', async () => {
  const asked: unknown[] = [];
  let history: Awaited<ReturnType<ReadHistory>> = 'earlier values are missing: it is away';
  readHistory = (question, range) => {
    asked.push([question, range]);
    return Promise.resolve(history);
  };
  const { send } = openTelemetry('node-1');
  const startedAtMs = now();
  coordinator.clock.nowMs += 10_000;
  send(uploadOf({ task, utilization: 80 }));
  await vi.waitFor(() => expect(coordinator.telemetry.taken).toBe(1));
  const of = { attempt: 1, nodeRank: 0, node: 'node-1', gpuUuid: 'GPU-node-1-0' };
  const query = { jobId: runningJobId, name: 'gpu_utilization', startTime: '-1h' };
  const missing = await coordinator.api.queryMetrics(query);
  expect(missing.series).toHaveLength(1);
  expect(missing.origin?.notes).toEqual([history]);
  const earlierMs = startedAtMs - 600_000;
  const bucket = { rows: 3, firstStep: null, min: 40, max: 40, last: 40 };
  history = [{ ...of, points: [{ atMs: earlierMs, value: 40, bucket }] }];
  const { series, origin } = await coordinator.api.queryMetrics(query);
  expect(series.map(({ points }) => points.map(({ value }) => value))).toEqual([[40, 80]]);
  expect(origin).toMatchObject({
    sources: [
      { source: 'prometheus', fromMs: earlierMs, toMs: earlierMs },
      { source: 'memory', fromMs: now(), toMs: now() },
    ],
    notes: [],
  });
  const mean = await coordinator.api.queryMetrics({ ...query, aggregation: 'mean' });
  expect(mean.series.map(({ points }) => points.map(({ value }) => value))).toEqual([[50]]);
  expect(asked.at(-1)).toMatchObject([
    { jobIds: [runningJobId], condensed: 'mean' },
    { fromMs: now() - 3_600_000, toMs: startedAtMs },
  ]);
  const before = asked.length;
  await coordinator.api.queryMetrics({ ...query, startTime: '-5s' });
  await coordinator.api.queryMetrics({ jobId: runningJobId, name: 'gpu_utilization' });
  await coordinator.api.queryMetrics({ ...query, name: 'train_loss' });
  expect(asked).toHaveLength(before);
});

test('of jobs of others there is nothing in an answer, however it is asked', async () => {
  const { send } = openTelemetry('node-1');
  send(uploadOf({ task, utilization: 88 }));
  await vi.waitFor(() => expect(coordinator.telemetry.taken).toBe(1));
  await coordinator.api.setProject({ name: runningJob.spec.project, isPrivate: true });
  const reader = connectMuster({ address: coordinator.address, token: outsiderToken });
  const name = 'gpu_utilization';
  for (const query of [
    {},
    { node: 'node-1' },
    { project: runningJob.spec.project },
    { user: runningJob.user },
  ])
    expect((await reader.queryMetrics({ ...query, name })).series).toEqual([]);
  await expect(reader.queryMetrics({ jobId: runningJobId, name })).rejects.toMatchObject({
    code: 'not_found',
  });
  expect((await coordinator.api.queryMetrics({ name })).series).toHaveLength(1);
  reader.close();
});

test('nothing that an agent says ends its stream', async () => {
  const { send, errors } = openTelemetry('node-1');
  send({});
  send({ gpus: [{}], host: {}, page: {} });
  send({ gpus: [{ gpuUuid: 'x'.repeat(100_000), atMs: -5, utilization: Number.NaN }] });
  send({
    gpus: [{ ...uploadOf({}).gpus?.[0], task: { jobId: '../..', attempt: 0 }, utilization: Number.NaN }],
  });
  send({ page: { pageId: 99, text: 'nobody asked' } });
  send({ gpus: Array.from({ length: 5_000 }, () => ({ gpuUuid: 'GPU-nowhere' })) });
  coordinator.clock.nowMs += 10_000;
  send(uploadOf({ utilization: 7 }));
  await vi.waitFor(async () =>
    expect((await coordinator.api.listTelemetry('node-1'))[0]?.gpus).toMatchObject([{ utilization: 7 }]),
  );
  expect(errors).toEqual([]);
});

test('a node that sends too much is left waiting, and served again afterwards', async () => {
  const { send, errors } = openTelemetry('node-1');
  for (let index = 0; index < 300; index += 1)
    send(uploadOf({ task, atMs: now() + index, utilization: index % 100 }));
  await vi.waitFor(() => expect(coordinator.telemetry.dropped.too_fast).toBeGreaterThan(0));
  const { taken } = coordinator.telemetry;
  expect(taken).toBeLessThan(150);
  coordinator.clock.nowMs += 600_000;
  await vi.waitFor(() => expect(coordinator.telemetry.taken).toBeGreaterThan(taken));
  expect(errors).toEqual([]);
});

test('what is refused is counted as well, over all streams of a node', async () => {
  const flood = openTelemetry('node-1');
  const tooLong = { gpus: Array.from({ length: 1_025 }, () => ({})) };
  for (let index = 0; index < 200; index += 1) flood.send(tooLong);
  // Nothing is left of what the node may say when another stream of it is heard.
  const other = openTelemetry('node-1');
  await vi.waitFor(() => {
    other.send(uploadOf({ task }));
    expect(coordinator.telemetry.dropped.too_fast).toBeGreaterThan(0);
  });
  expect(coordinator.telemetry.taken).toBeLessThan(120);
});

test('only agents send telemetry', async () => {
  const { path, requestSerialize, responseDeserialize } = agentHubService.UploadTelemetry;
  const call = coordinator
    .client()
    .makeBidiStreamRequest(path, requestSerialize, responseDeserialize, withToken(coordinator.adminToken));
  const refused = new Promise<ServiceError>((resolve) => call.once('error', resolve));
  call.write({});
  expect((await refused).details).toMatch(/may not call/);
});

test("a node's page is fetched over its stream", async () => {
  const agent = openTelemetry('node-1');
  await vi.waitFor(() => expect(coordinator.pages.connected).toBe(1));
  const both = [reads('/nodes/node-1/metrics'), reads('/nodes/node-1/metrics')];
  await vi.waitFor(() => expect(agent.asked).toHaveLength(1));
  agent.send({ page: { pageId: agent.asked[0] ?? 0, text: 'up 1\n' } });
  for (const answer of await Promise.all(both)) {
    expect(answer.headers.get('content-type')).toContain('version=0.0.4');
    expect([answer.status, await answer.text()]).toEqual([200, 'up 1\n']);
  }
});

test('a node that cannot be asked or does not answer is down, and the page says why', async () => {
  const away = await reads('/nodes/node-2/metrics');
  expect([away.status, await away.text()]).toEqual([503, expect.stringMatching(/node-2 is not connected/)]);
  const silent = openTelemetry('node-1');
  await vi.waitFor(() => expect(coordinator.pages.connected).toBe(1));
  const late = await reads('/nodes/node-1/metrics');
  expect([late.status, await late.text()]).toEqual([504, expect.stringMatching(/node-1 did not send/)]);
  const cut = reads('/nodes/node-1/metrics');
  await vi.waitFor(() => expect(silent.asked).toHaveLength(2));
  silent.cancel();
  expect((await cut).status).toBe(503);
});

test('an agent that connects anew is asked on its new stream, and its old one is history', async () => {
  const older = openTelemetry('node-1');
  await vi.waitFor(() => expect(coordinator.pages.connected).toBe(1));
  const page = reads('/nodes/node-1/metrics');
  await vi.waitFor(() => expect(older.asked).toHaveLength(1));
  const newer = openTelemetry('node-1');
  await vi.waitFor(() => expect(newer.asked).toEqual(older.asked));
  older.send({ page: { pageId: 1, text: 'old 1\n' }, ...uploadOf({ task }) });
  newer.send({ page: { pageId: 1, text: 'new 1\n' } });
  expect(await (await page).text()).toBe('new 1\n');
  expect(coordinator.telemetry.newest(nodeNameOf('node-1')).gpus).toEqual([]);
});
