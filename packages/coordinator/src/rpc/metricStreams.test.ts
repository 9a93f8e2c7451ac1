import { connectMuster } from '@muster/common/wire/client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { hashToken } from '../auth/tokens.ts';
import { addCredential, startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { stepGraceMs } from '../metricStream/closedSteps.ts';
import { nodeNameOf, someMs } from '../modelFixture.ts';
import { someRows } from '../rows/rowFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { storeNode } from '../telemetry/agentStreamFixture.ts';
import { aReading, runningJob, runningJobId, storeRunningJob } from '../telemetry/telemetryFixture.ts';

/** Of a user without a project. */
const outsiderToken = 'muster_user_eve';
const name = 'gpu_utilization';

let coordinator: TestCoordinator;
const over = { controller: new AbortController() };
beforeEach(async () => {
  over.controller = new AbortController();
  const memory = new Memory('test');
  for (const node of ['node-1', 'node-2']) storeNode(memory, node);
  storeRunningJob(memory);
  memory.users.set('eve', { name: 'eve', role: 'user', projects: [], createdAtMs: someMs });
  const secretHash = hashToken(outsiderToken);
  addCredential(memory, { id: 'user:eve:1', kind: 'user', subject: 'eve', secretHash });
  coordinator = await startTestCoordinator({ memory });
});
afterEach(async () => {
  over.controller.abort();
  await coordinator.close();
});

function read(utilization: number): void {
  coordinator.clock.nowMs += 10_000;
  const task = { jobId: runningJobId, attempt: 1, nodeRank: 0 };
  coordinator.telemetry.addGpu(
    nodeNameOf('node-1'),
    aReading({ task, utilization, atMs: coordinator.clock.wallMs() }),
  );
}

type Watch = Parameters<TestCoordinator['api']['watchMetrics']>[0];

/** The values that a watch has told so far. */
function watching(request: Watch, api = coordinator.api) {
  const values: unknown[] = [];
  const positions: string[] = [];
  const done = (async () => {
    for await (const { series, position } of api.watchMetrics(request, over.controller.signal)) {
      values.push(...series.flatMap(({ points }) => points.map(({ value }) => value)));
      positions.push(position);
    }
  })();
  const ended = done.then(
    () => null,
    (error: unknown) => error,
  );
  return { values, positions, ended };
}

test('readings are told as they arrive, and after a position those that were missed', async () => {
  read(10);
  const watch = watching({ jobId: runningJobId, name, follow: true, startTime: '-1h' });
  await vi.waitFor(() => expect(watch.values).toEqual([10]));
  read(20);
  await vi.waitFor(() => expect(watch.values).toEqual([10, 20]));
  const [position = ''] = watch.positions;
  const resumed = watching({ jobId: runningJobId, name, position });
  expect(await resumed.ended).toBeNull();
  expect(resumed.values).toEqual([20]);
  const fresh = watching({ jobId: runningJobId, name });
  expect(await fresh.ended).toBeNull();
  expect(fresh.values).toEqual([]);
});

test('a step is told once, as a query aggregates it, and resumed after the last one', async () => {
  for (const utilization of [40, 10, 20, 30, 60, 50, 5, 4, 3, 2]) read(utilization);
  const startTime = String(coordinator.clock.wallMs() - 60 * 60_000);
  const shape = { stepMs: 30_000, aggregation: 'max', by: 'all' };
  const watch = { jobId: runningJobId, name, startTime, ...shape };
  const { series } = await coordinator.api.queryMetrics(watch);
  const closed = series[0]?.points.flatMap(({ atMs, value }) =>
    atMs + stepGraceMs <= coordinator.clock.wallMs() ? [value] : [],
  );
  expect(closed?.length).toBeGreaterThan(1);
  const live = watching({ ...watch, follow: true });
  await vi.waitFor(() => expect(live.values).toEqual(closed));
  const [position = ''] = live.positions;
  for (let reading = 0; reading < 6; reading += 1) read(70);
  const resumed = watching({ ...watch, position });
  expect(await resumed.ended).toBeNull();
  expect(resumed.values.at(-1)).toBe(70);
  await vi.waitFor(() => expect(live.values.slice(closed?.length)).toEqual(resumed.values));
});

test('the cluster is sampled, and a watch of it is told', async () => {
  const watch = watching({ name: 'jobs_running', follow: true, startTime: '-1h' });
  await coordinator.reconcile();
  coordinator.clock.nowMs += 30_000;
  await coordinator.reconcile();
  await vi.waitFor(() => expect(watch.values).toEqual([1, 1]));
});

test('rows of the output are told with the node that wrote them', async () => {
  const updates = coordinator.api.watchMetrics(
    { jobId: runningJobId, name: 'loss', follow: true, startTime: String(1e9) },
    over.controller.signal,
  );
  const task = { jobId: runningJobId, attempt: 1, nodeRank: 1 };
  await coordinator.rowKeeping.rows.append(task, someRows(0, 2), 1e9, 1e15);
  for await (const { unit, series } of updates) {
    expect(unit).toBe('loss');
    expect(series).toMatchObject([{ nodeRank: 1, node: 'node-2', points: [{ step: 0 }, { step: 1 }] }]);
    break;
  }
});

test('of jobs that a caller may not read nothing is told, also once they may no longer', async () => {
  const eve = connectMuster({ address: coordinator.address, token: outsiderToken });
  const ofAll = watching({ name, follow: true, startTime: '-1h' }, eve);
  const ofJob = watching({ jobId: runningJobId, name, follow: true, startTime: '-1h' }, eve);
  read(10);
  await vi.waitFor(() => expect([ofAll.values, ofJob.values]).toEqual([[10], [10]]));
  await coordinator.api.setProject({ name: runningJob.spec.project, isPrivate: true });
  expect(await ofJob.ended).toMatchObject({ code: 'not_found' });
  read(20);
  const own = watching({ name, startTime: '-1h', project: runningJob.spec.project });
  await own.ended;
  expect(own.values).toEqual([10, 20]);
  expect(ofAll.values).toEqual([10]);
  expect(await watching({ jobId: runningJobId, name }, eve).ended).toMatchObject({ code: 'not_found' });
  eve.close();
});

test.each<[Watch, RegExp]>([
  [{ name: 'train_loss' }, /^job_id: train_loss is followed for one job; name the job/],
  [{ name: 'node_load1', jobId: runningJobId }, /^job_id: node_load1 is followed for nodes/],
  [{ name: 'gpu_utilisation' }, /did you mean gpu_utilization/],
  [{ name, jobId: runningJobId, user: 'ann' }, /^user: /],
  [{ name, node: 'node-9' }, /there is no node node-9/],
  [{ name, position: 'latest' }, /^position: got "latest"/],
  [{ name, startTime: 'yesterday' }, /^start_time: /],
  [{ name, by: 'job' }, /^by: a stream tells one value for each step; give step_ms too/],
  [{ name, stepMs: 10 }, /^step_ms: got 10; expected 1000/],
  [{ name, stepMs: 60_000, aggregation: 'median' }, /^aggregation: got "median"/],
])('%o is refused with the field and the remedy', async (request, message) => {
  expect(await watching(request).ended).toMatchObject({ message: expect.stringMatching(message) });
});
