import type { Client, ServiceError } from '@grpc/grpc-js';
import type { LogUpload } from '@muster/common/gen/muster/v1/LogUpload';
import type { LogUploadAck__Output } from '@muster/common/gen/muster/v1/LogUploadAck';
import type { JobId, TaskRef } from '@muster/common/ids';
import { musterVersion } from '@muster/common/version';
import { gpuUsage as gpuUsageWire } from '@muster/common/wire/codec';
import { protocolVersion, protocolVersionMin } from '@muster/common/wire/protocol';
import { agentHubService } from '@muster/common/wire/service';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startTestCoordinator, type TestCoordinator, withToken } from '../coordinatorFixture.ts';
import { aGpuUsage, nodeNameOf } from '../modelFixture.ts';
import * as agentFixture from './agentFixture.ts';
import { credentialOf, helloMessage, inventory } from './agentFixture.ts';

let coordinator: TestCoordinator;
let client: Client;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
  client = coordinator.client();
});
afterEach(() => coordinator.close());

const join = (trade: agentFixture.Trade, bearer = trade.joinToken) =>
  agentFixture.join(client, trade, bearer);
const joined = (nodeName: string) => agentFixture.joined(coordinator, client, nodeName);
const openSession = (token: string) => agentFixture.openSession(client, token);
const connected = (nodeName = 'node-1') => agentFixture.connected(coordinator, client, nodeName);

async function submitted(spec: object = {}): Promise<JobId> {
  const specJson = JSON.stringify({ name: 'train', command: ['true'], ...spec });
  const { jobIds } = await coordinator.api.submit({
    specJson,
    requestId: `r${coordinator.state.lastSubmitSeq}`,
  });
  return jobIds[0] as JobId;
}

test('a join token is traded once, and the same trade may be repeated', async () => {
  const { token } = await coordinator.api.createJoinToken('node-1');
  const trade = { nodeName: 'node-1', credential: credentialOf('a'), joinToken: token };
  expect(await join(trade)).toEqual({ clusterId: 'test' });
  expect(await join(trade)).toEqual({ clusterId: 'test' });
  await expect(join({ ...trade, credential: credentialOf('b') })).rejects.toThrow(/was used already/);
  await expect(coordinator.api.createJoinToken('node-1')).rejects.toThrow(/has joined already/);
});

test('a token is good for its own node, and only join tokens are traded', async () => {
  const { token } = await coordinator.api.createJoinToken('node-1');
  const { token: other } = await coordinator.api.createJoinToken('node-2');
  const trade = { nodeName: 'node-1', credential: credentialOf('a'), joinToken: token };
  await expect(join({ ...trade, nodeName: 'node-2' })).rejects.toMatchObject({ code: 'permission_denied' });
  for (const joinToken of [other, coordinator.adminToken, 'guess'])
    await expect(join({ ...trade, joinToken }, token)).rejects.toMatchObject({ code: 'unauthenticated' });
  await expect(join({ ...trade, credential: 'short' })).rejects.toMatchObject({ code: 'invalid' });
  expect([...coordinator.state.credentials.values()].map((each) => each.usedFor)).toEqual([null, null, null]);
});

test('a credential that another node has is refused, and the coordinator goes on', async () => {
  const credential = await joined('node-1');
  const { token } = await coordinator.api.createJoinToken('node-2');
  const copied = join({ nodeName: 'node-2', credential, joinToken: token });
  await expect(copied).rejects.toThrow(
    /belongs to another node: each agent needs a data directory of its own/,
  );
  expect(coordinator.fatal).toEqual([]);
  expect((await coordinator.api.getCluster()).id).toBe('test');
});

test('a session of another protocol, or that does not begin with Hello, is refused with its reason', async () => {
  const token = await joined('node-1');
  const newer = openSession(token);
  newer.send(helloMessage({ protocolVersion: 9 }));
  await vi.waitFor(() =>
    expect(newer.errors[0]?.details).toMatch(
      /uses protocol 9, and this coordinator 2 and 3: upgrade the coordinator/,
    ),
  );
  const older = openSession(token);
  older.send(helloMessage({ protocolVersion: 1 }));
  await vi.waitFor(() => expect(older.errors[0]?.details).toMatch(/uses protocol 1, .*: upgrade the agent/));
  const rude = openSession(token);
  rude.send({ heartbeat: { seq: 1, sentBoottimeMs: 0, observed: [] } });
  await vi.waitFor(() => expect(rude.errors[0]?.details).toBe('a session begins with Hello'));
});

