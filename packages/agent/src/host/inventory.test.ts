import { emptyInventory, type Nic, type NodeInventory } from '@muster/common/hardware';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { HostTree } from './hostFixture.ts';
import { HostInventory, sameInventory } from './inventory.ts';
import { readNics } from './nics.ts';

let tree: HostTree;
let nowMs = 0;
const monotonicMs = () => nowMs;
beforeEach(() => {
  tree = new HostTree();
});
afterEach(() => tree.remove());

const pciPath = 'pci0000:00/0000:00:03.0';

test('the facts are read once, the network each time', async () => {
  tree.file('etc/os-release', 'NAME=Before\n');
  const inventory = new HostInventory({ monotonicMs, root: tree.root });
  expect(await inventory.read()).toMatchObject({ host: { os: 'Before' }, nics: [], rdmaDevices: [] });

  tree.file('etc/os-release', 'NAME=After\n').pciDevice(pciPath).nic('eth0', pciPath, { speed: '1000' });
  tree.file('sys/class/infiniband/mlx5_0/ports/1/state', '4: ACTIVE\n');
  expect(await inventory.read()).toMatchObject({
    host: { os: 'Before' },
    nics: [{ name: 'eth0' }],
    rdmaDevices: [{ name: 'mlx5_0' }],
  });
  expect(inventory.known).toMatchObject({ nics: [{ name: 'eth0' }] });
  expect(inventory.problem).toBeNull();
});

test('tasks that begin within a second share one reading of the network', async () => {
  let readings = 0;
  const nics = async (root: string) => {
    readings += 1;
    return readNics(root, {});
  };
  const addresses = () => ({ [`eth${readings}`]: [] });
  const inventory = new HostInventory({ monotonicMs, root: tree.root, readers: { nics, addresses } });
  nowMs = 10;
  await Promise.all([inventory.readRecent(), inventory.readRecent()]);
  expect(inventory.network().addresses).toEqual({ eth1: [] });
  nowMs = 1_009;
  await inventory.readRecent();
  expect(readings).toBe(1);
  nowMs = 1_010;
  await inventory.readRecent();
  expect(readings).toBe(2);
  expect(inventory.network().addresses).toEqual({ eth2: [] });
});

test('adapters that hang: no second reader, the last values, a sentence, and all is well when they are back', async () => {
  tree.pciDevice(pciPath).nic('eth0', pciPath, {});
  let started = 0;
  let hang: Promise<void> = Promise.resolve();
  const nics = async (root: string): Promise<readonly Nic[]> => {
    started += 1;
    await hang;
    return readNics(root, {});
  };
  const inventory = new HostInventory({ monotonicMs, root: tree.root, deadlineMs: 20, readers: { nics } });
  const seen = async () => [(await inventory.read()).nics.map(({ name }) => name), inventory.problem];
  await expect.poll(seen).toEqual([['eth0'], null]);

  started = 0;
  const stuck = Promise.withResolvers<void>();
  hang = stuck.promise;
  const sentence = expect.stringMatching(/did not answer within 0.02 s.*kernel log/);
  expect(await seen()).toEqual([['eth0'], sentence]);
  expect(await seen()).toEqual([['eth0'], sentence]);
  expect(started).toBe(1);

  tree.nic('eth1', pciPath, {});
  stuck.resolve();
  await expect.poll(seen).toEqual([['eth0', 'eth1'], null]);
});

test('at first, with adapters that hang, the facts are there all the same', async () => {
  const nics = () => new Promise<never>(() => {});
  const inventory = new HostInventory({ monotonicMs, root: tree.root, deadlineMs: 20, readers: { nics } });
  await expect.poll(async () => (await inventory.read()).host).toMatchObject({ os: 'Linux' });
  expect(inventory.problem).not.toBeNull();
});

test('inventories that say the same are the same, whatever the order of the labels', async () => {
  const inventory = new HostInventory({ monotonicMs });
  const read = async (labels: NodeInventory['labels']): Promise<NodeInventory> => ({
    ...emptyInventory,
    labels,
    ...(await inventory.read()),
  });
  const one = await read({ rack: 'r1', zone: 'a' });
  expect(sameInventory(one, await read({ zone: 'a', rack: 'r1' }))).toBe(true);
  expect(sameInventory(one, { ...one, labels: { rack: 'r2', zone: 'a' } })).toBe(false);
  expect(sameInventory(one, { ...one, nics: [] })).toBe(one.nics.length === 0);
  expect(sameInventory({ ...one, memoryMb: 1 }, { ...one, memoryMb: 2 })).toBe(false);
});
