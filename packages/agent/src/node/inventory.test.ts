import { bareGpu, type DeviceLink, emptyInventory } from '@muster/common/hardware';
import { expect, test } from 'vitest';
import type { HostDevices } from '../host/inventory.ts';
import { buildInventory } from './inventory.ts';

const options = { coordinator: '127.0.0.1:1', cpus: null, labels: { rack: 'r1' } };
const devices: HostDevices = { host: null, nics: [], rdmaDevices: [], machine: null };
const gpus = [bareGpu('GPU-1'), bareGpu('GPU-2')];
const link: DeviceLink = { from: 'GPU-2', to: 'GPU-1', kind: 'NV4' };

function built(change: Partial<Parameters<typeof buildInventory>[1]> = {}, cpus: number | null = null) {
  const facts = { listing: { gpus, links: [link] }, gpuDriver: emptyInventory.gpuDriver, devices };
  return buildInventory({ ...options, cpus }, { ...facts, drivers: ['process'], ...change });
}

test('holds what was listed, and what the machine has', () => {
  const inventory = built();
  expect(inventory).toMatchObject({ gpus, links: [link], drivers: ['process'], labels: { rack: 'r1' } });
  expect(inventory.cpus).toBeGreaterThan(0);
  expect(inventory.memoryMb).toBeGreaterThan(0);
});

test('offers as many CPUs as the options say', () => expect(built({}, 3).cpus).toBe(3));

test('what sysfs does not know has no link', () => {
  const nic = {
    name: 'eth0',
    pciBusId: 'ffff:ff:1f.7',
    state: 'up',
    speedMbps: null,
    addresses: [],
  } as const;
  const nics = [{ ...nic, numaNode: null, isVirtual: false }];
  const placed = gpus.map((gpu, index) => ({ ...gpu, pciBusId: `fffe:f${index}:1f.7` }));
  const { links } = built({ listing: { gpus: placed, links: [] }, devices: { ...devices, nics } });
  expect(links).toEqual([]);
});
