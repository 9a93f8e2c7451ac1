import { afterEach, beforeEach, expect, test } from 'vitest';
import { HostTree } from './hostFixture.ts';
import { readRdmaDevices } from './rdma.ts';

let tree: HostTree;
beforeEach(() => {
  tree = new HostTree();
});
afterEach(() => tree.remove());

function port(device: string, number: number, attributes: Readonly<Record<string, string>>): void {
  const defaults = { state: '4: ACTIVE', rate: '400 Gb/sec (4X NDR)', link_layer: 'InfiniBand' };
  for (const [name, text] of Object.entries({ ...defaults, ...attributes })) {
    tree.file(`sys/class/infiniband/${device}/ports/${number}/${name}`, `${text}\n`);
  }
}

function card(device: string, pciPath: string, numaNode: number): void {
  tree.pciDevice(pciPath, numaNode).link(`sys/class/infiniband/${device}/device`, `sys/devices/${pciPath}`);
}

test('InfiniBand', async () => {
  const pciPath = 'pci0000:9a/0000:9a:01.0/0000:9b:00.0';
  card('mlx5_4', pciPath, 1);
  tree.nic('ib4', pciPath, {});
  port('mlx5_4', 1, {});
  expect(await readRdmaDevices(tree.root)).toEqual([
    {
      name: 'mlx5_4',
      port: 1,
      linkLayer: 'InfiniBand',
      state: 'ACTIVE',
      rateGbps: 400,
      nic: 'ib4',
      pciBusId: '00000000:9b:00.0',
      numaNode: 1,
    },
  ]);
});

test('over Ethernet, the address table names the interface, a bond too', async () => {
  const pciPath = 'pci0000:17/0000:17:01.0/0000:18:00.0';
  card('mlx5_bond_0', pciPath, 0);
  tree.nic('eth4', pciPath, {}).nic('eth5', pciPath, {});
  port('mlx5_bond_0', 1, {
    rate: '100 Gb/sec (4X EDR)',
    link_layer: 'Ethernet',
    'gid_attrs/ndevs/0': 'bond0',
  });
  expect(await readRdmaDevices(tree.root)).toMatchObject([
    { linkLayer: 'Ethernet', rateGbps: 100, nic: 'bond0' },
  ]);
});

test('a card with two ports: an interface each, and no rate without a link', async () => {
  const pciPath = 'pci0000:17/0000:17:01.0/0000:18:00.0';
  card('mlx4_0', pciPath, -1);
  tree.nic('ib0', pciPath, {}).nic('ib1', pciPath, {});
  tree
    .file(`sys/devices/${pciPath}/net/ib0/dev_port`, '0\n')
    .file(`sys/devices/${pciPath}/net/ib1/dev_port`, '1\n');
  port('mlx4_0', 2, { state: '1: DOWN', rate: '10 Gb/sec (4X SDR)' });
  port('mlx4_0', 1, { state: '2: INIT', rate: '2.5 Gb/sec (1X SDR)' });
  expect(await readRdmaDevices(tree.root)).toMatchObject([
    { port: 1, state: 'INIT', rateGbps: 2.5, nic: 'ib0', numaNode: null },
    { port: 2, state: 'DOWN', rateGbps: null, nic: 'ib1', numaNode: null },
  ]);
});

test('soft RoCE names its parent', async () => {
  tree.file('sys/class/infiniband/rxe0/parent', 'eth0\n');
  port('rxe0', 1, { link_layer: 'Ethernet' });
  expect(await readRdmaDevices(tree.root)).toMatchObject([{ name: 'rxe0', nic: 'eth0', pciBusId: null }]);
});

test('what cannot be read or understood is unknown', async () => {
  port('mlx5_0', 1, { state: 'banana', rate: 'very fast' });
  tree.folder('sys/class/infiniband/mlx5_1/ports/1').folder('sys/class/infiniband/mlx5_1/ports/x');
  const nothing = { state: 'UNKNOWN', rateGbps: null, nic: null, pciBusId: null, numaNode: null };
  expect(await readRdmaDevices(tree.root)).toMatchObject([
    { name: 'mlx5_0', linkLayer: 'InfiniBand', ...nothing },
    { name: 'mlx5_1', linkLayer: '', ...nothing },
  ]);
});

test('ports beyond nine come in the order of their numbers; without RDMA there are none', async () => {
  expect(await readRdmaDevices(tree.root)).toEqual([]);
  for (const number of [10, 9, 1]) port('mlx5_0', number, {});
  expect((await readRdmaDevices(tree.root)).map((each) => each.port)).toEqual([1, 9, 10]);
});
