import { existsSync, readdirSync } from 'node:fs';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { HostTree } from './hostFixture.ts';
import { countsOnce, readNics } from './nics.ts';

let tree: HostTree;
beforeEach(() => {
  tree = new HostTree();
});
afterEach(() => tree.remove());

function address(text: string): NetworkInterfaceInfo {
  const common = { address: text, netmask: '', mac: '', internal: false, cidr: null };
  return text.includes(':') ? { ...common, family: 'IPv6', scopeid: 0 } : { ...common, family: 'IPv4' };
}

test('a card tells its link, its speed and its place', async () => {
  const pciPath = 'pci0000:17/0000:17:01.0/0000:1A:00.1';
  tree.pciDevice(pciPath, 1).nic('eth2', pciPath, { speed: '200000' });
  const addresses = { eth2: [address('fe80::1'), address('2001:db8::7'), address('192.0.2.7')] };
  expect(await readNics(tree.root, addresses)).toEqual([
    {
      name: 'eth2',
      state: 'up',
      speedMbps: 200_000,
      addresses: ['192.0.2.7', '2001:db8::7'],
      pciBusId: '00000000:1a:00.1',
      numaNode: 1,
      isVirtual: false,
    },
  ]);
});

test('what the kernel does not know is null', async () => {
  const pciPath = 'pci0000:00/0000:00:03.0/virtio2';
  tree
    .file(`sys/devices/${pciPath}/driver_override`, '')
    .nic('eth0', pciPath, { operstate: 'unknown', speed: '-1' });
  // The kernel refuses to read the speed of an interface that is down; so does a folder.
  tree.nic('eth1', pciPath, { operstate: 'lowerlayerdown' }).folder('sys/class/net/eth1/speed');
  tree.nic('eth2', pciPath, { operstate: 'up', speed: '0' });
  tree.nic('eth3', pciPath, { operstate: 'up', speed: 'fast' });
  const nics = await readNics(tree.root, {});
  expect(nics.map(({ name, state, speedMbps }) => [name, state, speedMbps])).toEqual([
    ['eth0', 'unknown', null],
    ['eth1', 'down', null],
    ['eth2', 'up', null],
    ['eth3', 'up', null],
  ]);
  expect(nics[0]).toMatchObject({ pciBusId: '00000000:00:03.0', numaNode: null });
});

test('bonds, VLANs and bridges over cards are hardware; container networks and tunnels are not', async () => {
  const pciPath = 'pci0000:00/0000:00:03.0';
  tree.pciDevice(pciPath).nic('eth0', pciPath, {}).nic('eth1', pciPath, {});
  tree.nic('bond0', null, { uevent: 'DEVTYPE=bond', speed: '50000' }).stacked('bond0', 'eth0');
  tree.nic('bond0.7', null, { uevent: 'DEVTYPE=vlan' }).stacked('bond0.7', 'bond0');
  tree.nic('br0', null, { uevent: 'DEVTYPE=bridge' }).stacked('br0', 'bond0.7');
  tree
    .nic('veth12', null, {})
    .nic('docker0', null, { uevent: 'DEVTYPE=bridge' })
    .stacked('docker0', 'veth12');
  tree.nic('flannel.1', null, { uevent: 'INTERFACE=flannel.1\nDEVTYPE=vxlan' }).stacked('flannel.1', 'eth0');
  tree.nic('wg0', null, { uevent: 'DEVTYPE=wireguard', speed: '10000' });
  const addresses = Object.fromEntries(
    ['bond0', 'bond0.7', 'br0', 'docker0', 'flannel.1', 'wg0'].map((name, index) => [
      name,
      [address(`10.0.${index}.1`)],
    ]),
  );
  const nics = await readNics(tree.root, addresses);
  expect(nics.filter(({ isVirtual }) => !isVirtual).map(({ name }) => name)).toEqual([
    'bond0',
    'bond0.7',
    'br0',
    'eth0',
    'eth1',
  ]);
  expect(nics.filter(({ isVirtual }) => isVirtual).map(({ name }) => name)).toEqual([
    'docker0',
    'flannel.1',
    'wg0',
  ]);
  expect(nics.find(({ name }) => name === 'bond0')).toMatchObject({ speedMbps: 50_000, pciBusId: null });
  // A tunnel's is made up.
  expect(nics.find(({ name }) => name === 'wg0')).toMatchObject({ speedMbps: null });
});

test("loopback, the host's ends of containers and files of the folder are not listed", async () => {
  tree.nic('lo', null, { operstate: 'unknown' }).nic('veth3f', null, {}).nic('dummy0', null, {});
  tree.file('sys/class/net/bonding_masters', 'bond0\n');
  const addresses = { lo: [address('127.0.0.1')], veth3f: [address('fe80::2')] };
  expect(await readNics(tree.root, addresses)).toEqual([]);
});

test('an address with a label belongs to its interface', async () => {
  const pciPath = 'pci0000:00/0000:00:03.0';
  tree.pciDevice(pciPath).nic('eth0', pciPath, {}).nic('eth01', pciPath, {});
  const nics = await readNics(tree.root, {
    eth0: [address('192.0.2.1')],
    'eth0:backup': [address('192.0.2.2')],
    eth01: [address('192.0.2.3')],
  });
  expect(nics.map(({ addresses }) => addresses)).toEqual([['192.0.2.1', '192.0.2.2'], ['192.0.2.3']]);
});

test('a tree in which interfaces are made of each other ends', async () => {
  tree.nic('a', null, {}).nic('b', null, {}).stacked('a', 'b').stacked('b', 'a');
  expect(await readNics(tree.root, { a: [address('10.0.0.1')] })).toMatchObject([
    { name: 'a', isVirtual: true },
  ]);
});

test('without /sys there are no interfaces', async () => {
  expect(await readNics(tree.root)).toEqual([]);
});

test("bytes are counted at the cards, and not again at the cloud's interface above one", () => {
  const pciPath = 'pci0000:00/0000:00:03.0';
  tree
    .pciDevice(pciPath)
    .nic('eth0', pciPath, {})
    .nic('enP1s1', pciPath, {})
    .nic('eth1', pciPath, {})
    .nic('bond0', null, {});
  tree.stacked('bond0', 'eth1').link('sys/class/net/eth1/master', 'sys/class/net/bond0');
  tree.link('sys/class/net/enP1s1/master', 'sys/class/net/eth0');
  const counting = ['eth0', 'enP1s1', 'eth1', 'bond0', 'gone'].filter((name) => countsOnce(tree.root, name));
  expect(counting).toEqual(['eth0', 'eth1']);
});

test('on this machine: its devices, with the addresses that the system gives them', async () => {
  const nics = await readNics();
  const devices = readdirSync('/sys/class/net').filter((name) => existsSync(`/sys/class/net/${name}/device`));
  expect(nics.map(({ name }) => name)).toEqual(expect.arrayContaining(devices));
  const ofSystem = Object.values(networkInterfaces()).flatMap(
    (each) => each?.map((one) => one.address) ?? [],
  );
  for (const { addresses } of nics) expect(ofSystem).toEqual(expect.arrayContaining([...addresses]));
});
