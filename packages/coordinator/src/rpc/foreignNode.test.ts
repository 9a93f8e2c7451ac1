/**
 * A node that was taken over tries what its certificate must not give: the tasks of another node, their output, metrics and
 * checkpoints, that node itself, and the calls of users. Over real connections with TLS.
 */
import { X509Certificate } from 'node:crypto';
import { Metadata, type MethodDefinition, type ServiceError, status } from '@grpc/grpc-js';
import type { AgentMessage } from '@muster/common/gen/muster/v1/AgentMessage';
import type { TaskRef } from '@muster/common/ids';
import {
  checkpointSeenToWire,
  conditionToWire,
  gpuReadingToWire,
  inventoryToWire,
  taskRefToWire,
  taskReportToWire,
  trainingRowToWire,
  trainingSignToWire,
} from '@muster/common/wire/codec';
import { messageType } from '@muster/common/wire/messageTypes';
import { agentHubService, musterService } from '@muster/common/wire/service';
import type { ClientIdentity } from '@muster/common/wire/trust';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { joinByCertificate, newKey, ownTls, requestFor } from '../../../../test/support/nodeKeys.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import {
  aCheckpoint,
  aCondition,
  anExit,
  anInventory,
  aReport,
  nodeNameOf,
  someGpus,
} from '../modelFixture.ts';
import { someRows } from '../rows/rowFixture.ts';
import { aReading } from '../telemetry/telemetryFixture.ts';
import { helloMessage, openSession } from './agentFixture.ts';
import { submitJob } from './jobFixture.ts';

type StreamMethod = 'UploadLogs' | 'UploadRows' | 'UploadTelemetry';

let coordinator: TestCoordinator;
/** Runs on the node that is not the intruder's. */
let task: TaskRef;
let waiting: TaskRef;
let intruder: ClientIdentity;
const victim = nodeNameOf('node-1');
const gpus = someGpus('victim', 1);

beforeAll(async () => {
  coordinator = await startTestCoordinator({ tls: ownTls });
  const identity = await joinByCertificate(coordinator, victim);
  const inventory = inventoryToWire(anInventory({ gpus }));
  const session = openSession(coordinator.client(identity), null);
  session.send(helloMessage({ inventory }));
  await vi.waitFor(() => expect(session.received[0]?.welcome).toBeTruthy());
  const specOf = (count: number, dir: string) =>
    JSON.stringify({ name: 'train', command: ['true'], resources: { gpus: count }, checkpoint: { dir } });
  task = {
    jobId: await submitJob(coordinator, 'r1', specOf(1, '/shared/checkpoints')),
    attempt: 1,
    nodeRank: 0,
  };
  await vi.waitFor(() => expect(session.received.at(-1)?.prepare?.task).toEqual(task));
  session.send({ prepared: { task, master: { addr: '127.0.0.1', port: 1 } } });
  session.send({ report: { task, state: 'TASK_STATE_RUNNING' } });
  const checkpoint = { checkpoint: aCheckpoint(10), shared: true, afterStop: false };
  session.send({ checkpoint: checkpointSeenToWire({ task, ...checkpoint }) });
  const output = openStream(identity, 'UploadLogs');
  output.send({ task, offset: 0, data: Buffer.from('mine\n') });
  const rows = openStream(identity, 'UploadRows');
  rows.send({ task: taskRefToWire(task), rows: someRows(0, 3).map(trainingRowToWire) });
  await vi.waitFor(() => expect([output.received.length, rows.received.length]).toEqual([1, 1]));
  await vi.waitFor(() => expect(coordinator.state.jobs.get(task.jobId)?.checkpoints).toHaveLength(1));
  // No node has so many GPUs.
  waiting = {
    jobId: await submitJob(coordinator, 'r2', specOf(64, '/shared/others')),
    attempt: 1,
    nodeRank: 0,
  };
  intruder = await joinByCertificate(coordinator, 'node-2');
});
afterAll(() => coordinator.close());

function openStream(identity: ClientIdentity, method: StreamMethod) {
  const { path, requestSerialize, responseDeserialize } = agentHubService[method] as MethodDefinition<
    object,
    object
  >;
  const call = coordinator
    .client(identity)
    .makeBidiStreamRequest(path, requestSerialize, responseDeserialize, new Metadata());
  const received: object[] = [];
  const errors: ServiceError[] = [];
  call.on('data', (message: object) => received.push(message));
  call.on('error', (error: ServiceError) => errors.push(error));
  return { received, errors, send: (message: object) => void call.write(message) };
}

