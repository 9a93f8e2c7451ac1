import { causeOf } from '@muster/common/cause';
import type { EventKind, NewEvent } from '@muster/common/eventKinds';
import { exampleOf } from '@muster/common/eventSchema';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { promtoolErrors } from '../../../../test/support/prometheus.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { provesTerm } from '../leases/testimonyFixture.ts';
import { currentAttempt, type Job } from '../model.ts';
import {
  aCaller,
  aCheckpoint,
  aCondition,
  aJob,
  aNode,
  anAttempt,
  aReport,
  aSpec,
  nodeNameOf,
  someMs,
} from '../modelFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { problemOfPage } from '../telemetry/pageRequests.ts';
import { aReading, runningJob, runningJobId, storeRunningJob } from '../telemetry/telemetryFixture.ts';
import { someProgress } from '../training/trainingFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  const memory = new Memory('test');
  const conditions = [aCondition('disk_full'), aCondition('xid_79', { action: 'drain_node' })];
  memory.nodes.set('node-1', aNode('node-1', { conditions }));
  memory.nodes.set('node-2', aNode('node-2', { conditions: [aCondition('disk_full')] }));
  storeRunningJob(memory);
  coordinator = await startTestCoordinator({ memory });
});
afterEach(() => coordinator.close());

async function readPage(): Promise<string> {
  return (await fetch(`${coordinator.httpUrl}/metrics`)).text();
}

