import type { JobId, NodeName } from '@muster/common/ids';
import type { HostReading } from '@muster/common/telemetry';
import { beforeEach, expect, test } from 'vitest';
import { TestClock } from '../coordinatorFixture.ts';
import type { Job, Node } from '../model.ts';
import { aNode, anInventory, nodeNameOf, someGpus, someMs } from '../modelFixture.ts';
import { aReading, runningJob, runningJobId } from './telemetryFixture.ts';
import { TelemetryStore } from './telemetryStore.ts';

const node = nodeNameOf('node-1');
const task = { jobId: runningJobId, attempt: 1, nodeRank: 0 };
const query = { jobId: runningJobId, field: 'utilization', sinceMs: 3_600_000, attempt: null } as const;

let clock: TestClock;
let state: { jobs: Map<JobId, Job>; nodes: Map<NodeName, Node> };
let telemetry: TelemetryStore;
beforeEach(() => {
  clock = new TestClock();
  clock.nowMs = 10_000_000;
  state = {
    jobs: new Map([[runningJobId, runningJob]]),
    nodes: new Map(['node-1', 'node-2'].map((name) => [nodeNameOf(name), aNode(name)])),
  };
  telemetry = new TelemetryStore({ state, clock, bytesMax: 2 ** 20 });
});

const now = () => clock.wallMs();
const aHostReading = (atMs: number): HostReading => ({
  atMs,
  intervalMs: 10_000,
  cpuUtilization: 12.5,
  memoryUsedMb: 1_024,
  load1: null,
  networkReceiveBytes: 10,
  networkTransmitBytes: null,
});
const valuesOf = () => telemetry.query(query).map(({ points }) => points.map(({ value }) => value));

test('the newest of each GPU is known, idle ones too, in the order of the inventory', () => {
  telemetry.addGpu(node, aReading({ gpuUuid: 'GPU-node-1-1', atMs: now(), utilization: 0 }));
  telemetry.addGpu(node, aReading({ atMs: now(), task }));
  clock.nowMs += 10_000;
  telemetry.addGpu(node, aReading({ atMs: now(), utilization: 75, task }));
  expect(telemetry.newest(node)).toMatchObject({
    host: null,
    gpus: [
      { gpuUuid: 'GPU-node-1-0', utilization: 75, task, atMs: now() },
      { gpuUuid: 'GPU-node-1-1', utilization: 0, task: null, atMs: now() - 10_000 },
    ],
  });
  expect(valuesOf()).toEqual([[50, 75]]);
  expect(telemetry.newest(nodeNameOf('node-2'))).toEqual({ node: 'node-2', host: null, gpus: [] });
});

test('what is reported twice or too late counts once', () => {
  for (const atMs of [now(), now(), now() - 5_000]) telemetry.addGpu(node, aReading({ atMs, task }));
  expect(valuesOf()).toEqual([[50]]);
  expect(telemetry.dropped).toMatchObject({ stale: 2 });
  expect(telemetry.taken).toBe(1);
});

test.each([
  { what: 'of another job', reading: { task: { ...task, jobId: 'job_zzzzzzzzzzzz' as JobId } } },
  { what: 'of an earlier attempt', reading: { task: { ...task, attempt: 2 } } },
  { what: 'of a rank on another node', reading: { task: { ...task, nodeRank: 1 } } },
  { what: 'of a GPU that the task does not hold', reading: { task, gpuUuid: 'GPU-node-1-1' } },
])('a reading for a task $what goes to no job', ({ reading }) => {
  telemetry.addGpu(node, aReading({ atMs: now(), ...reading }));
  expect(valuesOf()).toEqual([]);
  expect(telemetry.dropped.foreign_task).toBe(1);
  expect(telemetry.newest(node).gpus).toMatchObject([{ utilization: 50, task: null }]);
});

