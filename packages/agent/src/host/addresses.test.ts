import type { Nic, RdmaDevice } from '@muster/common/hardware';
import { expect, test } from 'vitest';
import { networkInterfaceFor, nodeAddresses, nodeEndpoints, noEndpointMessage } from './addresses.ts';
import type { InterfaceAddresses } from './nics.ts';

const coordinator = '198.51.100.1:7070';

function nic(name: string, addresses: readonly string[], more: Partial<Nic> = {}): Nic {
  const common = {
    state: 'up',
    speedMbps: 10_000,
    pciBusId: null,
    numaNode: null,
    isVirtual: false,
  } as const;
  return { name, addresses, ...common, ...more };
}

function rdma(nicName: string, state = 'ACTIVE'): RdmaDevice {
  const common = { port: 1, linkLayer: 'InfiniBand', rateGbps: 400, pciBusId: null, numaNode: null };
  return { name: `rdma_${nicName}`, nic: nicName, state, ...common };
}

test('RDMA first, then the fastest, then those whose speed nobody tells', () => {
  const nics = [
    nic('eth0', ['10.0.0.1'], { speedMbps: null }),
    nic('eth1', ['10.0.1.1'], { speedMbps: 1_000 }),
    nic('eth2', ['10.0.2.1'], { speedMbps: 100_000 }),
    nic('ib0', ['10.0.3.1'], { speedMbps: 56_000 }),
  ];
  const order = ['10.0.3.1', '10.0.2.1', '10.0.1.1', '10.0.0.1'];
  expect(nodeAddresses(nics, [rdma('ib0')], coordinator)).toEqual(order);
});

test('an RDMA device without a link makes nothing better', () => {
  const nics = [nic('eth2', ['10.0.2.1']), nic('ib0', ['10.0.3.1'], { speedMbps: 100 })];
  expect(nodeAddresses(nics, [rdma('ib0', 'INIT')], coordinator)).toEqual(['10.0.2.1', '10.0.3.1']);
});

test('IPv4 before IPv6, whatever the interface; no link-local ones', () => {
  const nics = [
    nic('eth1', ['2001:db8::1', '169.254.7.7', 'fe80::1'], { speedMbps: 100_000 }),
    nic('eth0', ['192.0.2.1', 'fd00::1', 'febf::1']),
  ];
  expect(nodeAddresses(nics, [], coordinator)).toEqual(['192.0.2.1', '2001:db8::1', 'fd00::1']);
});

test('interfaces that are down and networks of containers lead nowhere; a VPN is the last way', () => {
  const nics = [
    nic('docker0', ['172.17.0.1'], { isVirtual: true }),
    nic('br-1a2b3c', ['172.18.0.1'], { isVirtual: true }),
    nic('flannel.1', ['10.244.0.0'], { isVirtual: true }),
    nic('virbr0', ['192.168.122.1'], { isVirtual: true }),
    nic('tailscale0', ['100.64.0.7'], { isVirtual: true, state: 'unknown', speedMbps: null }),
    nic('wg-lab', ['10.8.0.2'], { isVirtual: true, state: 'unknown', speedMbps: null }),
    nic('tunl0', ['10.244.1.0'], { isVirtual: true }),
    nic('eth1', ['10.0.1.1'], { state: 'down' }),
    nic('br0', ['10.0.0.1'], { speedMbps: null }),
  ];
  expect(nodeAddresses(nics, [], coordinator)).toEqual(['10.0.0.1', '100.64.0.7', '10.8.0.2']);
});

test('equals are in the order of their numbers', () => {
  const nics = [
    nic('eth10', ['10.0.10.1']),
    nic('eth2', ['10.0.2.1', '10.0.2.2']),
    nic('eth2.5', ['10.0.2.1']),
  ];
  expect(nodeAddresses(nics, [], coordinator)).toEqual(['10.0.2.1', '10.0.2.2', '10.0.10.1']);
});

test.each(['127.0.0.1:7070', '127.3.2.1:1', 'localhost:7070', 'localhost', '[::1]:7070'])(
  'with the coordinator at %s every node is this machine',
  (address) => {
    expect(nodeAddresses([nic('eth0', ['10.0.0.1'])], [], address)).toEqual(['127.0.0.1']);
  },
);

test.each(['localhost.example.org:7070', '12.7.0.1:7070', '[2001:db8::1]:7070'])(
  'a coordinator at %s is elsewhere',
  (address) => {
    expect(nodeAddresses([nic('eth0', ['10.0.0.1'])], [], address)).toEqual(['10.0.0.1']);
  },
);

