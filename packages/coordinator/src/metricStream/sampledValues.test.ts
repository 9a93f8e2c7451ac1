import { join } from 'node:path';
import type { JobId, NodeName } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import type { MetricSeries } from '@muster/common/telemetry';
import { beforeEach, expect, test } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
import { TestClock } from '../coordinatorFixture.ts';
import { Positions } from '../metricQuery/positions.ts';
import type { Job, Node } from '../model.ts';
import { aNode, nodeNameOf, seededRandom } from '../modelFixture.ts';
import { ClusterHistory } from '../telemetry/clusterHistory.ts';
import { TelemetryFile } from '../telemetry/telemetryFile.ts';
import { aReading, runningJob, runningJobId } from '../telemetry/telemetryFixture.ts';
import { TelemetryStore } from '../telemetry/telemetryStore.ts';
import { Arrivals } from './arrivals.ts';
import { type FollowOptions, followValues, type ValueSource, type ValueUpdate } from './followValues.ts';
import { clusterValues, GpuValues, hostValues } from './sampledValues.ts';

const nodes = ['node-1', 'node-2'].map(nodeNameOf);
const state: { jobs: Map<JobId, Job>; nodes: Map<NodeName, Node> } = {
  jobs: new Map([[runningJobId, runningJob]]),
  nodes: new Map(nodes.map((name) => [name, aNode(name)])),
};
const host = { intervalMs: 10_000, cpuUtilization: 5, memoryUsedMb: 1, networkReceiveBytes: 7 };

let path: string;
let wall: TestClock;
beforeEach(() => {
  path = join(tempDir('values').path, 'telemetry.snapshot');
  wall = new TestClock();
});

/** A coordinator's memory. Each has its own monotonic clock, which starts at `beganMs`, as after a restart of the machine. */
function memory(beganMs: number) {
  const clock = { wallMs: () => wall.wallMs(), monotonicMs: () => wall.monotonicMs() - beganMs };
  const now = { wallMs: clock.wallMs, monotonicMs: clock.monotonicMs };
  const telemetry = new TelemetryStore({
    state,
    clock: clock,
    bytesMax: 2 ** 22,
  });
  const clusterHistory = new ClusterHistory({ sample: () => new Map([['jobs_running', 3]]), ...now });
  const file = new TelemetryFile({
    path,
    telemetry,
    clusterHistory,
    reserve: { requireSpace() {} },
    clock: clock,
    log: silentLogger,
  });
  const arrivals = new Arrivals();
  telemetry.onTaken = (node, task) =>
    arrivals.arrived(task === null ? { kind: 'host', node } : { kind: 'gpu', node, jobId: task.jobId });
  clusterHistory.onSampled = () => arrivals.arrived({ kind: 'cluster' });
  const add = (rank: number, atMs: number, utilization: number) =>
    telemetry.addGpu(
      nodes[rank] as NodeName,
      aReading({
        gpuUuid: `GPU-node-${rank + 1}-0`,
        task: { jobId: runningJobId, attempt: 1, nodeRank: rank },
        atMs,
        utilization,
      }),
    );
  return { parts: { telemetry, clusterHistory, arrivals, ...now }, file, add };
}

const ofJob = {
  field: 'utilization',
  jobId: runningJobId,
  attempt: null,
  node: null,
  isWanted: () => true,
} as const;
const toEnd: FollowOptions = { follow: false, withEarlier: true };

async function all(values: ValueSource, positions: Positions, options = toEnd): Promise<ValueUpdate[]> {
  const updates: ValueUpdate[] = [];
  for await (const update of followValues(values, positions, options, new AbortController().signal))
    updates.push(update);
  return updates;
}

const valuesOf = (series: readonly MetricSeries[]) =>
  series.flatMap(({ points }) => points.map(({ value }) => value));

