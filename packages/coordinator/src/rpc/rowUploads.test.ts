import type { ServiceError } from '@grpc/grpc-js';
import type { RowUpload } from '@muster/common/gen/muster/v1/RowUpload';
import type { RowUploadAck__Output } from '@muster/common/gen/muster/v1/RowUploadAck';
import type { JobId, TaskRef } from '@muster/common/ids';
import type { TrainingRow } from '@muster/common/training';
import { taskRefToWire, trainingRowToWire } from '@muster/common/wire/codec';
import { agentHubService } from '@muster/common/wire/service';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startTestCoordinator, type TestCoordinator, withToken } from '../coordinatorFixture.ts';
import { someRows } from '../rows/rowFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { storeNode, tokenOf } from '../telemetry/agentStreamFixture.ts';
import { runningJobId, storeRunningJob } from '../telemetry/telemetryFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  const memory = new Memory('test');
  for (const name of ['node-1', 'node-2']) storeNode(memory, name);
  storeRunningJob(memory);
  coordinator = await startTestCoordinator({ memory });
});
afterEach(() => coordinator.close());

const task: TaskRef = { jobId: runningJobId, attempt: 1, nodeRank: 0 };
const lossQuery = { jobId: runningJobId, name: 'train_loss' } as const;

function openRows(node: string) {
  const { path, requestSerialize, responseDeserialize } = agentHubService.UploadRows;
  const call = coordinator
    .client()
    .makeBidiStreamRequest(path, requestSerialize, responseDeserialize, withToken(tokenOf(node)));
  const acks: RowUploadAck__Output[] = [];
  const errors: ServiceError[] = [];
  call.on('data', (ack: RowUploadAck__Output) => acks.push(ack));
  call.on('error', (error: ServiceError) => errors.push(error));
  const write = (upload: RowUpload) => void call.write(upload);
  return {
    acks,
    errors,
    write,
    send: (rows: readonly TrainingRow[], of = task, complete = false) =>
      write({ task: taskRefToWire(of), rows: rows.map(trainingRowToWire), complete }),
  };
}

test('what a node uploads can be asked for, row by row or in short, and is acknowledged', async () => {
  const { send, acks } = openRows('node-1');
  send([]);
  send(someRows(0, 300));
  send(someRows(250, 400), task, true);
  await vi.waitFor(() => expect(acks).toHaveLength(3));
  expect(acks.map(({ position, complete, retryAfterMs }) => [position, complete, retryAfterMs])).toEqual([
    [0, false, 0],
    [30_000, false, 0],
    [40_000, true, 0],
  ]);
  const { unit, series, origin, ...rest } = await coordinator.api.queryMetrics(lossQuery);
  expect([unit, series.length, rest]).toEqual(['loss', 1, {}]);
  expect(origin).toMatchObject({ name: 'train_loss', sources: [{ source: 'rows' }], notes: [] });
  expect(series[0]).toMatchObject({ attempt: 1, nodeRank: 0, node: 'node-1', gpuUuid: '' });
  expect(series[0]?.points.map(({ step }) => step)).toEqual(Array.from({ length: 400 }, (_, step) => step));
  const few = await coordinator.api.queryMetrics({ ...lossQuery, pointsMax: 40 });
  expect(few.series[0]?.points.length).toBeLessThanOrEqual(40);
  expect(few.series[0]?.points[0]).toMatchObject({ value: 1, step: 0 });
  expect(few.series[0]?.points[1]?.bucket).toMatchObject({ firstStep: 1, max: 1 / 2 });
  expect((await coordinator.api.queryMetrics({ ...lossQuery, skip: 399 })).series[0]?.points).toHaveLength(1);
  expect((await coordinator.api.queryMetrics({ ...lossQuery, attempt: 2 })).series).toEqual([]);
  const { metrics } = await coordinator.api.summarizeTraining({ jobId: runningJobId });
  expect(metrics.map(({ name, rows, best, bestStep }) => [name, rows, best, bestStep])).toEqual([
    ['train_loss', 400, 1 / 400, 399],
    ['step', 400, null, null],
  ]);
});

test('the first step that is shown is recorded once, with the time at which it was printed', async () => {
  const { send, acks } = openRows('node-1');
  const { wallMs } = coordinator;
  const at = { atMs: wallMs(), lossNotFinite: false };
  const early = { ...at, atMs: wallMs() - 3_600_000 };
  send([{ ...early, position: 1, values: { step: 0 } }]);
  await vi.waitFor(() => expect(acks).toHaveLength(1));
  const attemptNow = async () => (await coordinator.api.getJob(runningJobId)).attempts.at(-1);
  const attempt = await attemptNow();
  // The bar of a program that has computed nothing yet.
  expect(attempt?.firstStepAtMs).toBeNull();
  send([{ ...early, position: 2, values: { step: 0, train_loss: 9 } }]);
  coordinator.clock.nowMs += 5_000;
  send([{ ...at, atMs: wallMs(), position: 3, values: { step: 1, train_loss: 8 } }]);
  await vi.waitFor(() => expect(acks).toHaveLength(3));
  // By a clock that is an hour behind: no earlier than the allocation.
  const atMs = attempt?.allocatedAtMs;
  expect(await attemptNow()).toMatchObject({ firstStepAtMs: atMs });
  const events = await coordinator.store.readEvents(0, 1_000, runningJobId);
  expect(events.filter(({ kind }) => kind === 'training.started')).toMatchObject([
    { data: { attempt: 1, nodeRank: 0, node: 'node-1', step: 0, atMs } },
  ]);
});