test('the interface of an address', () => {
  const nics = [nic('eth0', ['10.0.0.1', '2001:db8::1']), nic('eth1', ['10.0.1.1'])];
  expect(networkInterfaceFor('10.0.1.1', nics)).toBe('eth1');
  expect(networkInterfaceFor('2001:db8::1', nics)).toBe('eth0');
  expect(networkInterfaceFor('127.0.0.1', nics)).toBe('lo');
  expect(networkInterfaceFor('10.0.9.9', nics)).toBeNull();
});

function listed(cidrs: Readonly<Record<string, readonly string[]>>): InterfaceAddresses {
  const toInfo = (cidr: string) => {
    const [address = ''] = cidr.split('/');
    const common = { address, cidr, netmask: '', mac: '', internal: false } as const;
    return address.includes(':')
      ? { ...common, family: 'IPv6' as const, scopeid: 0 }
      : { ...common, family: 'IPv4' as const };
  };
  return Object.fromEntries(Object.entries(cidrs).map(([name, each]) => [name, each.map(toInfo)]));
}

const twoNetworks = {
  nics: [
    nic('eth0', ['10.0.0.7', 'fd00::7'], { speedMbps: 1_000 }),
    nic('ib0', ['10.1.0.7'], { speedMbps: 100_000 }),
    nic('docker0', ['172.17.0.1'], { isVirtual: true }),
  ],
  rdmaDevices: [rdma('ib0')],
  addresses: listed({
    eth0: ['10.0.0.7/24', 'fd00::7/64'],
    ib0: ['10.1.0.7/16'],
    docker0: ['172.17.0.1/16'],
  }),
};

test('an endpoint says its network, interface and speed', () => {
  expect(nodeEndpoints(twoNetworks, coordinator)).toEqual([
    { address: '10.1.0.7', network: '10.1.0.0/16', interface: 'ib0', speedMbps: 100_000, rdma: true },
    { address: '10.0.0.7', network: '10.0.0.0/24', interface: 'eth0', speedMbps: 1_000, rdma: false },
    { address: 'fd00::7', network: 'fd00::/64', interface: 'eth0', speedMbps: 1_000, rdma: false },
  ]);
});

test('an address that is not listed any more has a network that nobody knows', () => {
  const [first] = nodeEndpoints({ ...twoNetworks, addresses: {} }, coordinator);
  expect(first).toMatchObject({ address: '10.1.0.7', network: null });
});

test.each([
  ['10.0.0.0/8', ['10.1.0.7', '10.0.0.7']],
  ['10.0.0.0/24', ['10.0.0.7']],
  ['fd00::/8', ['fd00::7']],
  ['eth0', ['10.0.0.7', 'fd00::7']],
  ['eth', []],
  ['docker0', []],
  ['172.17.0.0/16', []],
])('only what is wanted: %s', (wanted, addresses) => {
  expect(nodeEndpoints(twoNetworks, coordinator, wanted).map(({ address }) => address)).toEqual(addresses);
});

test('on one machine the nodes meet on loopback, or where the job wants', () => {
  const here = '127.0.0.1:7070';
  const loopback = {
    address: '127.0.0.1',
    network: '127.0.0.0/8',
    interface: 'lo',
    speedMbps: null,
    rdma: false,
  };
  expect(nodeEndpoints(twoNetworks, here)).toEqual([loopback]);
  expect(nodeEndpoints(twoNetworks, here, 'lo')).toEqual([loopback]);
  expect(nodeEndpoints(twoNetworks, here, 'ib0').map(({ address }) => address)).toEqual(['10.1.0.7']);
});

test('a node that is a container is reached by the interface it was given, and by no network of containers in it', () => {
  const nics = [
    nic('docker0', ['172.18.0.1'], { isVirtual: true }),
    nic('eth0', ['172.17.0.2'], { isVirtual: true }),
    nic('wg0', ['10.8.0.2'], { isVirtual: true, state: 'unknown' }),
  ];
  expect(nodeAddresses(nics, [], coordinator)).toEqual(['172.17.0.2', '10.8.0.2']);
});

test('who has no endpoint learns what there is', () => {
  const all = nodeEndpoints(twoNetworks, coordinator, '10.0.0.0/8');
  expect(noEndpointMessage('node-a', '10.9.0.0/16', all)).toBe(
    'node-a has no address in the network 10.9.0.0/16; it has 10.1.0.7 (ib0), 10.0.0.7 (eth0): ' +
      'change `network` of the job, or the label `network` of the node',
  );
  expect(noEndpointMessage('node-a', 'ib1', [])).toMatch(/on an interface ib1; it has none/);
  expect(noEndpointMessage('node-a', null, [])).toMatch(
    /^node-a has no address that other nodes could reach/,
  );
});
