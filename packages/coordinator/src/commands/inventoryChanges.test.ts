import type { HostFacts, NodeInventory } from '@muster/common/hardware';
import { expect, test } from 'vitest';
import { anInventory, someGpus } from '../modelFixture.ts';
import { inventoryChanges } from './inventoryChanges.ts';

const [gpu, otherGpu] = someGpus('a', 2);
if (gpu === undefined || otherGpu === undefined) throw new Error('no GPUs');

const nic = {
  name: 'eth0',
  state: 'up',
  speedMbps: 100_000,
  addresses: ['10.0.0.1'],
  pciBusId: null,
  numaNode: 0,
  isVirtual: false,
} as const;
const rdmaDevice = {
  name: 'mlx5_0',
  port: 1,
  linkLayer: 'InfiniBand',
  state: 'ACTIVE',
  rateGbps: 400,
  nic: null,
  pciBusId: null,
  numaNode: null,
};
const host: HostFacts = {
  hostname: 'a',
  os: 'Debian GNU/Linux 12',
  kernel: '6.1.0',
  cpuModel: 'CPU',
  sockets: 2,
  cores: 64,
  threads: 128,
  numaNodes: 2,
  fileSystems: [{ mountPoint: '/data', device: '/dev/sdb', type: 'ext4', sizeBytes: 1_000 }],
};
const links = [
  { from: 'GPU-a-0', to: 'GPU-a-1', kind: 'NV18' },
  { from: 'GPU-a-0', to: 'mlx5_0', kind: 'PIX' },
];
const before = anInventory({
  gpus: [gpu, otherGpu],
  gpuDriver: { source: 'nvml', profilingSource: null, driverVersion: '580.1', cudaVersion: '13.0' },
  nics: [nic],
  rdmaDevices: [rdmaDevice],
  host,
  links,
});

test('the same hardware has not changed, in whatever order it is listed', () => {
  const reversed = { ...before, gpus: before.gpus.toReversed(), links: links.toReversed() };
  expect(inventoryChanges(before, structuredClone(reversed))).toEqual([]);
});

test.each<[changes: readonly string[], after: Partial<NodeInventory>]>([
  [['GPU GPU-a-1 is gone'], { gpus: [gpu] }],
  [['GPU GPU-a-1 is gone', 'GPU GPU-b is new'], { gpus: [gpu, { ...otherGpu, uuid: 'GPU-b' }] }],
  [['GPU GPU-a-1: index unknown → 3'], { gpus: [gpu, { ...otherGpu, index: 3 }] }],
  [
    ['GPU driver: driverVersion 580.1 → 590.2', 'GPU driver: cudaVersion 13.0 → unknown'],
    { gpuDriver: { ...before.gpuDriver, driverVersion: '590.2', cudaVersion: null } },
  ],
  [['NIC eth0: state up → down'], { nics: [{ ...nic, state: 'down' }] }],
  [['RDMA device mlx5_0 port 1: rateGbps 400 → 200'], { rdmaDevices: [{ ...rdmaDevice, rateGbps: 200 }] }],
  [['other links between devices'], { links: links.slice(1) }],
  [
    ['file system /data is gone', 'host: kernel 6.1.0 → 6.1.1'],
    { host: { ...host, kernel: '6.1.1', fileSystems: [] } },
  ],
  [['node: memoryMb 262144 → 131072'], { memoryMb: 131_072 }],
  [
    ['node: labels {} → {"rack":"r1"}', 'node: drivers ["process","docker"] → ["process"]'],
    { labels: { rack: 'r1' }, drivers: ['process'] },
  ],
])('%j', (changes, after) => {
  expect(inventoryChanges(before, { ...before, ...after })).toEqual(changes);
});

test('a host that is not reported any more is unknown', () => {
  expect(inventoryChanges(before, { ...before, host: null })).toContain('host: kernel 6.1.0 → unknown');
});

test('what is too much to read is cut', () => {
  const gpus = Array.from({ length: 1_000 }, (_, index) => ({
    ...gpu,
    uuid: `${index}-${'x'.repeat(1_000)}`,
  }));
  const changes = inventoryChanges(before, { ...before, gpus });
  expect(changes).toHaveLength(33);
  expect(changes.at(-1)).toBe('and 970 more');
  expect(Math.max(...changes.map(({ length }) => length))).toBeLessThan(250);
});