test('an agent that is two minor versions ahead is refused, with both versions', async () => {
  const [major, minor] = musterVersion.split('.').map(Number);
  const ahead = (versions: number) => `${major}.${Number(minor) + versions}.0`;
  const session = openSession(await joined('node-1'));
  session.send(helloMessage({ agentVersion: ahead(2) }));
  await vi.waitFor(() =>
    expect(session.errors[0]?.details).toBe(
      `the agent of node-1 has version ${ahead(2)}, and this coordinator ${musterVersion}; they may differ by one minor version: ` +
        'upgrade the coordinator; the agent reconnects automatically then',
    ),
  );
  const near = openSession(await joined('node-2'));
  near.send(helloMessage({ agentVersion: ahead(1) }));
  await vi.waitFor(() => expect(near.received[0]?.welcome).toBeDefined());
});

test.each([protocolVersionMin, protocolVersion])(
  'an agent that uses protocol %i is welcome',
  async (spoken) => {
    const session = openSession(await joined('node-1'));
    session.send(helloMessage({ protocolVersion: spoken }));
    await vi.waitFor(() => expect(session.received[0]?.welcome).toBeDefined());
    expect(session.errors).toEqual([]);
  },
);

test('a Hello that is sent twice opens one session', async () => {
  const { received, send, errors } = await connected();
  send(helloMessage());
  send({ heartbeat: { seq: 7, sentBoottimeMs: 0, observed: [] } });
  const wallMs = coordinator.clock.wallMs();
  await vi.waitFor(() => expect(received.at(-1)?.heartbeatAck).toMatchObject({ seq: 7, wallMs }));
  expect(received).toHaveLength(2);
  expect(errors).toEqual([]);
});

test('a connection that breaks while its Hello is being stored does not pass for connected', async () => {
  const token = await joined('node-1');
  const session = openSession(token);
  let letGo = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const run = coordinator.loop.run.bind(coordinator.loop);
  const spy = vi
    .spyOn(coordinator.loop, 'run')
    .mockImplementation((by, command) => held.then(() => run(by, command)));
  session.send(helloMessage());
  await vi.waitFor(() => expect(spy).toHaveBeenCalled());
  session.cancel();
  // The end of the stream has reached the coordinator once a later call on the same connection is answered.
  await vi.waitFor(() => expect(session.errors).toHaveLength(1));
  await coordinator.api.getCluster();
  await new Promise((resolve) => setTimeout(resolve, 50));
  letGo();
  await vi.waitFor(async () => expect((await coordinator.api.listNodes())[0]?.name).toBe('node-1'));
  expect(coordinator.agents.isOnline(nodeNameOf('node-1'))).toBe(false);
});

test('a job goes from assignment over preparation and release to its recorded end', async () => {
  const { received, send } = await connected();
  const jobId = await submitted({ resources: { gpus: 1 } });
  const task = { jobId, attempt: 1, nodeRank: 0 };
  await vi.waitFor(() =>
    expect(received.at(-1)?.prepare).toMatchObject({ task, gpuUuids: ['GPU-a-0'], start: null }),
  );
  send({ prepared: { task, master: { addr: '127.0.0.1', port: 29_500 } } });
  await vi.waitFor(() => expect(received.at(-1)?.start).toMatchObject({ task, masterPort: 29_500 }));
  send({ report: { task, state: 'TASK_STATE_RUNNING' } });
  const gpuUsage = aGpuUsage();
  send({
    report: {
      task,
      state: 'TASK_STATE_ENDED',
      exit: { exitCode: 0, gpuUsage: gpuUsageWire.toWire(gpuUsage) },
    },
  });
  await vi.waitFor(() => expect(received.at(-1)?.forget).toEqual({ task }));
  const job = await coordinator.api.getJob(jobId);
  expect(job.state).toBe('succeeded');
  expect(job.attempts).toMatchObject([{ gpuUsage, tasks: [{ exit: { gpuUsage } }] }]);
  send({ heartbeat: { seq: 1, sentBoottimeMs: 0, observed: [{ task, state: 'TASK_STATE_ENDED' }] } });
  await vi.waitFor(() =>
    expect(received.at(-1)?.heartbeatAck?.verdicts).toEqual([{ task, verdict: 'VERDICT_FORGET' }]),
  );
});

