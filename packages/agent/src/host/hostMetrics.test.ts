import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type FileSystemCalls, FileSystemQuestions, FileSystemSpaces } from './fileSystemSpace.ts';
import { HostTree } from './hostFixture.ts';
import { HostMetrics, type HostSample, toReading } from './hostMetrics.ts';

let tree: HostTree;
let nowMs: number;
beforeEach(() => {
  tree = new HostTree();
  nowMs = 0;
});
afterEach(() => tree.remove());

function asking(statfs: FileSystemCalls['statfs']): FileSystemQuestions {
  return new FileSystemQuestions({ statfs, realPath: (path) => Promise.resolve(path) });
}

function metricsOf(paths: readonly string[] = []): HostMetrics {
  const spaces = new FileSystemSpaces(paths, {
    questions: asking(() => Promise.reject(new Error('not asked for'))),
  });
  return new HostMetrics({ root: tree.root, paths, monotonicMs: () => nowMs, spaces });
}

function netDev(...rows: readonly string[]): string {
  return `Inter-|   Receive                        |  Transmit\n face |bytes    packets errs |bytes    packets\n${rows.join('\n')}\n`;
}

const pciPath = 'pci0000:00/0000:00:03.0';

test('counters are since boot', () => {
  tree.file('proc/stat', 'cpu  1000 20 300 50000 60 7 8 9 10 11\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5\n');
  tree.file('proc/meminfo', 'MemTotal:       2048 kB\nMemFree:         100 kB\nMemAvailable:   1024 kB\n');
  tree.file('proc/loadavg', '0.52 1.41 12.33 3/512 12345\n');
  tree.file(
    'proc/diskstats',
    [
      '   7       0 loop0 1 0 8 1 0 0 0 0 0 0 0 0 0 0 0 0 0',
      ' 259       0 nvme0n1 10 0 100 5 20 0 200 7 0 9 9 0 0 0 0 0 0',
      ' 259       1 nvme0n1p1 9 0 90 5 20 0 200 7 0 9 9 0 0 0 0 0 0',
      '   8       0 sda 1 0 2 1 1 0 4 1 0 1 1',
      '   8       1 sda1 1 0 2 1 1 0 4 1 0 1 1',
      ' 253       0 dm-0 1 0 6 1 1 0 8 1 0 1 1',
      '   8      16 sdb 1 0',
    ].join('\n'),
  );
  tree.pciDevice(pciPath).nic('eth0', pciPath, {});
  tree.file(
    'proc/net/dev',
    netDev(
      '    lo: 5 5 0 0 0 0 0 0 5 5 0 0 0 0 0 0',
      '  eth0: 1821128038   47372    0    0    0     0          0         0  4924307   33377    0    0    0     0       0          0',
      'veth1:7 1 0 0 0 0 0 0 8 1 0 0 0 0 0 0',
    ),
  );
  nowMs = 1_234;
  expect(metricsOf().sample()).toEqual({
    monotonicMs: 1_234,
    cpu: { user: 10, nice: 0.2, system: 3, idle: 500, iowait: 0.6, irq: 0.07, softirq: 0.08, steal: 0.09 },
    memoryTotalBytes: 2_097_152,
    memoryAvailableBytes: 1_048_576,
    load: { load1: 0.52, load5: 1.41, load15: 12.33 },
    disks: [
      { name: 'nvme0n1', readBytes: 51_200, writtenBytes: 102_400 },
      { name: 'sda', readBytes: 1_024, writtenBytes: 2_048 },
      { name: 'dm-0', readBytes: 3_072, writtenBytes: 4_096 },
    ],
    nics: [
      { name: 'eth0', receivedBytes: 1_821_128_038, transmittedBytes: 4_924_307, isHardware: true },
      { name: 'veth1', receivedBytes: 7, transmittedBytes: 8, isHardware: false },
    ],
    fileSystems: [],
  });
});

const nothing = {
  cpu: null,
  memoryTotalBytes: null,
  memoryAvailableBytes: null,
  load: null,
  disks: [],
  nics: [],
  fileSystems: [],
};

test('what is missing or garbage is left out', () => {
  expect(metricsOf().sample()).toEqual({ monotonicMs: 0, ...nothing });
  tree
    .file('proc/stat', 'cpu 1 2 3\n')
    .file('proc/meminfo', 'MemTotal: lots\n')
    .file('proc/loadavg', '? ? ?');
  tree
    .file('proc/diskstats', '\0\0\0\n1 2 sda x x x x x x x\n')
    .file('proc/net/dev', netDev('eth0: 1', 'eth1: a b'));
  expect(metricsOf().sample()).toEqual({ monotonicMs: 0, ...nothing });
});

test('far more interfaces than a node has are reported in part, the cards first', () => {
  tree.pciDevice(pciPath).nic('zz0', pciPath, {});
  const row = (name: string) => `${name}: 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0`;
  const rows = Array.from({ length: 2_000 }, (_, index) => row(`veth${index}`));
  tree.file('proc/net/dev', netDev(...rows, row('zz0')));
  const { nics } = metricsOf().sample();
  expect(nics).toHaveLength(512);
  expect(nics[0]).toMatchObject({ name: 'zz0', isHardware: true });
});

test('an interface that took the name of another is looked at anew', () => {
  const metrics = metricsOf();
  const row = netDev('eth0: 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0');
  tree.file('proc/net/dev', row);
  expect(metrics.sample().nics).toMatchObject([{ isHardware: false }]);
  tree.file('proc/net/dev', netDev());
  expect(metrics.sample().nics).toEqual([]);
  tree.pciDevice(pciPath).nic('eth0', pciPath, {}).file('proc/net/dev', row);
  expect(metrics.sample().nics).toMatchObject([{ isHardware: true }]);
});