test('whatever arrives in whatever order is told once, over breaks of the stream and restarts', async () => {
  const random = seededRandom(7);
  const received: number[][] = [[], []];
  const sent: number[][] = [[], []];
  let kept = memory(0);
  let position = String(wall.wallMs() - 1);
  const take = (updates: readonly ValueUpdate[]) => {
    for (const { series } of updates)
      for (const { nodeRank, points } of series)
        for (const { value } of points) received[nodeRank ?? 0]?.push(value ?? -1);
  };
  /** What a node could not send yet. */
  const held: (readonly [atMs: number, value: number])[][] = [[], []];
  for (let round = 0; round < 200; round += 1) {
    wall.nowMs += 10_000;
    for (const rank of [0, 1]) {
      held[rank]?.push([wall.wallMs() - 100 * rank, round]);
      if (random() < 0.3) continue;
      for (const [atMs, value] of held[rank]?.splice(0) ?? []) {
        kept.add(rank, atMs, value);
        sent[rank]?.push(value);
      }
    }
    if (random() < 0.1) {
      wall.nowMs += 5;
      await kept.file.close();
      kept = memory(wall.monotonicMs() - 5_000 - round / 7);
      await kept.file.load();
    }
    if (random() < 0.5) continue;
    const positions = Positions.parse(position, false);
    const updates = await all(new GpuValues(kept.parts, ofJob, positions), positions);
    // A client may have got only the first of them.
    const got = updates.slice(0, Math.ceil(updates.length * random()));
    take(got);
    position = got.at(-1)?.position ?? position;
  }
  const positions = Positions.parse(position, false);
  take(await all(new GpuValues(kept.parts, ofJob, positions), positions));
  expect(sent[0]?.length).toBeGreaterThan(150);
  expect(received).toEqual(sent);
});

test('a stream that follows is told of what arrives, and of nothing else', async () => {
  const { parts, add } = memory(0);
  add(0, wall.wallMs(), 1);
  const positions = new Positions(wall.wallMs());
  const over = new AbortController();
  const values = new GpuValues(parts, { ...ofJob, node: nodes[0] ?? null }, positions);
  const updates = followValues(values, positions, { follow: true, withEarlier: false }, over.signal);
  const next = updates.next();
  wall.nowMs += 10_000;
  add(1, wall.wallMs(), 2);
  add(0, wall.wallMs(), 3);
  const { value } = await next;
  expect(value).toEqual({
    series: [
      {
        attempt: 1,
        nodeRank: 0,
        node: 'node-1',
        gpuUuid: 'GPU-node-1-0',
        points: [{ atMs: wall.wallMs(), value: 3 }],
      },
    ],
    position: `${wall.wallMs() - 10_000},node-1=${wall.wallMs()}`,
  });
  const last = updates.next();
  over.abort();
  expect(await last).toEqual({ value: undefined, done: true });
});

test('of jobs that are not wanted nothing is told, and of several each says which it is', async () => {
  const { parts, add } = memory(0);
  wall.nowMs += 10_000;
  add(0, wall.wallMs(), 1);
  const ask = async (isWanted: () => boolean) => {
    const positions = new Positions(0);
    const values = new GpuValues(parts, { ...ofJob, jobId: null, isWanted }, positions);
    return (await all(values, positions)).flatMap(({ series }) => series.map(({ jobId }) => jobId));
  };
  expect(await ask(() => false)).toEqual([]);
  expect(await ask(() => true)).toEqual([runningJobId]);
});

test('nodes and the cluster are told at the pace at which they are kept', async () => {
  const { parts } = memory(0);
  const began = wall.wallMs();
  for (let index = 1; index <= 6; index += 1) {
    wall.nowMs += 10_000;
    for (const node of nodes)
      parts.telemetry.addHost(node, {
        ...host,
        load1: index,
        networkTransmitBytes: null,
        atMs: wall.wallMs(),
      });
    parts.clusterHistory.run();
  }
  const positions = new Positions(began);
  const updates = await all(hostValues(parts, 'node_load1', nodes[1] ?? null, positions), positions);
  expect(updates.map(({ series }) => [series[0]?.node, valuesOf(series)])).toEqual([['node-2', [1, 3]]]);
  const everywhere = new Positions(began + 30_000);
  const later = await all(hostValues(parts, 'node_load1', null, everywhere), everywhere);
  expect(later.flatMap(({ series }) => valuesOf(series)).length).toBe(2);
  const ofCluster = new Positions(began);
  const counted = await all(clusterValues(parts, 'jobs_running', ofCluster), ofCluster);
  expect(counted.map(({ series }) => valuesOf(series))).toEqual([[3, 3]]);
  const again = Positions.parse(counted.at(-1)?.position ?? '', false);
  expect(await all(clusterValues(parts, 'jobs_running', again), again)).toEqual([]);
});