/** All that there is of the victim: what is stored, shown and on disk. */
async function whatIsOfTheVictim() {
  const { state, memory, api, logs } = coordinator;
  const { jobId } = task;
  return {
    job: state.jobs.get(jobId),
    shown: await api.getJob(jobId),
    waiting: state.jobs.get(waiting.jobId),
    node: state.nodes.get(victim),
    nodeShown: await api.getNode(victim),
    events: [...memory.events.values()].filter(({ subject }) =>
      [jobId, waiting.jobId, victim as string].includes(subject),
    ),
    credentials: [...memory.credentials.values()].filter(({ subject }) => subject === victim),
    output: Buffer.from(await logs.read(task, 0, 1_000)).toString(),
    losses: await api.queryMetrics({ jobId, name: 'train_loss' }),
    utilization: await api.queryMetrics({ jobId, name: 'gpu_utilization' }),
    readings: await api.listTelemetry(victim),
  };
}

const exit = anExit({ exitCode: 1 });
const sign = { kind: 'nan_loss', step: 5, lastGoodStep: 4, rank: 0, line: 7, text: 'loss nan' } as const;
/** Tasks that are none of its: the running one, later and other ones of that job, and one of a job that waits. */
const tasksOfOthers = (): readonly TaskRef[] => [
  task,
  { ...task, attempt: 2 },
  { ...task, nodeRank: 1 },
  waiting,
];
const reportsOn = (of: TaskRef) => [
  taskReportToWire(aReport(of, { state: 'running' })),
  taskReportToWire(aReport(of, { state: 'ended', exit })),
  { ...taskReportToWire(aReport(of, { state: 'running' })), frozen: true },
];

/** By kind of message: what it says about the tasks of others. */
const claims: Readonly<Record<string, (of: TaskRef) => readonly AgentMessage[]>> = {
  hello: (of) => [
    helloMessage({
      observed: reportsOn(of),
      checkpoints: [seen(of, 'hello')].flatMap(({ checkpoint }) => checkpoint ?? []),
      proofs: [{ task: of, proof: 'proof' }],
    }),
  ],
  heartbeat: (of) => reportsOn(of).map((report) => ({ heartbeat: { seq: 1, observed: [report] } })),
  prepared: (of) => [{ prepared: { task: of, master: { addr: '192.0.2.1', port: 1 } } }],
  report: (of) => reportsOn(of).map((report) => ({ report })),
  // Of the node itself, which can have the GPU of no other.
  status: () => [
    {
      status: {
        inventory: inventoryToWire(anInventory({ gpus })),
        conditions: [conditionToWire(aCondition('xid_79', { gpuUuid: gpus[0]?.uuid ?? null }))],
      },
    },
  ],
  checked: (of) => [{ checked: { task: of, findings: { round: 1, paths: [] } } }],
  checkpoint: (of) => [seen(of, 'forged'), seen(of, aCheckpoint(10).name, 'corrupt')],
  trainingSign: (of) => [{ trainingSign: { task: of, sign: trainingSignToWire(sign) } }],
  credentialOffer: () => [],
  credentialKept: () => [{ credentialKept: {} }],
  // A token that was not offered on this connection changes nothing.
  tokenKept: () => [{ tokenKept: { token: 'chain.1.salt.mac' } }],
};

function seen(of: TaskRef, name: string, verdict: 'verified' | 'corrupt' = 'verified') {
  const checkpoint = { ...aCheckpoint(99), name, verdict };
  return { checkpoint: checkpointSeenToWire({ task: of, checkpoint, shared: true, afterStop: false }) };
}

test('every kind of message is tried here', () => {
  const kinds = messageType('AgentMessage').fieldsArray.map(({ name }) => name);
  expect(Object.keys(claims).toSorted()).toEqual(kinds.toSorted());
});

test.each(Object.keys(claims))(
  'what another node says by %s changes nothing, and no task is granted to it',
  async (kind) => {
    const before = await whatIsOfTheVictim();
    const { send, received, errors } = openSession(coordinator.client(intruder), null);
    const hello =
      kind === 'hello' ? [] : [helloMessage({ inventory: inventoryToWire(anInventory({ gpus: [] })) })];
    const messages = tasksOfOthers().flatMap((of) => claims[kind]?.(of) ?? []);
    for (const message of [...hello, ...messages]) send(message);
    const end = { heartbeat: { seq: 999, observed: [] } };
    send(end);
    await vi.waitFor(() => expect(received.some(({ heartbeatAck }) => heartbeatAck?.seq === 999)).toBe(true));
    expect(errors).toEqual([]);
    expect(await whatIsOfTheVictim()).toEqual(before);
    const verdicts = received.flatMap(({ heartbeatAck }) => heartbeatAck?.verdicts ?? []);
    expect(verdicts.filter(({ verdict }) => verdict === 'VERDICT_RUN')).toEqual([]);
    const orders = received.filter(
      ({ prepare, start, check, welcome }) => prepare || start || check || welcome?.desired.length,
    );
    expect(orders, 'it learns of no spec').toEqual([]);
  },
);