test('a sample waits for no file system', async () => {
  const question = Promise.withResolvers<never>();
  const spaces = new FileSystemSpaces(['/dead'], {
    questions: asking(() => question.promise),
    deadlineMs: 5_000,
  });
  const metrics = new HostMetrics({ root: tree.root, paths: [], monotonicMs: () => nowMs, spaces });
  expect(metrics.sample().fileSystems).toEqual([{ path: '/dead', space: null, isAnswering: true }]);
  nowMs = 10_000;
  expect(metrics.sample().fileSystems).toEqual([{ path: '/dead', space: null, isAnswering: false }]);
  question.reject(new Error('ESTALE'));
  await new Promise((resolve) => setImmediate(resolve));
  expect(metrics.sample().fileSystems).toEqual([{ path: '/dead', space: null, isAnswering: true }]);
});

function aSample(monotonicMs: number, more: Partial<HostSample> = {}): HostSample {
  return { monotonicMs, ...nothing, ...more };
}

function cpu(busy: number, idle: number, iowait = 0): HostSample['cpu'] {
  return { user: busy, nice: 0, system: 0, idle, iowait, irq: 0, softirq: 0, steal: 0 };
}

function nic(name: string, receivedBytes: number, transmittedBytes: number, isHardware = true) {
  return { name, receivedBytes, transmittedBytes, isHardware };
}

test('rates over the interval, of hardware only', () => {
  const mib = 1024 * 1024;
  const previous = aSample(1_000, {
    cpu: cpu(100, 200, 10),
    nics: [nic('eth0', 100, 50), nic('veth1', 0, 0, false)],
  });
  const next = aSample(11_000, {
    cpu: cpu(115, 240, 15),
    memoryTotalBytes: 1_000 * mib,
    memoryAvailableBytes: 400 * mib,
    load: { load1: 1.5, load5: 1, load15: 0.5 },
    nics: [nic('eth0', 1_100, 250), nic('veth1', 9_000, 9_000, false), nic('eth1', 7, 7)],
  });
  expect(toReading(previous, next, 5_000)).toEqual({
    atMs: 5_000,
    intervalMs: 10_000,
    cpuUtilization: 25,
    memoryUsedMb: 600,
    load1: 1.5,
    networkReceiveBytes: 100,
    networkTransmitBytes: 20,
  });
});

const unknown = {
  cpuUtilization: null,
  memoryUsedMb: null,
  load1: null,
  networkReceiveBytes: null,
  networkTransmitBytes: null,
};

test('what was not read is null, never 0', () => {
  expect(toReading(aSample(0), aSample(10_000), 1)).toEqual({ atMs: 1, intervalMs: 10_000, ...unknown });
  const full = aSample(0, { cpu: cpu(1, 1), nics: [nic('eth0', 1, 1)], memoryTotalBytes: 1_048_576 });
  expect(toReading(aSample(0), { ...full, monotonicMs: 10_000 }, 1)).toMatchObject(unknown);
  expect(toReading(full, aSample(10_000), 1)).toMatchObject(unknown);
  // No time between them: there is no rate.
  expect(toReading(full, full, 1)).toMatchObject({ intervalMs: 0, ...unknown });
});

test('counters that start over give no rate, and no negative one', () => {
  const previous = aSample(0, { cpu: cpu(100, 100), nics: [nic('eth0', 500, 5), nic('eth1', 0, 0)] });
  const next = aSample(10_000, { cpu: cpu(1, 1), nics: [nic('eth0', 3, 15), nic('eth1', 10, 10)] });
  expect(toReading(previous, next, 1)).toMatchObject({
    cpuUtilization: null,
    networkReceiveBytes: null,
    networkTransmitBytes: 2,
  });
});

test('time spent waiting that goes back by a tick leaves percents between 0 and 100', () => {
  const at = (busy: number, idle: number, iowait: number) => aSample(busy, { cpu: cpu(busy, idle, iowait) });
  expect(toReading(at(10, 10, 10), at(11, 10, 9.99), 1).cpuUtilization).toBe(100);
  expect(toReading(at(10, 10, 10), at(9.99, 11, 10), 1).cpuUtilization).toBe(0);
});

test('on this machine: the counters of the kernel, between two looks at them', () => {
  const metrics = new HostMetrics({ paths: ['/'], monotonicMs: () => performance.now() });
  const busySeconds = () => cpus().reduce((sum, { times }) => sum + times.user + times.sys, 0) / 1_000;
  const received = () => {
    const totals = new Map<string, number>();
    for (const { name } of metrics.sample().nics) {
      totals.set(name, Number(readFileSync(`/sys/class/net/${name}/statistics/rx_bytes`, 'utf8')));
    }
    return totals;
  };
  const busyBefore = busySeconds();
  const before = received();
  const sample = metrics.sample();
  const after = received();
  const busyAfter = busySeconds();

  expect(sample.memoryTotalBytes).toBe(totalmem());
  // Each CPU's time is rounded down to a tick before it is summed up.
  const rounding = cpus().length * 0.02;
  const busy = (sample.cpu?.user ?? 0) + (sample.cpu?.system ?? 0);
  expect(busy).toBeGreaterThanOrEqual(busyBefore - rounding);
  expect(busy).toBeLessThanOrEqual(busyAfter + rounding);
  expect(sample.nics.length).toBe(before.size);
  for (const { name, receivedBytes } of sample.nics) {
    expect(receivedBytes).toBeGreaterThanOrEqual(before.get(name) ?? 0);
    expect(receivedBytes).toBeLessThanOrEqual(after.get(name) ?? 0);
  }
});