test('a job that ended while its agent was away has ended then, whatever the clock of its node says', async () => {
  const nodesClockMs = coordinator.clock.wallMs() - 7_200_000;
  const { received, send } = await connected();
  const jobId = await submitted({ resources: { gpus: 1 } });
  const task = { jobId, attempt: 1, nodeRank: 0 };
  await vi.waitFor(() => expect(received.at(-1)?.prepare).toBeTruthy());
  send({ prepared: { task, master: { addr: '127.0.0.1', port: 29_500 } } });
  await vi.waitFor(() => expect(received.at(-1)?.start).toBeTruthy());
  send({ report: { task, state: 'TASK_STATE_RUNNING' } });
  await vi.waitFor(async () => expect((await coordinator.api.getJob(jobId)).state).toBe('running'));
  const runningAtMs = coordinator.clock.wallMs();
  coordinator.clock.nowMs += 600_000;
  const exit = { exitCode: 0, finishedAtMs: nodesClockMs + 45_000 };
  const observed = [{ task, state: 'TASK_STATE_ENDED', exit } as const];
  send({ heartbeat: { seq: 1, sentBoottimeMs: 5, sentWallMs: nodesClockMs + 600_000, observed } });
  await vi.waitFor(async () => expect((await coordinator.api.getJob(jobId)).state).toBe('succeeded'));
  const endedAtMs = runningAtMs + 45_000;
  const { attempts, ...job } = await coordinator.api.getJob(jobId);
  expect(job).toMatchObject({ endedAtMs });
  expect(attempts).toMatchObject([
    { runningAtMs, endedAtMs, tasks: [{ exit: { finishedAtMs: endedAtMs } }] },
  ]);
});

test('what a node says of tasks that are not its own changes nothing', async () => {
  const owner = await connected('node-1');
  const jobId = await submitted({ resources: { gpus: 1 }, max_runtime: '1s' });
  await vi.waitFor(() => expect(owner.received.at(-1)?.prepare).toBeTruthy());
  const other = await connected('node-2');
  const task = { jobId, attempt: 1, nodeRank: 0 };
  const unknown = { ...task, jobId: 'job_zzzzzzzzzzzz' };
  other.send({ prepared: { task, master: { addr: '10.6.6.6', port: 666 } } });
  other.send({ report: { task, state: 'TASK_STATE_ENDED', exit: { exitCode: 0 } } });
  const observed = [task, unknown].map(
    (each) => ({ task: each, state: 'TASK_STATE_RUNNING', runningForMs: 1_000_000 }) as const,
  );
  other.send({ heartbeat: { seq: 1, sentBoottimeMs: 0, observed } });
  await vi.waitFor(() => expect(other.received.at(-1)?.heartbeatAck).toBeTruthy());
  expect(other.received.at(-1)?.heartbeatAck?.verdicts).toEqual([
    { task, verdict: 'VERDICT_FORGET' },
    { task: unknown, verdict: 'VERDICT_UNKNOWN' },
  ]);
  expect(other.received.filter((message) => message.prepare ?? message.start)).toEqual([]);
  await Promise.all(coordinator.timeLimits.run(coordinator.state, coordinator.loop));
  expect((await coordinator.api.getJob(jobId)).attempts).toMatchObject([
    { state: 'allocated', masterAddr: null },
  ]);
});

test('a GPU that is reported twice is one GPU', async () => {
  const token = await joined('node-1');
  const session = openSession(token);
  const [gpu] = inventory.gpus ?? [];
  session.send(helloMessage({ inventory: { ...inventory, gpus: gpu === undefined ? [] : [gpu, gpu] } }));
  await vi.waitFor(() => expect(session.received).toHaveLength(1));
  const jobId = await submitted({ resources: { gpus: 2 } });
  expect((await coordinator.api.getJob(jobId)).pending?.kind).toBe('never_fits');
});

