/** What this node has to offer, put together from its GPUs, its host and its options. */
import { availableParallelism, totalmem } from 'node:os';
import { cardUuid, type DeviceLink, type GpuDriver, type NodeInventory } from '@muster/common/hardware';
import type { GpuListing } from '../gpus/gpuSource.ts';
import { nodeAddresses } from '../host/addresses.ts';
import type { HostDevices } from '../host/inventory.ts';
import { adaptersOf, readPciLinks } from '../host/pciLinks.ts';
import type { AgentOptions } from '../options.ts';

export type InventoryOptions = Pick<AgentOptions, 'coordinator' | 'cpus' | 'labels'>;

export interface InventoryFacts {
  readonly listing: Pick<GpuListing, 'gpus' | 'links'>;
  readonly gpuDriver: GpuDriver;
  readonly devices: HostDevices;
  /** Ways to run a task that work now. */
  readonly drivers: readonly string[];
}

export function buildInventory(options: InventoryOptions, facts: InventoryFacts): NodeInventory {
  const { listing, gpuDriver, devices, drivers } = facts;
  const { host, nics, rdmaDevices, machine } = devices;
  return {
    gpus: listing.gpus,
    cpus: options.cpus ?? availableParallelism(),
    memoryMb: Math.floor(totalmem() / (1024 * 1024)),
    addresses: nodeAddresses(nics, rdmaDevices, options.coordinator),
    labels: options.labels,
    drivers,
    gpuDriver,
    links: completeLinks(listing, devices),
    nics,
    rdmaDevices,
    host,
    machine,
  };
}

/** The driver's word where there is one; where it says nothing of a pair, the way through the PCI tree. */
function completeLinks(
  { gpus, links }: Pick<GpuListing, 'gpus' | 'links'>,
  { nics, rdmaDevices }: HostDevices,
): readonly DeviceLink[] {
  const known = new Set(links.map(pairOf));
  const cards = new Map(gpus.map((gpu) => [cardUuid(gpu), gpu.pciBusId]));
  const places = Array.from(cards, ([id, pciBusId]) => ({ id, pciBusId }));
  const inTree = readPciLinks(places, adaptersOf(nics, rdmaDevices));
  return [...links, ...inTree.filter((link) => !known.has(pairOf(link)))];
}

function pairOf({ from, to }: DeviceLink): string {
  return from < to ? `${from} ${to}` : `${to} ${from}`;
}