test('what a task did last belongs to it, though it has ended by the time that it is received', () => {
  telemetry.addGpu(node, aReading({ atMs: now(), task }));
  state.jobs.delete(runningJobId);
  clock.nowMs += 5_000;
  telemetry.addGpu(node, aReading({ atMs: now(), utilization: 75, task }));
  expect(valuesOf()).toEqual([[50, 75]]);
  expect(telemetry.dropped.foreign_task).toBe(0);
  // Neither another node nor another GPU gets a say in it.
  telemetry.addGpu(nodeNameOf('node-2'), aReading({ gpuUuid: 'GPU-node-2-0', atMs: now(), task }));
  telemetry.addGpu(node, aReading({ gpuUuid: 'GPU-node-1-1', atMs: now(), task }));
  expect(valuesOf()).toEqual([[50, 75]]);
  expect(telemetry.dropped.foreign_task).toBe(2);
});

test('GPUs and nodes that nobody knows leave nothing behind', () => {
  for (let index = 0; index < 1_000; index += 1)
    telemetry.addGpu(node, aReading({ gpuUuid: `GPU-${index}`, atMs: now(), task }));
  telemetry.addGpu(nodeNameOf('nobody'), aReading({ atMs: now() }));
  expect(telemetry.dropped.unknown_gpu).toBe(1_001);
  expect(telemetry.newest(node).gpus).toEqual([]);
  expect(telemetry.usage).toMatchObject({ bytes: 0, series: 0 });
});

test('the clock of a node decides nothing: ahead, behind and jumping, its readings stand where they came', () => {
  const startMs = now();
  const year = 365 * 86_400_000;
  for (const nodeMs of [startMs + year, startMs + year + 10_000, 5, 10_005, startMs]) {
    telemetry.addGpu(node, aReading({ atMs: nodeMs, task }));
    clock.nowMs += 10_000;
  }
  const times = telemetry.query(query)[0]?.points.map(({ atMs }) => atMs - startMs);
  // The last was right again, and 40 s late.
  expect(times).toEqual([0, 10_000, 20_000, 30_000, 30_001]);
  expect(telemetry.newest(node).gpus[0]?.atMs).toBe(startMs);
});

test('when our own wall clock is set, readings keep their places and are shown by the new time', () => {
  telemetry.addGpu(node, aReading({ atMs: now(), task }));
  const hour = 3_600_000;
  const wallMs = clock.wallMs.bind(clock);
  clock.wallMs = () => wallMs() - hour;
  clock.nowMs += 10_000;
  telemetry.addGpu(node, aReading({ atMs: now() + hour, task, utilization: 60 }));
  const points = telemetry.query(query)[0]?.points;
  expect(points).toEqual([
    { atMs: now() - 10_000, value: 50 },
    { atMs: now(), value: 60 },
  ]);
});

test('the newest of a host is known', () => {
  const host = aHostReading(now());
  telemetry.addHost(node, host);
  telemetry.addHost(node, { ...host, cpuUtilization: 99 });
  telemetry.addHost(nodeNameOf('nobody'), host);
  expect(telemetry.newest(node).host).toEqual(host);
});

test('a sweep forgets GPUs that are gone, and makes room from jobs that have ended', () => {
  telemetry.addGpu(node, aReading({ atMs: now(), task }));
  state.nodes.set(node, aNode('node-1', { inventory: anInventory({ gpus: someGpus('new', 1) }) }));
  expect(telemetry.newest(node).gpus).toEqual([]);
  clock.nowMs += 60_000;
  telemetry.sweep();
  state.nodes.set(node, aNode('node-1'));
  expect(telemetry.newest(node).gpus).toEqual([]);
  expect(valuesOf()).toEqual([[50]]);
  clock.nowMs += 7 * 3_600_000;
  telemetry.sweep();
  expect(telemetry.usage).toMatchObject({ bytes: 0, series: 0 });
  expect(someMs).toBeLessThan(now());
});

test('a sweep forgets nodes that were removed, so that another machine of that name begins afresh', () => {
  telemetry.addHost(node, aHostReading(now()));
  state.nodes.delete(node);
  clock.nowMs += 60_000;
  telemetry.sweep();
  state.nodes.set(node, aNode('node-1'));
  expect(telemetry.newest(node).host).toBeNull();
});