/** Values by series, without help and types. */
async function readValues(): Promise<Readonly<Record<string, number>>> {
  const lines = (await readPage()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

test('jobs, nodes, GPUs and conditions are counted as they are', async () => {
  expect(await readValues()).toMatchObject({
    'muster_jobs{state="queued"}': 0,
    'muster_jobs{state="running"}': 1,
    [`muster_job_info{muster_job="${runningJobId}",name="train",project="default",attempt="1"}`]: 1,
    'muster_nodes{state="online"}': 0,
    'muster_nodes{state="silent"}': 2,
    'muster_gpus{state="allocated"}': 2,
    'muster_gpus{state="drained"}': 1,
    'muster_gpus{state="silent"}': 1,
    'muster_gpus{state="free"}': 0,
    'muster_conditions{kind="disk_full",severity="warning",action="note"}': 2,
    'muster_conditions{kind="xid_79",severity="warning",action="drain_node"}': 1,
  });
});

test('a condition that is gone and a job that has ended are gone from the page', async () => {
  await readPage();
  coordinator.state.nodes.set(nodeNameOf('node-1'), aNode('node-1'));
  coordinator.state.nodes.set(nodeNameOf('node-2'), aNode('node-2'));
  coordinator.state.jobs.delete(runningJobId);
  const page = await readPage();
  expect(page).not.toContain('disk_full');
  expect(page).not.toContain(runningJobId);
  expect(page).toContain('muster_gpus{state="silent"} 4\n');
});

test('events, waiting jobs and telemetry are counted', async () => {
  await coordinator.api.submit({
    specJson: JSON.stringify({ name: 'x', command: ['true'] }),
    requestId: 'r',
  });
  coordinator.clock.nowMs += 5_000;
  const atMs = coordinator.clock.wallMs();
  const task = { jobId: runningJobId, attempt: 1, nodeRank: 0 };
  for (const gpuUuid of ['GPU-node-1-0', 'GPU-node-1-0', 'GPU-nowhere'])
    coordinator.telemetry.addGpu(nodeNameOf('node-1'), aReading({ atMs, task, gpuUuid }));
  // Counted again at each reading, not added up.
  await readPage();
  expect(await readValues()).toMatchObject({
    'muster_events_total{kind="job.submitted"}': 1,
    'muster_jobs{state="queued"}': 1,
    muster_queue_oldest_wait_seconds: 5,
    muster_queue_wait_seconds_count: 0,
    muster_telemetry_readings_total: 1,
    'muster_telemetry_dropped_readings_total{reason="stale"}': 1,
    'muster_telemetry_dropped_readings_total{reason="unknown_gpu"}': 1,
    muster_telemetry_series: 1,
    muster_telemetry_streams: 0,
  });
});

test('leases, fences and distrust of ourselves are counted', async () => {
  const { leases, agents, state, clock, loop } = coordinator;
  const attempt = currentAttempt(state.jobs.get(runningJobId));
  if (attempt === null) throw new Error('the job does not run');
  for (const node of state.nodes.keys()) agents.expect(node);
  leases.grant(nodeNameOf('node-1'), { ...attempt, leaseMs: 6_000 });
  await coordinator.api.setMaintenance(60_000);
  expect(await readValues()).toMatchObject({
    muster_lease_grants_total: 1,
    muster_lease_maintenance_seconds: 60,
    muster_lease_fenced_nodes_total: 0,
    muster_lease_frozen_tasks: 0,
    muster_nodes_suspect: 0,
    muster_clock_step_seconds: 0,
    muster_clock_stepped: 0,
    muster_paused: 0,
    muster_term: 1,
  });
  const task = { jobId: runningJobId, attempt: 1, nodeRank: 0 };
  coordinator.taskStatus.record(aReport(task, { frozen: true }));
  provesTerm(coordinator, nodeNameOf('node-1'), 7);
  await loop.run(aCaller, (draft) =>
    draft.emit(
      { kind: 'node.fenced', subject: nodeNameOf('node-1'), data: { silentForMs: null, tasks: [] } },
      clock.wallMs(),
    ),
  );
  expect(await readValues()).toMatchObject({
    muster_lease_fenced_nodes_total: 1,
    muster_lease_frozen_tasks: 1,
    muster_paused: 1,
  });
});

test('a part that fails is counted by its name', async () => {
  await coordinator.contained.run('drains', () => Promise.reject(new Error('poison')));
  expect(await readValues()).toMatchObject({ 'muster_part_failures_total{part="drains"}': 1 });
});

test('at most a thousand jobs are named', async () => {
  const job = coordinator.state.jobs.get(runningJobId);
  if (job === undefined) throw new Error('the job is not there');
  for (let number = 1; number <= 1_500; number += 1) {
    const id = `job_${String(number).padStart(12, '0')}` as typeof runningJobId;
    coordinator.state.jobs.set(id, { ...job, id });
  }
  const values = Object.keys(await readValues());
  expect(values.filter((name) => name.startsWith('muster_job_info'))).toHaveLength(1_000);
});

test('how training goes is on the page while its job holds nodes', async () => {
  const { taskStatus, state, clock } = coordinator;
  const task = { jobId: runningJobId, attempt: 1, nodeRank: 1 };
  taskStatus.record(
    aReport(task, { training: someProgress({ latest: { train_loss: 0, learning_rate: 3e-4 } }) }),
  );
  const checkpoints = [aCheckpoint(1), aCheckpoint(2, { bytes: 2_500_000 })];
  state.jobs.set(runningJobId, { ...runningJob, checkpoints });
  const labels = `{muster_job="${runningJobId}"}`;
  expect(await readValues()).toMatchObject({
    [`training_loss${labels}`]: 0,
    [`learning_rate${labels}`]: 3e-4,
    [`muster_job_checkpoint_bytes${labels}`]: 2_500_000,
    [`muster_job_saved_timestamp_seconds${labels}`]: expect.any(Number),
  });
  for (let number = 1; number <= 1_500; number += 1) {
    const id = `job_${String(number).padStart(12, '0')}` as typeof runningJobId;
    state.jobs.set(id, { ...runningJob, id, checkpoints });
  }
  const named = Object.keys(await readValues()).filter((name) =>
    name.startsWith('muster_job_checkpoint_bytes'),
  );
  expect(named).toHaveLength(1_000);
  state.jobs.clear();
  clock.nowMs += 1;
  expect(await readPage()).not.toContain(runningJobId);
});

test.each(['steps', 'tokens'] as const)('progress over phases of %s is on the page', async (unit) => {
  const { taskStatus, state } = coordinator;
  const spec = aSpec({
    phases: [
      { name: 'broad', [unit]: 600 },
      { name: 'domain', [unit]: 200 },
    ],
  });
  const phase = { index: 0, start: 0, firstAttempt: 1, extensions: 0, awaiting: null, ended: [] };
  state.jobs.set(runningJobId, { ...runningJob, spec, phase });
  const task = { jobId: runningJobId, attempt: 1, nodeRank: 0 };
  const latest = unit === 'steps' ? { step: 150, tokens: 7 } : { step: 7, tokens: 150 };
  taskStatus.record(aReport(task, { training: someProgress({ latest }) }));
  const labels = `muster_job="${runningJobId}"`;
  expect(await readValues()).toMatchObject({
    [`muster_job_phase_done_ratio{${labels},phase="broad",unit="${unit}"}`]: 0.25,
    [`muster_job_phases_done_ratio{${labels},unit="${unit}"}`]: 150 / 800,
  });
  state.jobs.set(runningJobId, runningJob);
  expect(await readPage()).not.toContain('muster_job_phase_done_ratio{');
});

test('sizes of checkpoints are a histogram, use of GPUs a mean for each job, and costs grow with time', async () => {
  const { loop, clock, telemetry } = coordinator;
  const [, second] = ['node-1', 'node-2'].map((name) => nodeNameOf(name));
  const task = { jobId: runningJobId, attempt: 1, nodeRank: 0 };
  const atMs = clock.wallMs();
  telemetry.addGpu(nodeNameOf('node-1'), aReading({ atMs, task, utilization: 80 }));
  const other = { atMs, gpuUuid: 'GPU-node-2-0', task: { ...task, nodeRank: 1 }, utilization: 40 };
  if (second !== undefined) telemetry.addGpu(second, aReading(other));
  const before = (await readValues())['cost_usd{project="default"}'] ?? 0;
  // Of node-1 alone there is a price: a thousandth of a dollar for each second.
  clock.nowMs += 5_000;
  const data = {
    name: 'a',
    attempt: 1,
    checkpoint: 'c',
    step: 1,
    node: 'node-1',
    problem: null,
    verdict: 'verified',
  };
  const saved = { subject: runningJobId, data: { ...data, bytes: 250e6 } };
  await loop.run(aCaller, (draft) => draft.emit({ kind: 'checkpoint.saved', ...saved }, someMs));
  const gone = { ...saved, data: { ...saved.data, verdict: 'gone' } };
  await loop.run(aCaller, (draft) => draft.emit({ kind: 'checkpoint.gone', ...gone }, someMs));
  const values = await readValues();
  expect(values).toMatchObject({
    [`gpu_utilization{muster_job="${runningJobId}"}`]: 60,
    'checkpoint_size_mb_bucket{le="100"}': 0,
    'checkpoint_size_mb_bucket{le="1000"}': 1,
    checkpoint_size_mb_count: 1,
    checkpoint_size_mb_sum: 250,
  });
  expect((values['cost_usd{project="default"}'] ?? 0) - before).toBeCloseTo(0.005, 6);
});

test('GPU time is counted once for each booking, and that of ended jobs stays', async () => {
  const { loop, state } = coordinator;
  const book = async (ledger: Job['ledger'], fields: Partial<Job> = {}) =>
    loop.run(aCaller, (draft) => draft.putJob({ ...runningJob, ledger, ...fields }));
  const failure = { kind: 'failure', cause: 'cuda_oom', gpuSeconds: 5 } as const;
  const productive = { kind: 'productive', cause: null, gpuSeconds: 10 } as const;
  await book([productive]);
  await book([productive]);
  await book([{ ...productive, gpuSeconds: 12.5 }, failure]);
  const counted = {
    'muster_gpu_seconds_total{kind="productive",cause=""}': 12.5,
    'muster_gpu_seconds_total{kind="failure",cause="cuda_oom"}': 5,
  };
  expect(await readValues()).toMatchObject(counted);
  const cause = causeOf('exit_code', 'it ended');
  await book([productive, failure], { state: { kind: 'failed', endedAtMs: someMs, cause } });
  expect(state.jobs.has(runningJobId)).toBe(false);
  expect(await readValues()).toMatchObject(counted);
  expect(coordinator.fatal, 'a counter that went back would be the end of the coordinator').toEqual([]);
});

test('what was booked before the coordinator started is not counted again', async () => {
  await coordinator.close();
  const memory = new Memory('test');
  const productive = { kind: 'productive', cause: null, gpuSeconds: 10 } as const;
  storeRunningJob(memory);
  memory.jobs.set(runningJobId, { ...runningJob, ledger: [productive] });
  coordinator = await startTestCoordinator({ memory });
  const later = [{ ...productive, gpuSeconds: 11 }];
  await coordinator.loop.run(aCaller, (draft) => draft.putJob({ ...runningJob, ledger: later }));
  expect(await readValues()).toMatchObject({ 'muster_gpu_seconds_total{kind="productive",cause=""}': 1 });
});

test('how long jobs trained is known of those that succeeded or failed, over all of their attempts', async () => {
  const { memory, loop } = coordinator;
  const minutes = (from: number, to: number) =>
    ({ state: 'ended', runningAtMs: someMs + from * 60_000, endedAtMs: someMs + to * 60_000 }) as const;
  const attempts = [anAttempt(1, minutes(0, 5)), anAttempt(2, minutes(7, 13)), anAttempt(3)];
  memory.attempts.set(runningJobId, new Map(attempts.map((each) => [each.number, each])));
  await loop.run(aCaller, (draft) =>
    draft.putJob({ ...runningJob, state: { kind: 'succeeded', endedAtMs: someMs } }),
  );
  await vi.waitFor(async () =>
    expect(await readValues()).toMatchObject({
      training_duration_seconds_count: 1,
      training_duration_seconds_sum: 660,
      'training_duration_seconds_bucket{le="600"}': 0,
      'training_duration_seconds_bucket{le="3600"}': 1,
      'training_duration_seconds_bucket{le="14400"}': 1,
      'training_duration_seconds_bucket{le="86400"}': 1,
    }),
  );
});

test('a job that was cancelled, or never began, has no duration', async () => {
  const { loop } = coordinator;
  const cause = causeOf('cancelled', 'stopped');
  await loop.run(aCaller, (draft) =>
    draft.putJob({ ...runningJob, state: { kind: 'cancelled', endedAtMs: someMs, cause } }),
  );
  const unbegun = aJob(2);
  await loop.run(aCaller, (draft) => draft.addJob(unbegun));
  await loop.run(aCaller, (draft) =>
    draft.putJob({ ...unbegun, state: { kind: 'failed', endedAtMs: someMs, cause } }),
  );
  // A later one is counted, so the others would have been by then.
  const last = { ...aJob(3), lastAttempt: 1 };
  await loop.run(aCaller, (draft) => draft.addJob(last));
  await loop.run(aCaller, (draft) =>
    draft.putJob({ ...last, state: { kind: 'succeeded', endedAtMs: someMs } }),
  );
  await vi.waitFor(async () =>
    expect(await readValues()).toMatchObject({ training_duration_seconds_count: 1 }),
  );
});

test('verdicts, preemptions and recoveries are counted', async () => {
  const { loop, clock } = coordinator;
  const emit = (kind: EventKind, changes: Readonly<Record<string, unknown>> = {}) =>
    loop.run(aCaller, (draft) => {
      const data = { ...(exampleOf(kind).data as object), ...changes };
      draft.emit({ kind, subject: runningJobId, data } as unknown as NewEvent, clock.wallMs());
    });
  await emit('checkpoint.saved');
  await emit('checkpoint.saved');
  await emit('checkpoint.corrupt');
  for (let times = 0; times < 2; times += 1) await emit('job.preempted');
  // Of the three that go back for this, its user has asked for one.
  for (const kind of ['preempted', 'preempted', 'preempted', 'node_lost', 'cancelled'] as const)
    await emit('job.queued', { cause: causeOf(kind, 'it went back'), backoffMs: 0 });
  expect(await readValues()).toMatchObject({
    'muster_checkpoints_total{verdict="verified"}': 2,
    'muster_checkpoints_total{verdict="corrupt"}': 1,
    'muster_checkpoints_total{verdict="unverified"}': 0,
    muster_preemptions_total: 2,
    'muster_recoveries_total{cause="node_lost"}': 1,
  });
  const recoveries = Object.keys(await readValues()).filter((name) => name.startsWith('muster_recoveries'));
  expect(recoveries).toHaveLength(1);
});

/** Dashboards of training programs know them by these names, units and all. */
const knownError =
  'checkpoint_size_mb metric names should not contain abbreviated units\n' +
  'cost_usd counter metrics should have "_total" suffix\n';

test('promtool finds nothing wrong with the page but a name that is not ours to choose', async () => {
  coordinator.state.jobs.set(runningJobId, { ...runningJob, checkpoints: [aCheckpoint(1)] });
  expect(await promtoolErrors(await readPage())).toBe(knownError);
  expect(await promtoolErrors('muster_wrong_total{a="b" 1\n')).not.toBe('');
});

test('no node can say what this page says', async () => {
  const names = [...(await readPage()).matchAll(/^# TYPE (\w+) /gm)].map(([, name = '']) => name);
  const shared = ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'process_start_time_seconds'];
  expect(names).toContain('muster_nodes');
  expect(names.filter((name) => problemOfPage(`${name} 1\n`) === null)).toEqual(shared);
});
