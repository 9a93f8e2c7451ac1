/**
 * A day of an agent's watching, as fast as it goes: 86,400 samples of 8 simulated GPUs through the sampler, the health
 * monitor, the usage of a job on half of them, and a scrape every 15 s. Memory must not grow once all windows are full.
 *
 *     node --expose-gc bench/agentDay.ts [hours]
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GpuReader } from '@muster/agent/gpus/gpuReader';
import { createSimulatedSource } from '@muster/agent/gpus/simulated';
import { ConditionStore } from '@muster/agent/health/conditionStore';
import { defaultConditionTable } from '@muster/agent/health/conditionTable';
import { HealthMonitor } from '@muster/agent/health/monitor';
import { HostMetrics, toReading } from '@muster/agent/host/hostMetrics';
import { GpuReads } from '@muster/agent/metrics/gpuReads';
import { renderPage } from '@muster/agent/metrics/page';
import { TelemetrySampler } from '@muster/agent/telemetry/sampler';
import { UsageMeter } from '@muster/agent/telemetry/usageMeter';
import { type JobId, type TaskRef, taskKey } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import { report, reportMachine, rounded } from './support.ts';

const hours = Number(process.argv[2] ?? 24);
const gpuCount = 8;
const collectGarbage = globalThis.gc;
if (collectGarbage === undefined)
  throw new Error('start it with node --expose-gc, or garbage is counted as growth');

/** Each tick of the sampler is a second of this clock, and comes as soon as the one before is done. */
let nowMs = 0;
const pending: { run: (() => void) | null } = { run: null };
const realSetTimeout = globalThis.setTimeout;
globalThis.setTimeout = ((run: () => void, waitMs = 0) => {
  if (waitMs <= 0 || waitMs > 1_000) return realSetTimeout(run, waitMs);
  pending.run = run;
  return realSetTimeout(() => {}, 0);
}) as unknown as typeof setTimeout;

const dir = mkdtempSync(join(tmpdir(), 'muster-bench-'));
const wallMs = () => 1_700_000_000_000 + nowMs;
const clock = { wallMs, monotonicMs: () => nowMs };
const holders = new Map<string, TaskRef>();
let jobs = 0;
let readings = 0;
let scrapes = 0;

/** An hour each: what is kept for a task has to go with it. */
function nextJob(): void {
  const jobId = `job_${String(jobs).padStart(12, '0')}` as JobId;
  jobs += 1;
  const task: TaskRef = { jobId, attempt: 1, nodeRank: 0 };
  for (const before of new Set(holders.values())) meter.forget(before);
  mkdirSync(join(dir, taskKey(task)));
  for (let index = 0; index < gpuCount / 2; index += 1) holders.set(`GPU-SIMULATED-bench-${index}`, task);
}

const meter = new UsageMeter({
  fileOf: (task) => join(dir, taskKey(task), 'usage.json'),
  onError: (_task, error) => {
    throw error;
  },
});
const monitor = new HealthMonitor({
  table: defaultConditionTable,
  store: new ConditionStore(dir, silentLogger),
  bootId: 'bench',
  now: () => ({ wallMs: wallMs(), uptimeMs: nowMs }),
  log: silentLogger,
});
const hostMetrics = new HostMetrics({ paths: [dir], monotonicMs: () => nowMs });
let host = hostMetrics.sample();
const gpuReads = new GpuReads();
const source = createSimulatedSource({
  nodeName: 'bench',
  count: gpuCount,
  nowMs: () => nowMs,
  holders: () => new Set(holders.keys()),
});
const sampler = new TelemetrySampler({
  gpus: new GpuReader({ source, profiling: null, clock, log: silentLogger }),
  sourceName: 'simulated',
  profilingSource: () => null,
  intervalMs: 1_000,
  listIntervalMs: 60_000,
  holders: () => holders,
  isGpuMissing: () => false,
  readHost: async () => {
    const sample = hostMetrics.sample();
    const reading = toReading(host, sample, wallMs());
    host = sample;
    return reading;
  },
  meter,
  ...clock,
  log: silentLogger,
  onRead: (seconds) => gpuReads.took('simulated', seconds),
  onObservation: (observation) => {
    monitor.observe(observation);
    monitor.tick();
  },
  onReadings: (gpus) => {
    readings += gpus.length;
  },
});

function scrape(): void {
  const observation = sampler.observation();
  const page = renderPage({
    gpus: { observation, nodeName: 'bench', hostnameLabel: 'Hostname', lastXids: new Map() },
    host,
    agent: {
      version: 'bench',
      startedAtMs: 0,
      cpuSeconds: 0,
      residentBytes: 0,
      tasks: new Map(),
      connected: true,
      heartbeatAgeSeconds: 1,
      gpuReads,
      conditions: monitor.conditions(),
    },
  });
  scrapes += page.length > 0 ? 1 : 0;
}

function heapMib(): number {
  collectGarbage?.();
  return rounded(process.memoryUsage().heapUsed / 1024 / 1024);
}

reportMachine();
try {
  nextJob();
  await sampler.start();
  const startedMs = performance.now();
  const cpuBefore = process.cpuUsage();
  const heapByHour: number[] = [];
  for (let second = 1; second <= hours * 3_600; second += 1) {
    nowMs += 1_000;
    const { run } = pending;
    pending.run = null;
    if (run === null) throw new Error('the sampler has stopped');
    run();
    // Until it asks for its next tick.
    while (pending.run === null) await new Promise((resolve) => setImmediate(resolve));
    if (second % 15 === 0) scrape();
    if (second % 3_600 === 0) {
      heapByHour.push(heapMib());
      nextJob();
    }
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  const [first = 0] = heapByHour.slice(1);
  report('a day of samples', {
    hours,
    gpuCount,
    readings,
    scrapes,
    seconds: rounded((performance.now() - startedMs) / 1000),
    cpuMsPerSample: rounded((user + system) / 1000 / (hours * 3_600)),
    heapMibByHour: heapByHour,
    growthMib: rounded((heapByHour.at(-1) ?? 0) - first),
    target: 'growthMib < 1 from the second hour on',
  });
} finally {
  sampler.close();
  rmSync(dir, { recursive: true });
}
