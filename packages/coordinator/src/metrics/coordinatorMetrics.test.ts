import { afterEach, beforeEach, expect, test } from 'vitest';
import { complaintsOfPromtool } from '../../../../test/support/prometheus.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { currentAttempt } from '../model.ts';
import { aCondition, aNode, aReport, nodeNameOf } from '../modelFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { aReading, runningJobId, storeRunningJob } from '../telemetry/telemetryFixture.ts';

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

/** Values by series, help and types left out. */
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
  // Counted anew at each reading, not added up.
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
    muster_paused: 0,
    muster_term: 1,
  });
  const task = { jobId: runningJobId, attempt: 1, nodeRank: 0 };
  coordinator.notes.note(aReport(task, { frozen: true }));
  leases.agentSaid({ node: nodeNameOf('node-1'), highestTerm: 7, observed: [] });
  await loop.run((draft) => draft.emit({ kind: 'node.fenced', subject: 'node-1', data: {} }, clock.wallMs()));
  expect(await readValues()).toMatchObject({
    muster_lease_fenced_nodes_total: 1,
    muster_lease_frozen_tasks: 1,
    muster_paused: 1,
  });
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

test('promtool finds nothing wrong with the page', async () => {
  expect(await complaintsOfPromtool(await readPage())).toBe('');
  expect(await complaintsOfPromtool('muster_wrong_total{a="b" 1\n')).not.toBe('');
});
