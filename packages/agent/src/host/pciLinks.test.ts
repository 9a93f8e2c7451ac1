import type { Nic, RdmaDevice } from '@muster/common/hardware';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { HostTree } from './hostFixture.ts';
import { adaptersOf, linkBetween, type PciPlace, readPciLinks } from './pciLinks.ts';

let tree: HostTree;
beforeEach(() => {
  tree = new HostTree();
});
afterEach(() => tree.remove());

function place(id: string, pciPath: string, numaNode: number | null = 0): PciPlace {
  const [hostBridge = '', ...rest] = pciPath.split('/');
  return { id, hostBridge, pciPath: rest, numaNode };
}

const gpu = place('gpu', 'pci0000:17/17:01/18:00/19:02/1b:00');

test.each([
  ['beside it on the same switch', 'pci0000:17/17:01/18:00/19:03/1c:00', 'PIX'],
  ['another part of the same card', 'pci0000:17/17:01/18:00/19:02/1b:01', 'PIX'],
  ['on a switch below the same switch', 'pci0000:17/17:01/18:00/19:04/1d:00/1e:01/1f:00', 'PXB'],
  ['on a card with a bridge of its own', 'pci0000:17/17:01/18:00/19:04/1d:00/1e:00', 'PXB'],
  ['at another port of the same host bridge', 'pci0000:17/17:05/40:00', 'PHB'],
  ['behind another host bridge of the same node', 'pci0000:3a/3a:01/3b:00', 'NODE'],
])('%s: %s is %s', (_, pciPath, kind) => {
  expect(linkBetween(gpu, place('other', pciPath))).toBe(kind);
  expect(linkBetween(place('other', pciPath), gpu)).toBe(kind);
});

test('on another NUMA node, and where the node is not known, it is far', () => {
  expect(linkBetween(gpu, place('other', 'pci0000:9a/9a:01/9b:00', 1))).toBe('SYS');
  expect(linkBetween(gpu, place('other', 'pci0000:3a/3a:01/3b:00', null))).toBe('SYS');
  expect(linkBetween({ ...gpu, numaNode: null }, place('other', 'pci0000:3a/3a:01/3b:00', null))).toBe('SYS');
});

/** Two sockets; on the first a switch with two GPUs and an adapter with two ports, on the second a GPU alone. */
function buildServer(): void {
  tree.file('sys/devices/system/node/online', '0-1\n');
  const switch_ = 'pci0000:17/0000:17:01.0/0000:18:00.0';
  tree
    .pciDevice(`${switch_}/0000:19:00.0/0000:1a:00.0`, 0)
    .pciDevice(`${switch_}/0000:19:01.0/0000:1b:00.0`, 0);
  tree
    .pciDevice(`${switch_}/0000:19:02.0/0000:1c:00.0`, 0)
    .pciDevice(`${switch_}/0000:19:02.0/0000:1c:00.1`, 0);
  tree.pciDevice('pci0000:9a/0000:9a:01.0/0000:9b:00.0', 1);
}

test('each pair of GPUs once, and each GPU with each adapter', () => {
  buildServer();
  const cards = [
    { id: 'GPU-a', pciBusId: '00000000:1A:00.0' },
    { id: 'GPU-b', pciBusId: '00000000:1b:00.0' },
    { id: 'GPU-c', pciBusId: '00000000:9b:00.0' },
  ];
  const adapters = [{ id: 'mlx5_0', pciBusId: '00000000:1c:00.0' }];
  const links = readPciLinks(cards, adapters, tree.root).map(({ from, to, kind }) => `${from} ${to} ${kind}`);
  expect(links).toEqual([
    'GPU-a GPU-b PIX',
    'GPU-a GPU-c SYS',
    'GPU-a mlx5_0 PIX',
    'GPU-b GPU-c SYS',
    'GPU-b mlx5_0 PIX',
    'GPU-c mlx5_0 SYS',
  ]);
});

test('devices that sysfs does not know have no links', () => {
  buildServer();
  const cards = [
    { id: 'GPU-a', pciBusId: '00000000:1a:00.0' },
    { id: 'GPU-lost', pciBusId: '00000000:77:00.0' },
    { id: 'GPU-simulated', pciBusId: null },
    { id: 'GPU-odd', pciBusId: '../../../etc' },
  ];
  expect(readPciLinks(cards, [], tree.root)).toEqual([]);
});

test('with one NUMA node all devices are on it, though the kernel does not say so', () => {
  tree.pciDevice('pci0000:00/0000:00:01.0/0000:01:00.0').pciDevice('pci0000:40/0000:40:01.0/0000:41:00.0');
  const cards = [
    { id: 'GPU-a', pciBusId: '00000000:01:00.0' },
    { id: 'GPU-b', pciBusId: '00000000:41:00.0' },
  ];
  expect(readPciLinks(cards, [], tree.root)).toMatchObject([{ kind: 'SYS' }]);
  tree.file('sys/devices/system/node/online', '0\n');
  expect(readPciLinks(cards, [], tree.root)).toMatchObject([{ kind: 'NODE' }]);
});

test('domains of more than four digits, and host bridges below a device of another', () => {
  const controller = 'pci0000:d7/0000:d7:05.5/pci10000:00';
  tree
    .pciDevice(`${controller}/10000:00:02.0/10000:01:00.0`, 1)
    .pciDevice('pci0000:d7/0000:d7:01.0/0000:d8:00.0', 1);
  const links = readPciLinks(
    [{ id: 'GPU-a', pciBusId: '00000000:d8:00.0' }],
    [{ id: 'nvme0', pciBusId: '00010000:01:00.0' }],
    tree.root,
  );
  expect(links).toEqual([{ from: 'GPU-a', to: 'nvme0', kind: 'PHB' }]);
});

test('adapters are the RDMA devices and the cards that belong to none of them', () => {
  const nic = (name: string, pciBusId: string | null): Nic => ({
    name,
    state: 'up',
    speedMbps: null,
    addresses: [],
    pciBusId,
    numaNode: null,
    isVirtual: pciBusId === null,
  });
  const rdma: RdmaDevice = {
    name: 'mlx5_0',
    port: 1,
    linkLayer: 'Ethernet',
    state: 'ACTIVE',
    rateGbps: 400,
    nic: 'eth1',
    pciBusId: '00000000:1c:00.0',
    numaNode: 0,
  };
  const nics = [nic('eth0', '00000000:00:03.0'), nic('eth1', '00000000:1c:00.0'), nic('docker0', null)];
  expect(adaptersOf(nics, [rdma, { ...rdma, port: 2, nic: null }])).toEqual([
    { id: 'mlx5_0', pciBusId: '00000000:1c:00.0' },
    { id: 'eth0', pciBusId: '00000000:00:03.0' },
  ]);
});