test.each([
  ['of a rank on another node', { ...task, nodeRank: 1 }],
  ['of another attempt', { ...task, attempt: 2 }],
  ['of a job that is not there', { ...task, jobId: 'job_zzzzzzzzzzzz' as JobId }],
])('rows %s are dropped, and the node lets go of them', async (_, of) => {
  const { send, acks } = openRows('node-1');
  send(someRows(0, 3), of);
  await vi.waitFor(() => expect(acks).toMatchObject([{ position: 300, complete: true }]));
  expect(await coordinator.rowKeeping.rows.files()).toEqual([]);
});

test('a loss that has exploded is kept, one that is no number is marked, and other nonsense is left out', async () => {
  const { send, acks } = openRows('node-1');
  const at = { atMs: 1, lossNotFinite: false };
  send([
    { ...at, position: 1, values: { step: 1, train_loss: 1e30, grad_norm: Number.NaN } },
    { ...at, position: 2, values: { step: 2 }, lossNotFinite: true },
    { ...at, position: 2, values: { step: 3, train_loss: 5 } },
    { ...at, position: 1, values: { step: 4, train_loss: 5 } },
  ]);
  await vi.waitFor(() => expect(acks).toHaveLength(1));
  const { series } = await coordinator.api.queryMetrics(lossQuery);
  expect(series[0]?.points).toEqual([
    { atMs: 1, value: 1e30, step: 1 },
    { atMs: 1, value: null, step: 2, notFinite: 1 },
  ]);
  expect((await coordinator.api.queryMetrics({ ...lossQuery, name: 'grad_norm' })).series).toEqual([]);
});

test('a node that sends too much is asked to wait, and one that sends too much at once is refused', async () => {
  const { send, acks, errors, write } = openRows('node-1');
  for (let from = 0; from < 102_400; from += 512) send(someRows(from, from + 512));
  await vi.waitFor(() => expect(acks).toHaveLength(200));
  expect(acks.some(({ retryAfterMs, tooFast }) => retryAfterMs > 0 && tooFast)).toBe(true);
  expect(acks.filter(({ retryAfterMs }) => retryAfterMs === 0).length).toBeGreaterThan(190);
  write({ task: taskRefToWire(task), rows: someRows(0, 513).map(trainingRowToWire) });
  await vi.waitFor(() => expect(errors[0]?.details).toMatch(/RowUpload.rows: 512 at most/));
});

test('values that a node has dropped are told in every answer, and to an agent that asks again', async () => {
  const { write, acks, send } = openRows('node-1');
  const wire = taskRefToWire(task);
  const printed = [
    { metric: 'train_loss', rows: 1_000, notFinite: 3 },
    { metric: 'of a later release', rows: 7, notFinite: 0 },
  ];
  write({ task: wire, rows: someRows(0, 10).map(trainingRowToWire), printed, unreadBytes: 4_096 });
  send([]);
  await vi.waitFor(() => expect(acks).toHaveLength(2));
  for (const { received } of acks) {
    expect(received?.unreadBytes).toBe(4_096);
    expect(received?.printed).toEqual([
      { metric: 'train_loss', rows: 1_000, notFinite: 3 },
      { metric: 'step', rows: 10, notFinite: 0 },
    ]);
  }
  const { metrics, unreadBytes } = await coordinator.api.summarizeTraining({ jobId: runningJobId });
  expect(metrics[0]).toMatchObject({ rows: 10, omitted: 990, notFinite: 3, least: 0.1, leastStep: 9 });
  expect(unreadBytes).toBe(4_096);
  const { series, origin } = await coordinator.api.queryMetrics(lossQuery);
  expect(series[0]?.omitted).toBe(990);
  const page = await (await fetch(`${coordinator.httpUrl}/metrics`)).text();
  expect(page).toContain('muster_training_omitted_values_total{reason="too_fast"} 990');
  expect(origin?.notes).toEqual([expect.stringMatching(/^990 values of train_loss are not kept/)]);
});

test('a value that is no number is kept as such, whatever metric it is of', async () => {
  const { send, acks } = openRows('node-1');
  const at = { atMs: 1, lossNotFinite: false };
  send([
    { ...at, position: 1, values: { step: 1, train_loss: 2, eval_loss: 0.5 } },
    { ...at, position: 2, values: { step: 2, train_loss: 2 }, alsoNotFinite: ['eval_loss', 'grad_norm'] },
  ]);
  await vi.waitFor(() => expect(acks).toHaveLength(1));
  const { metrics } = await coordinator.api.summarizeTraining({ jobId: runningJobId });
  expect(metrics.find(({ name }) => name === 'eval_loss')).toMatchObject({
    best: 0.5,
    last: null,
    lastStep: 2,
    notFinite: 1,
    notFiniteStep: 2,
  });
  const { series } = await coordinator.api.queryMetrics({ ...lossQuery, name: 'grad_norm' });
  expect(series[0]?.points).toEqual([{ atMs: 1, value: null, step: 2, notFinite: 1 }]);
});

test('a disk without room takes no rows, and says when to come again', async () => {
  await coordinator.close();
  const memory = new Memory('test');
  storeNode(memory, 'node-1');
  storeRunningJob(memory);
  coordinator = await startTestCoordinator({ memory, reserveBytes: Number.MAX_SAFE_INTEGER });
  const { send, acks } = openRows('node-1');
  send(someRows(0, 3));
  await vi.waitFor(() => expect(acks).toMatchObject([{ position: 0, retryAfterMs: 5_000, tooFast: false }]));
  expect(await coordinator.rowKeeping.rows.files()).toEqual([]);
});
