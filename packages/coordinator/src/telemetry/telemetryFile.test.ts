import { existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MusterError } from '@muster/common/errors';
import type { JobId, NodeName } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import type { GpuReading, HostReading } from '@muster/common/telemetry';
import { beforeEach, expect, test } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
import { TestClock } from '../coordinatorFixture.ts';
import type { Job, Node } from '../model.ts';
import { aNode, nodeNameOf } from '../modelFixture.ts';
import { ClusterHistory } from './clusterHistory.ts';
import { snapshotIntervalMs, TelemetryFile } from './telemetryFile.ts';
import { aReading, runningJob, runningJobId } from './telemetryFixture.ts';
import { TelemetryStore } from './telemetryStore.ts';

const node = nodeNameOf('node-1');
const task = { jobId: runningJobId, attempt: 1, nodeRank: 0 };
const state: { jobs: Map<JobId, Job>; nodes: Map<NodeName, Node> } = {
  jobs: new Map([[runningJobId, runningJob]]),
  nodes: new Map([[node, aNode('node-1')]]),
};

let path: string;
let warnings: string[];
beforeEach(() => {
  path = join(tempDir('readings').path, 'telemetry.snapshot');
  warnings = [];
});

/** A coordinator's memory. A test passes another clock where the machine has restarted. */
function memory(clock: TestClock, { bytesMax = 2 ** 20, full = false } = {}) {
  const telemetry = new TelemetryStore({ state, clock, bytesMax });
  const clusterHistory = new ClusterHistory({
    sample: () => new Map([['jobs_running', 3]]),
    monotonicMs: () => clock.monotonicMs(),
    wallMs: () => clock.wallMs(),
  });
  const requireSpace = () => {
    if (full) throw new MusterError('resource_exhausted', 'the disk is full');
  };
  const log = { ...silentLogger, warn: (_: object, text: string) => void warnings.push(text) };
  const file = new TelemetryFile({ path, telemetry, clusterHistory, reserve: { requireSpace }, clock, log });
  const add = (fields: Partial<GpuReading>) =>
    telemetry.addGpu(node, aReading({ atMs: clock.wallMs(), task, ...fields }));
  const seen = () => ({
    gpu: telemetry.query({ jobId: runningJobId, field: 'utilization', sinceMs: 1e12, attempt: null }),
    nvlink: telemetry.query({
      jobId: runningJobId,
      field: 'nvlinkReceiveBytes',
      sinceMs: 1e12,
      attempt: null,
    }),
    host: telemetry.hostPoints(node, 'network_receive_bytes_per_second', 0, 1e15),
    cluster: clusterHistory.points('jobs_running', 0, 1e15),
  });
  return { telemetry, clusterHistory, file, add, seen };
}

const host: HostReading = {
  atMs: 0,
  intervalMs: 10_000,
  cpuUtilization: null,
  memoryUsedMb: null,
  load1: null,
  networkReceiveBytes: 5e9,
  networkTransmitBytes: null,
};

/** An hour of one GPU, its node and the cluster, and the clock at its end. */
function anHour(options = {}) {
  const clock = new TestClock();
  clock.nowMs = 10_000_000;
  const before = memory(clock, options);
  for (let index = 0; index < 360; index += 1) {
    clock.nowMs += 10_000;
    before.add({ utilization: index % 7 === 0 ? null : index % 100, nvlinkReceiveBytes: 1e9 + index });
    before.telemetry.addHost(node, { ...host, atMs: clock.wallMs() });
    before.clusterHistory.run();
  }
  return { clock, ...before };
}

/** The machine was off for ten minutes. */
function restarted(clock: TestClock): TestClock {
  const later = new TestClock();
  const wallMs = clock.wallMs() + 600_000;
  later.nowMs = 5_000;
  later.wallMs = () => wallMs + later.nowMs - 5_000;
  return later;
}

