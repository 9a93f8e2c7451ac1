import { expect, test } from 'vitest';
import type { JobId } from '../ids.ts';
import type { GpuReading, GpuUsage, HostReading, MetricsView, NodeTelemetry } from '../telemetry.ts';
import {
  gpuReadingFromWire,
  gpuReadingToWire,
  gpuUsage,
  hostReadingFromWire,
  hostReadingToWire,
  metricsFromWire,
  metricsToWire,
  nodeTelemetryFromWire,
  nodeTelemetryToWire,
} from './codec.ts';
import { agentHubService, musterService } from './service.ts';
import { asked, sent } from './wireFixture.ts';

// Values that a 32-bit float holds exactly.
const reading: GpuReading = {
  gpuUuid: 'GPU-a',
  atMs: 1_700_000_000_000,
  intervalMs: 10_000,
  task: { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 },
  utilization: 97.5,
  memoryUsedMb: 81_000,
  powerWatts: 698.25,
  energyJoules: 6_982.5,
  smActive: 0.5,
  tensorActive: 0.25,
  dramActive: 0.125,
  temperature: 64,
  nvlinkReceiveBytes: 1_250_000.5,
  nvlinkTransmitBytes: null,
};
const idle: GpuReading = {
  ...reading,
  task: null,
  utilization: 0,
  memoryUsedMb: 0,
  powerWatts: 0,
  energyJoules: 0,
  smActive: 0,
  tensorActive: 0,
  dramActive: 0,
  temperature: 0,
};
const unread: GpuReading = {
  ...reading,
  task: null,
  utilization: null,
  memoryUsedMb: null,
  powerWatts: null,
  energyJoules: null,
  smActive: null,
  tensorActive: null,
  dramActive: null,
  temperature: null,
};
const host: HostReading = {
  atMs: 1_700_000_000_000,
  intervalMs: 10_000,
  cpuUtilization: 12.5,
  memoryUsedMb: 2 ** 33,
  load1: 1.5,
  networkReceiveBytes: 1.25e9,
  networkTransmitBytes: 0,
};
const hostUnread: HostReading = {
  ...host,
  cpuUtilization: null,
  memoryUsedMb: null,
  load1: null,
  networkReceiveBytes: null,
  networkTransmitBytes: null,
};

const readingThrough = (value: GpuReading) => {
  const { gpus } = asked(agentHubService.UploadTelemetry, { gpus: [gpuReadingToWire(value)] });
  return gpus.map(gpuReadingFromWire);
};

test.each([
  ['of a busy GPU', reading],
  ['of an idle GPU', idle],
  ['of a GPU that reported nothing', unread],
])('a reading %s is the same on the other side: 0 is not unknown', (_, value) => {
  expect(readingThrough(value)).toEqual([value]);
});

test.each([host, hostUnread])('a reading of a host is the same on the other side', (value) => {
  const { host: wire } = asked(agentHubService.UploadTelemetry, { host: hostReadingToWire(value) });
  expect(wire === null ? null : hostReadingFromWire(wire)).toEqual(value);
});

test('numbers that are none were not read', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    expect(readingThrough({ ...reading, utilization: value, powerWatts: value })).toEqual([
      { ...reading, utilization: null, powerWatts: null },
    ]);
  }
});

const usage: GpuUsage = {
  gpus: 8,
  observedGpuSeconds: 80.5,
  utilizationMean: 0,
  utilizationPeak: 100,
  memoryPeakMb: 0,
  energyKwh: 0.001,
  idleGpuSeconds: 80.5,
  smActiveMean: 0,
  tensorActiveMean: 0.1,
};
const usageUnread: GpuUsage = {
  gpus: 0,
  observedGpuSeconds: 0,
  utilizationMean: null,
  utilizationPeak: null,
  memoryPeakMb: null,
  energyKwh: null,
  idleGpuSeconds: null,
  smActiveMean: null,
  tensorActiveMean: null,
};

test.each([usage, usageUnread, null])(
  'what a task did with its GPUs is the same on the other side',
  (value) => {
    const { report } = asked(agentHubService.Session, {
      report: { exit: { gpuUsage: value && gpuUsage.toWire(value) } },
    });
    const read = report?.exit?.gpuUsage ?? null;
    expect(read && gpuUsage.fromWire(read)).toEqual(value);
  },
);

test('the newest of a node is the same on the other side, and so is nothing', () => {
  const telemetry: NodeTelemetry = { node: 'node-1', host, gpus: [reading, unread] };
  const nothing: NodeTelemetry = { node: 'node-2', host: null, gpus: [] };
  const { nodes } = sent(musterService.ListTelemetry, {
    nodes: [telemetry, nothing].map(nodeTelemetryToWire),
  });
  expect(nodes.map(nodeTelemetryFromWire)).toEqual([telemetry, nothing]);
});

test('metrics are the same on the other side, with their gaps', () => {
  const points = [
    { atMs: 1, value: 0 },
    { atMs: 2, value: null },
    { atMs: 3, value: 0.1 },
  ];
  const metrics: MetricsView = {
    unit: 'percent',
    series: [{ attempt: 1, nodeRank: 0, node: 'node-1', gpuUuid: 'GPU-a', points }],
  };
  expect(metricsFromWire(sent(musterService.QueryMetrics, metricsToWire(metrics)))).toEqual(metrics);
});