test('a reboot ends what ran on the node; the boot of another machine by its name does not', async () => {
  const first = await connected();
  const jobId = await submitted({ resources: { gpus: 1 } });
  const task = { jobId, attempt: 1, nodeRank: 0 };
  await vi.waitFor(() => expect(first.received.at(-1)?.prepare).toBeTruthy());
  first.send({ prepared: { task, master: { addr: '127.0.0.1', port: 1 } } });
  first.send({ report: { task, state: 'TASK_STATE_RUNNING' } });
  await vi.waitFor(() => expect(coordinator.state.jobs.get(jobId)?.state.kind).toBe('running'));
  const second = openSession(first.token);
  second.send(helloMessage({ instanceId: 'copy', bootId: 'other' }));
  await vi.waitFor(() => expect(second.errors[0]?.details).toMatch(/node-1 is connected already/));
  first.cancel();
  await vi.waitFor(() => expect(coordinator.agents.isOnline(nodeNameOf('node-1'))).toBe(false));
  const heardMs = coordinator.agents.lastContactMs(nodeNameOf('node-1'));
  coordinator.clock.nowMs += 1_000;
  const copy = openSession(first.token);
  copy.send(helloMessage({ instanceId: 'copy', bootId: 'other' }));
  await vi.waitFor(() =>
    expect(copy.errors[0]?.details).toMatch(/has tasks that have not ended.*name.*of its own/),
  );
  expect(coordinator.state.jobs.get(jobId)?.state.kind).toBe('running');
  // The lease of the first one runs out when it would have: another machine that keeps trying must not hold its jobs for ever.
  expect(coordinator.agents.lastContactMs(nodeNameOf('node-1'))).toBe(heardMs);
  const rebooted = openSession(first.token);
  rebooted.send(helloMessage({ bootId: 'second' }));
  await vi.waitFor(() => expect(rebooted.received).not.toHaveLength(0));
  const { attempts } = await coordinator.api.getJob(jobId);
  expect(attempts[0]).toMatchObject({ state: 'ended', cause: { kind: 'node_lost' } });
});

/** Output of a task, as its agent sends it. @returns the answers, and how the stream ended */
function uploading(token: string) {
  const { path, requestSerialize, responseDeserialize } = agentHubService.UploadLogs;
  const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, withToken(token));
  const acks: LogUploadAck__Output[] = [];
  const errors: ServiceError[] = [];
  call.on('data', (ack: LogUploadAck__Output) => acks.push(ack));
  call.on('error', (error: ServiceError) => errors.push(error));
  return { acks, errors, send: (upload: LogUpload) => void call.write(upload) };
}

test('output is taken from the node that holds the task; from others it is dropped', async () => {
  const owner = await connected('node-1');
  const jobId = await submitted({ resources: { gpus: 1 } });
  await vi.waitFor(() => expect(owner.received.at(-1)?.prepare).toBeTruthy());
  const other = await connected('node-2');
  const task = { jobId, attempt: 1, nodeRank: 0 };
  const [mine, theirs] = [uploading(owner.token), uploading(other.token)];
  mine.send({ task, offset: 0, data: Buffer.from('hello'), complete: false });
  mine.send({ task, offset: 5, data: Buffer.from('!'), complete: true });
  theirs.send({ task, offset: 6, data: Buffer.from('forged'), complete: true });
  await vi.waitFor(() => expect([mine.acks.length, theirs.acks.length]).toEqual([2, 1]));
  expect(mine.acks).toMatchObject([
    { nextOffset: 5, complete: false },
    { nextOffset: 6, complete: true },
  ]);
  expect(Buffer.from(await coordinator.logs.read(task, 0, 100)).toString()).toBe('hello!');
});