test('what was kept is there after a restart, at the same times, and what follows continues it', async () => {
  const { clock, file, seen } = anHour();
  await file.close();
  const later = restarted(clock);
  const after = memory(later);
  await after.file.load();
  expect(after.seen()).toEqual(seen());
  expect(after.telemetry.fromMs).toBeLessThan(clock.wallMs() - 3_000_000);
  const before = after.seen().gpu[0]?.points.length ?? 0;
  after.add({ utilization: 5 });
  expect(after.seen().gpu[0]?.points).toHaveLength(before + 1);
  expect(warnings).toEqual([]);
  expect(readdirSync(join(path, '..'))).toEqual(['telemetry.snapshot']);
});

test('it is written every five minutes, and not below the reserve', async () => {
  const { clock, file } = anHour();
  await file.run();
  expect(existsSync(path)).toBe(true);
  const { mtimeMs } = { mtimeMs: readFileSync(path).length };
  await file.run();
  expect(readFileSync(path).length).toBe(mtimeMs);
  clock.nowMs += snapshotIntervalMs;
  const full = memory(clock, { full: true });
  clock.nowMs += snapshotIntervalMs;
  await full.file.run();
  clock.nowMs += snapshotIntervalMs;
  await full.file.run();
  expect(warnings).toEqual(['readings could not be written: a restart would lose them']);
});

test('of a damaged file what stands before the damage counts, wherever it is, and one log line', async () => {
  const { clock, file, seen } = anHour();
  await file.close();
  const whole = readFileSync(path);
  for (let cut = 0; cut < whole.length; cut += Math.ceil(whole.length / 40)) {
    warnings = [];
    if (cut % 2 === 0) {
      const flipped = Buffer.from(whole);
      flipped[cut] = (flipped[cut] ?? 0) ^ 0xff;
      writeFileSync(path, flipped);
    } else {
      writeFileSync(path, whole);
      truncateSync(path, cut);
    }
    const after = memory(restarted(clock));
    await after.file.load();
    const points = after.seen().gpu[0]?.points ?? [];
    expect(seen().gpu[0]?.points.slice(0, points.length)).toEqual(points);
    // A flip in the time of the head moves all of it, which no checksum of a frame shows.
    if (cut > 20) expect(warnings).toHaveLength(1);
  }
});

test.each([
  ['of something else', Buffer.from('not a snapshot at all, but long enough')],
  ['of zeros', Buffer.alloc(4_096)],
])('a file %s is left alone', async (_, content) => {
  writeFileSync(path, content);
  const after = memory(new TestClock());
  await after.file.load();
  expect(after.seen()).toEqual({ gpu: [], nvlink: [], host: [], cluster: [] });
  expect(warnings).toEqual([
    'the file of readings is not one of ours, or of a later version, and is not read',
  ]);
});

test('with a smaller budget the newest is kept, and what is older than six hours is not', async () => {
  const { clock, file } = anHour();
  await file.close();
  const small = memory(restarted(clock), { bytesMax: 6_000 });
  await small.file.load();
  const points = small.seen().gpu[0]?.points ?? [];
  expect(points.length).toBeGreaterThan(0);
  expect(points.length).toBeLessThan(200);
  expect(points.at(-1)?.atMs).toBe(clock.wallMs());
  const later = restarted(clock);
  const { wallMs } = later;
  later.wallMs = () => wallMs() + 7 * 3_600_000;
  const old = memory(later);
  await old.file.load();
  expect(old.seen().gpu).toEqual([]);
});

test('a wall clock that was set back since moves readings to now, and none into the future', async () => {
  const { clock, file } = anHour();
  await file.close();
  const later = new TestClock();
  later.nowMs = clock.nowMs;
  later.wallMs = () => clock.wallMs() - 86_400_000;
  const after = memory(later);
  await after.file.load();
  const points = after.seen().gpu[0]?.points ?? [];
  expect(points).toHaveLength(360);
  expect(points.at(-1)?.atMs).toBe(later.wallMs());
});
