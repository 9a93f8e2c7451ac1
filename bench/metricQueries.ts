/**
 * What a question about metrics costs the coordinator, which serves nobody else meanwhile: a memory that is full of readings, asked for
 * a job, for all jobs, and for the network of a node; and what it costs to keep that memory in a file and to read it back.
 *
 *     node bench/metricQueries.ts
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { bareGpu } from '@muster/common/hardware';
import type { JobId, NodeName } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import { type HostReading, readingIntervalMs } from '@muster/common/telemetry';
import { coordinatorDefaults } from '@muster/coordinator/options';
import { aggregated } from '../packages/coordinator/src/metricQuery/aggregate.ts';
import { planOf } from '../packages/coordinator/src/metricQuery/plan.ts';
import type { Job, Node } from '../packages/coordinator/src/model.ts';
import { aJob, aNode, anAttempt, anInventory, aTask } from '../packages/coordinator/src/modelFixture.ts';
import { ClusterHistory } from '../packages/coordinator/src/telemetry/clusterHistory.ts';
import { TelemetryFile } from '../packages/coordinator/src/telemetry/telemetryFile.ts';
import { TelemetryStore } from '../packages/coordinator/src/telemetry/telemetryStore.ts';
import { report, reportMachine, rounded } from './support.ts';

const nodeCount = 70;
const gpusPerNode = 8;
const hours = 6;
const rounds = 20;

class Clock {
  nowMs = 0;
  monotonicMs = () => this.nowMs;
  wallMs = () => 1_700_000_000_000 + this.nowMs;
}

function nodeNamed(index: number): NodeName {
  return `node-${index}` as NodeName;
}

function uuid(node: number, gpu: number): string {
  return `GPU-${node}-${gpu}`;
}

function aMemory(clock: Clock, path: string) {
  const jobs = new Map<JobId, Job>();
  const nodes = new Map<NodeName, Node>();
  for (let index = 0; index < nodeCount; index += 1) {
    const name = nodeNamed(index);
    const gpuUuids = Array.from({ length: gpusPerNode }, (_, gpu) => uuid(index, gpu));
    nodes.set(name, aNode(name, { inventory: anInventory({ gpus: gpuUuids.map((each) => bareGpu(each)) }) }));
    const tasks = [aTask(0, { node: name, gpuUuids, state: 'running' })];
    const job = aJob(index + 1, {
      state: { kind: 'running', attempt: anAttempt(1, { state: 'running', tasks }) },
    });
    jobs.set(job.id, job);
  }
  const telemetry = new TelemetryStore({
    state: { jobs, nodes },
    clock,
    bytesMax: coordinatorDefaults.telemetryBytes,
  });
  const sample = () => new Map<string, number>();
  const clusterHistory = new ClusterHistory({ sample, monotonicMs: clock.monotonicMs, wallMs: clock.wallMs });
  const reserve = { requireSpace: () => {} };
  const file = new TelemetryFile({ path, telemetry, clusterHistory, reserve, clock, log: silentLogger });
  return { telemetry, clusterHistory, file, jobs: [...jobs.keys()] };
}

function fill(clock: Clock, { telemetry, clusterHistory, jobs }: ReturnType<typeof aMemory>): void {
  const host: HostReading = {
    atMs: 0,
    intervalMs: readingIntervalMs,
    cpuUtilization: 40,
    memoryUsedMb: 100_000,
    load1: 12,
    networkReceiveBytes: 5e9,
    networkTransmitBytes: 5e9,
  };
  for (let interval = 0; interval < (hours * 3_600_000) / readingIntervalMs; interval += 1) {
    clock.nowMs += readingIntervalMs;
    for (const [index, jobId] of jobs.entries()) {
      const atMs = clock.wallMs();
      for (let gpu = 0; gpu < gpusPerNode; gpu += 1) {
        const value = (interval + index + gpu) % 97;
        telemetry.addGpu(nodeNamed(index), {
          gpuUuid: uuid(index, gpu),
          atMs,
          intervalMs: readingIntervalMs,
          task: { jobId, attempt: 1, nodeRank: 0 },
          utilization: value,
          memoryUsedMb: 40_000 + value,
          powerWatts: 400 + value,
          energyJoules: 4_000 + value,
          smActive: value / 100,
          tensorActive: value / 200,
          dramActive: value / 300,
          temperature: 40 + value / 4,
          nvlinkReceiveBytes: 1e9 + value,
          nvlinkTransmitBytes: 1e9 + value,
        });
      }
      telemetry.addHost(nodeNamed(index), { ...host, atMs });
    }
    clusterHistory.run();
  }
}

async function measure(name: string, ask: () => unknown): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const startedMs = performance.now();
    await ask();
    times.push(performance.now() - startedMs);
  }
  times.sort((a, b) => a - b);
  report(name, { p50Ms: rounded(times[rounds >> 1] ?? 0), maxMs: rounded(times.at(-1) ?? 0) });
}

/** CPU time and not a time of day: the machine may be busy. */
async function cpuMsOf(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return rounded((user + system) / 1_000);
}

const directory = mkdtempSync(join(tmpdir(), 'muster-bench-'));
try {
  reportMachine();
  const clock = new Clock();
  const path = join(directory, 'telemetry.snapshot');
  const full = aMemory(clock, path);
  fill(clock, full);
  const { telemetry, jobs } = full;
  report('readings in memory', {
    taken: telemetry.taken,
    evicted: telemetry.usage.evicted,
    bytes: telemetry.usage.bytes,
  });

  const nowMs = clock.wallMs();
  const asked = (ids: readonly JobId[], more: object) => {
    const plan = planOf(
      { jobId: ids.length === 1 ? (ids[0] ?? '') : '', name: 'gpu_utilization', ...more },
      nowMs,
    );
    const { shape, fromMs } = plan;
    const series = ids.flatMap((jobId) =>
      telemetry
        .query({ jobId, field: 'utilization', sinceMs: nowMs - fromMs, attempt: null })
        .map((each) => ({ jobId, ...each })),
    );
    return shape === null ? series : aggregated(series, shape);
  };
  const [one] = jobs;
  if (one === undefined) throw new Error('there is no job');
  await measure('a job of 8 GPUs, half an hour, raw', () => asked([one], { startTime: '-30m' }));
  await measure('a job of 8 GPUs, 6 h, p95 by minute over ranks', () =>
    asked([one], { startTime: '-6h', stepMs: 60_000, aggregation: 'p95', by: 'job' }),
  );
  await measure('560 GPUs, half an hour, mean of each job by 10 s', () => asked(jobs, { startTime: '-30m' }));
  await measure('14 jobs of 8 GPUs, 6 h: as many readings as are answered', () =>
    asked(jobs.slice(0, 14), {}),
  );
  await measure('network of a node, 6 h', () =>
    telemetry.hostPoints(nodeNamed(0), 'network_receive_bytes_per_second', 0, Number.POSITIVE_INFINITY),
  );

  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const writtenMs = await cpuMsOf(() => full.file.close());
  delay.disable();
  report('written to its file', {
    cpuMs: writtenMs,
    mebibytes: rounded(statSync(path).size / 1024 / 1024),
    longestBlockMs: rounded(delay.max / 1e6),
  });
  const again = aMemory(clock, path);
  const readMs = await cpuMsOf(() => again.file.load());
  report('read from its file', { cpuMs: readMs, series: again.telemetry.usage.series });
} finally {
  rmSync(directory, { recursive: true });
}
