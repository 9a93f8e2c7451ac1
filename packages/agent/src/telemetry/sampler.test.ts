import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bareGpu } from '@muster/common/hardware';
import { type JobId, type TaskRef, taskKey } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import type { GpuReading, HostReading } from '@muster/common/telemetry';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import {
  emptySample,
  type GpuListing,
  type GpuObservation,
  type GpuProblem,
  type GpuSampling,
} from '../gpus/gpuSource.ts';
import { TelemetrySampler } from './sampler.ts';
import { UsageMeter } from './usageMeter.ts';

const task: TaskRef = { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 };
const lost: GpuProblem = {
  kind: 'lost',
  gpuUuid: 'GPU-1',
  pciBusId: '00000000:1b:00.0',
  message: 'GPU 0 is lost',
  evidence: 'GPU is lost',
};
const host: HostReading = {
  atMs: 1,
  intervalMs: 10_000,
  cpuUtilization: 5,
  memoryUsedMb: 10,
  load1: 1,
  networkReceiveBytes: null,
  networkTransmitBytes: null,
};

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
  return () => vi.useRealTimers();
});

/** A node with one GPU, whose driver does what the test says. */
function aNode(listIntervalMs = 60_000) {
  const root = mkdtempSync(join(tmpdir(), 'sampler-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, taskKey(task)));
  const driver = {
    listings: 0,
    isGpuMissing: false,
    list: async (): Promise<GpuListing> => ({
      gpus: [bareGpu('GPU-1')],
      driverVersion: '580.1',
      cudaVersion: '13.0',
      links: [],
      problems: [],
    }),
    sample: async (): Promise<GpuSampling> => ({
      samples: [{ ...emptySample('GPU-1'), utilization: 50, powerWatts: 100 }],
      problems: [],
    }),
  };
  const observations: GpuObservation[] = [];
  const sent: { gpus: readonly GpuReading[]; host: HostReading | null }[] = [];
  const holders = new Map<string, TaskRef>();
  const meter = new UsageMeter({
    fileOf: (of) => join(root, taskKey(of), 'usage.json'),
    onError: (_task, error) => expect.unreachable(String(error)),
  });
  const sampler = new TelemetrySampler({
    gpus: {
      list: () => {
        driver.listings += 1;
        return driver.list();
      },
      sample: () => driver.sample(),
    },
    sourceName: 'nvml',
    profilingSource: () => null,
    onRead: () => {},
    intervalMs: 1_000,
    listIntervalMs,
    holders: () => holders,
    isGpuMissing: () => driver.isGpuMissing,
    readHost: async () => host,
    meter,
    wallMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    log: silentLogger,
    onObservation: (observation) => observations.push(observation),
    onReadings: (gpus, hostReading) => sent.push({ gpus, host: hostReading }),
  });
  onTestFinished(() => sampler.close());
  return { driver, sampler, observations, sent, holders, meter };
}

test('the first observation is there when it has started', async () => {
  const { sampler, observations } = aNode();
  expect(sampler.observation()).toMatchObject({ gpus: [], atMs: 0 });
  await sampler.start();
  expect(observations).toMatchObject([
    { gpuDriver: { source: 'nvml', driverVersion: '580.1', cudaVersion: '13.0' }, problems: [] },
  ]);
  expect(observations[0]?.samples.get('GPU-1')).toMatchObject({ utilization: 50, temperature: null });
});

test('readings come every ten seconds, with the task that holds the GPU, and its usage grows', async () => {
  const { sampler, sent, holders, meter } = aNode();
  holders.set('GPU-1', task);
  await sampler.start();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(sent).toMatchObject([
    { gpus: [{ task, utilization: 50, intervalMs: 10_000 }], host },
    { gpus: [{ task, energyJoules: 1_000 }] },
  ]);
  expect(meter.usageOf(task)).toMatchObject({ observedGpuSeconds: 20, utilizationPeak: 50 });
});

test('a reading ends with the task', async () => {
  const { sampler, sent, holders } = aNode();
  holders.set('GPU-1', task);
  await sampler.start();
  await vi.advanceTimersByTimeAsync(4_000);
  holders.delete('GPU-1');
  await vi.advanceTimersByTimeAsync(6_000);
  expect(sent[0]?.gpus).toMatchObject([
    { task, intervalMs: 4_000 },
    { task: null, intervalMs: 6_000 },
  ]);
});

test('a GPU that fails is asked after at once, and its values are not repeated', async () => {
  const { sampler, driver, observations } = aNode();
  await sampler.start();
  expect(driver.listings).toBe(1);
  driver.sample = async () => ({ samples: [], problems: [lost] });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(observations.at(-1)).toMatchObject({ problems: [lost] });
  expect(observations.at(-1)?.samples.size).toBe(0);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(driver.listings).toBe(2);
});

test('a source that fails as a whole is a problem, and heals', async () => {
  const { sampler, driver, observations } = aNode();
  const { list, sample } = driver;
  driver.list = () => Promise.reject(new Error('no driver'));
  driver.sample = () => Promise.reject(new Error('no driver'));
  await sampler.start();
  expect(observations.at(-1)?.problems).toMatchObject([
    { kind: 'unreadable', message: 'no driver' },
    { kind: 'unreadable' },
  ]);
  Object.assign(driver, { list, sample });
  await vi.advanceTimersByTimeAsync(61_000);
  expect(observations.at(-1)).toMatchObject({ gpus: [{ uuid: 'GPU-1' }], problems: [] });
});

test('what was listed stays listed while the driver does not answer', async () => {
  const { sampler, driver, observations } = aNode();
  await sampler.start();
  driver.list = () => Promise.reject(new Error('timed out'));
  driver.sample = async () => ({ samples: [], problems: [lost] });
  await vi.advanceTimersByTimeAsync(2_000);
  expect(observations.at(-1)).toMatchObject({ gpus: [{ uuid: 'GPU-1' }] });
});

test('a GPU that could not be listed is listed again within half a minute of its recovery', async () => {
  const { driver, sampler } = aNode(600_000);
  const well = driver.list;
  const unlisted: GpuProblem = { kind: 'lost', gpuUuid: null, pciBusId: null, message: 'm', evidence: 'e' };
  driver.list = async () => ({ ...(await well()), gpus: [], problems: [unlisted] });
  driver.sample = async () => ({ samples: [], problems: [] });
  await sampler.start();
  expect(sampler.observation().gpus).toEqual([]);
  driver.list = well;
  await vi.advanceTimersByTimeAsync(31_000);
  expect(sampler.observation()).toMatchObject({ gpus: [{ uuid: 'GPU-1' }], problems: [] });
});

test('while a GPU is missing from the listing it is looked for, until it is back or forgotten', async () => {
  const { driver, sampler } = aNode(600_000);
  const well = driver.list;
  driver.list = async () => ({ ...(await well()), gpus: [] });
  driver.sample = async () => ({ samples: [], problems: [] });
  driver.isGpuMissing = true;
  await sampler.start();
  driver.list = well;
  await vi.advanceTimersByTimeAsync(31_000);
  expect(sampler.observation()).toMatchObject({ gpus: [{ uuid: 'GPU-1' }] });
  driver.isGpuMissing = false;
  const { listings } = driver;
  await vi.advanceTimersByTimeAsync(300_000);
  expect(driver.listings).toBe(listings);
});

test('what stays as it is until somebody changes the node asks for no more listings', async () => {
  const { driver, sampler } = aNode(600_000);
  const well = driver.list;
  const lasting: GpuProblem = {
    kind: 'no_instances',
    gpuUuid: 'GPU-2',
    pciBusId: null,
    message: 'm',
    evidence: 'e',
  };
  driver.list = async () => ({ ...(await well()), problems: [lasting] });
  await sampler.start();
  await vi.advanceTimersByTimeAsync(300_000);
  expect(driver.listings).toBe(1);
});

test('after its end nothing is read', async () => {
  const { sampler, observations } = aNode();
  await sampler.start();
  sampler.close();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(observations).toHaveLength(1);
});

test('problems that come and go do not make it list at every sample', async () => {
  const { sampler, driver } = aNode();
  await sampler.start();
  let reads = 0;
  driver.sample = async () => ({ samples: [], problems: (reads += 1) % 2 === 0 ? [] : [lost] });
  await vi.advanceTimersByTimeAsync(30_000);
  expect(driver.listings).toBeGreaterThan(2);
  expect(driver.listings).toBeLessThanOrEqual(5);
});

test('while a listing hangs, what was read before it is not shown for long', async () => {
  const { sampler, driver } = aNode();
  await sampler.start();
  driver.list = () => new Promise(() => {});
  await vi.advanceTimersByTimeAsync(62_000);
  expect(sampler.observation().samples.size).toBe(1);
  await vi.advanceTimersByTimeAsync(15_000);
  expect(sampler.observation()).toMatchObject({ gpus: [{ uuid: 'GPU-1' }], samples: new Map() });
});
