/** Network interfaces, from /sys/class/net and the addresses that the system gives them. */
import { existsSync } from 'node:fs';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { Nic } from '@muster/common/hardware';
import {
  askDevice,
  namesIn,
  pciBusIdInPath,
  readNumaNode,
  realPath,
  tryReadKernelFile,
} from './kernelFiles.ts';

export type InterfaceAddresses = Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>;

/** Far more than any node has; keeps an inventory to a size that can be sent. */
const nicsMax = 256;

/**
 * Interfaces with hardware behind them, and of the others those that have an address: the host's ends of containers have
 * none, and would change the inventory with every container. Loopback is excluded.
 *
 * Asks the drivers, one at a time, so at most one thread is lost to one that does not answer. @returns by name
 */
export async function readNics(
  root = '/',
  addresses: InterfaceAddresses = systemAddresses(),
): Promise<readonly Nic[]> {
  const folder = join(root, 'sys/class/net');
  const nics: Nic[] = [];
  for (const name of namesIn(folder)) {
    if (name === 'lo' || nics.length === nicsMax) continue;
    const nic = await readNic(folder, name, routable(addresses, name));
    if (nic !== null && (!nic.isVirtual || nic.addresses.length > 0)) nics.push(nic);
  }
  return nics;
}

async function readNic(folder: string, name: string, addresses: readonly string[]): Promise<Nic | null> {
  const state = tryReadKernelFile(join(folder, name, 'operstate'));
  // Besides interfaces the folder holds files such as `bonding_masters`.
  if (state === null) return null;
  const isVirtual = !hasHardware(folder, name);
  const device = realPath(join(folder, name, 'device'));
  return {
    name,
    state: toState(state.trim()),
    speedMbps: isVirtual ? null : toSpeed(await askDevice(join(folder, name, 'speed'))),
    addresses,
    pciBusId: device === null ? null : pciBusIdInPath(device),
    numaNode: device === null ? null : readNumaNode(device),
    isVirtual,
  };
}

/** A tunnel names the interface that carries it, as a bond names its members, but has a network of its own. */
const tunnels = /^DEVTYPE=(?:vxlan|geneve|gre|ip6gre|gretap|wireguard|macsec|amt|gtp)$/m;

/**
 * The interface is a device, or a bond, VLAN, bridge or macvlan over one.
 * @param folder /sys/class/net or its like
 */
function hasHardware(folder: string, name: string, depth = 0): boolean {
  if (isDevice(folder, name)) return true;
  // Interfaces can be stacked to 8 levels; the bound is for a tree that is not the kernel's.
  if (depth === 8 || tunnels.test(tryReadKernelFile(join(folder, name, 'uevent')) ?? '')) return false;
  return namesIn(join(folder, name)).some(
    (entry) => entry.startsWith('lower_') && hasHardware(folder, entry.slice('lower_'.length), depth + 1),
  );
}

function isDevice(folder: string, name: string): boolean {
  return existsSync(join(folder, name, 'device'));
}

/**
 * Whether the bytes of this interface went over a wire and are counted nowhere else. Bonds, VLANs and bridges count what
 * their members count again; so does a cloud's synthetic interface, a device itself, for the one it is master of.
 */
export function countsOnce(root: string, name: string): boolean {
  const folder = join(root, 'sys/class/net');
  if (!isDevice(folder, name)) return false;
  const master = realPath(join(folder, name, 'master'));
  return master === null || !existsSync(join(master, 'device'));
}

function toState(operstate: string): Nic['state'] {
  if (operstate === 'up') return 'up';
  return ['down', 'lowerlayerdown', 'notpresent', 'dormant', 'testing'].includes(operstate)
    ? 'down'
    : 'unknown';
}

/** Mbit/s. Without a link, or where there is no such thing, the kernel writes -1 or refuses. */
function toSpeed(text: string | null): number | null {
  return text !== null && /^[1-9]\d{0,8}$/.test(text) ? Number(text) : null;
}

/** Link-local addresses mean nothing on another node. IPv4 before IPv6. */
function routable(addresses: InterfaceAddresses, name: string): readonly string[] {
  const own = Object.entries(addresses)
    // An address with a label is listed under `eth0:label`.
    .filter(([listed]) => listed === name || listed.startsWith(`${name}:`))
    .flatMap(([, each]) => each ?? [])
    .filter(({ address }) => !/^(?:169\.254\.|127\.|::1$|fe[89ab][0-9a-f]:)/i.test(address));
  const ofFamily = (family: 'IPv4' | 'IPv6') =>
    own.filter((each) => each.family === family).map(({ address }) => address);
  return [...new Set([...ofFamily('IPv4'), ...ofFamily('IPv6')])];
}

/** Addresses of interfaces that are up. None where a sandbox forbids the question. */
export function systemAddresses(): InterfaceAddresses {
  try {
    return networkInterfaces();
  } catch {
    return {};
  }
}