test('output and metrics of the tasks of others are acknowledged, so that they end, and dropped', async () => {
  const before = await whatIsOfTheVictim();
  const output = openStream(intruder, 'UploadLogs');
  const rows = openStream(intruder, 'UploadRows');
  for (const of of tasksOfOthers()) {
    for (const offset of [0, 5])
      output.send({ task: of, offset, data: Buffer.from('forged\n'), complete: offset > 0 });
    rows.send({ task: taskRefToWire(of), rows: someRows(3, 9).map(trainingRowToWire), complete: true });
  }
  await vi.waitFor(() => expect([output.received.length, rows.received.length]).toEqual([8, 4]));
  expect(await whatIsOfTheVictim()).toEqual(before);
});

test('readings that it makes up are those of its own GPUs, of no job and no other node', async () => {
  const before = await whatIsOfTheVictim();
  // It lists the GPU of the victim as one of its own, which it may: what it lists is offered as its own alone.
  const { send, received } = openSession(coordinator.client(intruder), null);
  send(helloMessage({ inventory: inventoryToWire(anInventory({ gpus })) }));
  await vi.waitFor(() => expect(received[0]?.welcome).toBeTruthy());
  const telemetry = openStream(intruder, 'UploadTelemetry');
  const atMs = coordinator.clock.wallMs();
  const reading = aReading({ atMs, task, gpuUuid: gpus[0]?.uuid ?? '', utilization: 1 });
  telemetry.send({
    gpus: [gpuReadingToWire(reading), gpuReadingToWire({ ...reading, gpuUuid: 'GPU-other' })],
  });
  await vi.waitFor(() =>
    expect(coordinator.telemetry.dropped).toMatchObject({ foreign_task: 1, unknown_gpu: 1 }),
  );
  expect(coordinator.telemetry.taken).toBe(0);
  expect(await whatIsOfTheVictim()).toEqual(before);
});

test("it cannot take the victim's name, key or credential", async () => {
  const before = await whatIsOfTheVictim();
  const { send, received } = openSession(coordinator.client(intruder), null);
  send(helloMessage({ instanceId: 'i', bootId: 'b' }));
  await vi.waitFor(() => expect(received[0]?.welcome?.nodeName).toBe('node-2'));
  const privateKey = newKey();
  send({ credentialOffer: { credential: await requestFor(privateKey, victim) } });
  const taken = () => received.find(({ credentialTaken }) => credentialTaken)?.credentialTaken;
  await vi.waitFor(() => expect(taken()).toBeTruthy());
  const certificate = taken()?.certificate ?? '';
  expect(new X509Certificate(certificate).subject).toBe('CN=node-2');
  send({ credentialKept: {} });
  await vi.waitFor(() => {
    const own = [...coordinator.memory.credentials.values()].find(({ subject }) => subject === 'node-2');
    expect(own?.nextHash).toBeNull();
  });
  intruder = { privateKey, certificate };
  expect(await whatIsOfTheVictim()).toEqual(before);
});

test('it reads the secrets of its own tasks alone', async () => {
  const before = await whatIsOfTheVictim();
  const { path, requestSerialize, responseDeserialize } = agentHubService.ReadSecrets;
  const client = coordinator.client(intruder);
  for (const of of tasksOfOthers()) {
    const refusal = await new Promise<ServiceError | null>((resolve) => {
      const request = { task: taskRefToWire(of) };
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, new Metadata(), resolve);
    });
    expect(refusal?.details).toBe('no such task is assigned to this node, so it gets no secrets');
  }
  expect(await whatIsOfTheVictim()).toEqual(before);
});

test('no call of the API is for nodes but those for everybody, and none that joins another', async () => {
  const before = await whatIsOfTheVictim();
  const client = coordinator.client(intruder);
  const same = (bytes: Buffer) => bytes;
  const { GetLoginMethod: _method, LoginWithIdToken: _login, ...others } = musterService;
  for (const { path } of [...Object.values(others), agentHubService.Join]) {
    const refusal = await new Promise<ServiceError | null>((resolve) => {
      client.makeUnaryRequest(path, same, same, Buffer.alloc(0), new Metadata(), resolve);
    });
    expect(refusal, path).toMatchObject({ code: status.PERMISSION_DENIED });
    expect(refusal?.details).toBe(`this certificate (agent) may not call ${path}`);
  }
  expect(await whatIsOfTheVictim()).toEqual(before);
});