test('below the reserve no output is taken: it waits, or, with an agent that cannot wait, its stream ends', async () => {
  const owner = await connected('node-1');
  const jobId = await submitted({ resources: { gpus: 1 } });
  await vi.waitFor(() => expect(owner.received.at(-1)?.prepare).toBeTruthy());
  const full = await startTestCoordinator({ reserveBytes: 2 ** 60, memory: coordinator.memory });
  try {
    client = full.client();
    const task = { jobId, attempt: 1, nodeRank: 0 };
    const piece = { task, offset: 0, data: Buffer.from('hello'), complete: false };
    const waiting = uploading(owner.token);
    waiting.send({ ...piece, waits: true });
    await vi.waitFor(() => expect(waiting.acks).toMatchObject([{ nextOffset: 0, retryAfterMs: 1_000 }]));
    const older = uploading(owner.token);
    older.send(piece);
    await vi.waitFor(() => expect(older.errors[0]?.details).toMatch(/free at least \d+ bytes/));
    expect(await full.logs.size(task)).toBe(0);
  } finally {
    await full.close();
  }
});

test('a task over its rate waits, and another one of the same node goes on; both are answered', async () => {
  const owner = await connected('node-1');
  const jobIds = [await submitted({ resources: { gpus: 0 } }), await submitted({ resources: { gpus: 0 } })];
  await vi.waitFor(() => expect(owner.received.filter(({ prepare }) => prepare)).toHaveLength(2));
  const small = await startTestCoordinator({
    memory: coordinator.memory,
    logLimits: { rateBytes: 1_000, capBytes: 8_000 },
  });
  try {
    client = small.client();
    const [noisy, quiet] = jobIds.map((jobId) => ({ jobId, attempt: 1, nodeRank: 0 })) as [TaskRef, TaskRef];
    const upload = uploading(owner.token);
    const data = Buffer.alloc(4_000, 'x');
    const send = (offset: number) =>
      upload.send({ task: noisy, offset, data, complete: false, waits: true, heldBack: true });
    for (const offset of [0, 4_000, 8_000]) send(offset);
    upload.send({ task: quiet, offset: 0, data: Buffer.from('hello'), complete: false, waits: true });
    await vi.waitFor(() => expect(upload.acks).toHaveLength(4));
    expect(upload.acks.map(({ nextOffset, retryAfterMs }) => [nextOffset, retryAfterMs > 0])).toEqual([
      [4_000, false],
      [8_000, false],
      [8_000, true],
      [5, false],
    ]);
    expect(upload.acks[1], 'beyond its first half only the end is of use').toMatchObject({
      tailBytes: 4_000,
    });
    small.clock.nowMs += 100_000;
    for (let offset = 8_000; offset < 16_000; offset += 4_000) send(offset);
    await vi.waitFor(() => expect(upload.acks.at(-1)).toMatchObject({ nextOffset: 16_000 }));
    const kinds = () =>
      [...small.memory.events.values()].map(({ kind, subject }) => `${kind} ${subject === noisy.jobId}`);
    await vi.waitFor(() => expect(kinds()).toContain('log.throttled true'));
    expect(kinds().filter((kind) => kind.startsWith('log.throttled'))).toHaveLength(1);
    await small.logs.clear(noisy.jobId, 'budget');
    expect((await small.api.explainJob(noisy.jobId)).details).toContain(
      "16000 bytes of rank 0's output were removed: the budget of logs is used up.",
    );
  } finally {
    await small.close();
  }
});

test('the output of a job is removed on request, and more of it goes on behind', async () => {
  const owner = await connected('node-1');
  const jobId = await submitted({ resources: { gpus: 1 } });
  await vi.waitFor(() => expect(owner.received.at(-1)?.prepare).toBeTruthy());
  const task = { jobId, attempt: 1, nodeRank: 0 };
  const upload = uploading(owner.token);
  upload.send({ task, offset: 0, data: Buffer.from('hello'), complete: false });
  await vi.waitFor(() => expect(upload.acks).toHaveLength(1));
  expect(await coordinator.api.removeLogs(jobId)).toEqual({ jobId, bytesFreed: 5 });
  upload.send({ task, offset: 5, data: Buffer.from('!'), complete: false });
  await vi.waitFor(() => expect(upload.acks.at(-1)).toMatchObject({ nextOffset: 6 }));
  const removal = [...coordinator.memory.events.values()].find(({ kind }) => kind === 'log.removed');
  expect(removal).toMatchObject({ subject: jobId, data: { bytes: 5, reason: 'removed' } });
  await expect(coordinator.api.removeLogs('job_zzzzzzzzzzzz')).rejects.toMatchObject({ code: 'not_found' });
});
