import type { Nic, RdmaDevice } from '@muster/common/hardware';
import { expect, test } from 'vitest';
import { networkEnvironment } from './networkEnvironment.ts';

function nic(name: string, ...addresses: readonly string[]): Nic {
  const common = { speedMbps: null, pciBusId: null, numaNode: null, isVirtual: false } as const;
  return { name, addresses, state: 'up', ...common };
}

function port(name: string, nicName: string | null, more: Partial<RdmaDevice> = {}): RdmaDevice {
  const common = { linkLayer: 'InfiniBand', state: 'ACTIVE', rateGbps: 400, pciBusId: null, numaNode: null };
  return { name, port: 1, nic: nicName, ...common, ...more };
}

const eth0 = nic('eth0', '10.0.0.7');

function environmentOf(
  nics: readonly Nic[],
  rdmaDevices: readonly RdmaDevice[],
  address: string | null,
  wanted: string | null = null,
) {
  return networkEnvironment({ nics, rdmaDevices, addresses: {} }, address, wanted);
}

test('the interface of the chosen address, to NCCL by its exact name', () => {
  const nics = [eth0, nic('eth1', '10.1.0.7'), nic('eth10', '10.2.0.7')];
  expect(environmentOf(nics, [], '10.1.0.7')).toEqual({
    NCCL_SOCKET_IFNAME: '=eth1',
    GLOO_SOCKET_IFNAME: 'eth1',
    TP_SOCKET_IFNAME: 'eth1',
    NCCL_IB_DISABLE: '1',
  });
});

test('without a known interface the libraries choose', () => {
  expect(environmentOf([eth0], [], null)).toEqual({ NCCL_IB_DISABLE: '1' });
  expect(environmentOf([eth0], [port('mlx5_0', null)], null)).toEqual({});
});

test('RDMA behind the chosen address: all rails of its fabric, and no adapter of another speed or kind', () => {
  const nics = [eth0, nic('ib0', '10.1.0.7'), nic('ib1', '10.2.0.7')];
  const devices = [
    port('mlx5_0', 'ib0'),
    port('mlx5_1', 'ib1'),
    port('mlx5_2', 'ib2', { state: 'DOWN' }),
    port('mlx5_3', 'ib3', { rateGbps: 100 }),
    port('mlx5_4', 'eth0', { linkLayer: 'Ethernet' }),
  ];
  const env = environmentOf(nics, devices, '10.1.0.7');
  expect(env).toMatchObject({ NCCL_SOCKET_IFNAME: '=ib0', NCCL_IB_HCA: '=mlx5_0:1,mlx5_1:1' });
  expect(env).not.toHaveProperty('NCCL_IB_DISABLE');
});

test('another network was chosen although InfiniBand has one: NCCL keeps off it', () => {
  const nics = [eth0, nic('ib0', '10.1.0.7')];
  expect(environmentOf(nics, [port('mlx5_0', 'ib0')], '10.0.0.7')).toMatchObject({ NCCL_IB_DISABLE: '1' });
});

test('InfiniBand without an address could not be chosen: NCCL uses it, unless the job wants something else', () => {
  const devices = [port('mlx5_0', 'ib0')];
  const nics = [eth0, nic('ib0')];
  expect(environmentOf(nics, devices, '10.0.0.7')).toMatchObject({ NCCL_IB_HCA: '=mlx5_0:1' });
  expect(environmentOf(nics, devices, '10.0.0.7', 'eth0')).toMatchObject({ NCCL_IB_DISABLE: '1' });
});

test('a card that has no link is none', () => {
  const devices = [port('mlx5_0', 'eth0', { state: 'INIT' })];
  expect(environmentOf([eth0], devices, '10.0.0.7')).toMatchObject({ NCCL_IB_DISABLE: '1' });
});
