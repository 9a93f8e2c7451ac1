/**
 * How near GPUs and adapters are to each other on PCI Express, in the terms of `nvidia-smi topo -m`, for sources that
 * give no such matrix. sysfs names each device by the path to it:
 *
 *     pci0000:17 / 0000:17:01.0 / 0000:18:00.0 / 0000:19:02.0 / 0000:1b:00.0
 *     host bridge   root port     switch, upper  switch, lower  device
 *
 * Where the paths of two devices diverge shows what lies between them. NVLink is not on PCI and cannot be seen here.
 */
import { join } from 'node:path';
import type { DeviceLink, Nic, RdmaDevice } from '@muster/common/hardware';
import { parseNumberList, readNumaNode, realPath, toSysfsAddress, tryReadKernelFile } from './kernelFiles.ts';

export interface PciDevice {
  /** UUID of a card, or name of a NIC or RDMA device. */
  readonly id: string;
  readonly pciBusId: string | null;
}

/** Where a device is. */
export interface PciPlace {
  readonly id: string;
  readonly hostBridge: string;
  /** From below the host bridge down to the device. */
  readonly pciPath: readonly string[];
  /** null: not known */
  readonly numaNode: number | null;
}

/** Nearest first. */
export type PciLinkKind = 'PIX' | 'PXB' | 'PHB' | 'NODE' | 'SYS';

/** A device below a switch is two steps from it: the port it is plugged into, and itself. */
const stepsBelowSwitch = 2;

export function linkBetween(a: PciPlace, b: PciPlace): PciLinkKind {
  if (a.hostBridge !== b.hostBridge) {
    // Two devices of unknown place are not assumed to be near each other.
    return a.numaNode !== null && a.numaNode === b.numaNode ? 'NODE' : 'SYS';
  }
  let shared = 0;
  while (shared < a.pciPath.length && shared < b.pciPath.length && a.pciPath[shared] === b.pciPath[shared])
    shared += 1;
  if (shared === 0) return 'PHB';
  const steps = Math.max(a.pciPath.length, b.pciPath.length) - shared;
  return steps <= stepsBelowSwitch ? 'PIX' : 'PXB';
}

/** Each pair of cards once, and each card with each adapter. Adapters among themselves matter to nobody. */
function linksOf(cards: readonly PciPlace[], adapters: readonly PciPlace[]): readonly DeviceLink[] {
  return cards.flatMap((card, index) =>
    [...cards.slice(index + 1), ...adapters]
      .filter(({ id }) => id !== card.id)
      .map((other) => ({ from: card.id, to: other.id, kind: linkBetween(card, other) })),
  );
}

/** What links lead to: RDMA devices, and the hardware interfaces that belong to none of them. */
export function adaptersOf(nics: readonly Nic[], rdmaDevices: readonly RdmaDevice[]): readonly PciDevice[] {
  const ofRdma = new Set(rdmaDevices.map(({ nic }) => nic));
  const named = new Map<string, PciDevice>();
  for (const { name, pciBusId } of rdmaDevices) named.set(name, { id: name, pciBusId });
  for (const { name, pciBusId } of nics) {
    if (!ofRdma.has(name)) named.set(name, { id: name, pciBusId });
  }
  return [...named.values()].filter(({ pciBusId }) => pciBusId !== null);
}

/** Devices that sysfs does not know are excluded. */
export function readPciLinks(
  cards: readonly PciDevice[],
  adapters: readonly PciDevice[],
  root = '/',
): readonly DeviceLink[] {
  const onlyNode = readOnlyNumaNode(root);
  const placed = (devices: readonly PciDevice[]) =>
    devices.flatMap((device) => readPlace(device, onlyNode, root) ?? []);
  return linksOf(placed(cards), placed(adapters));
}

function readPlace({ id, pciBusId }: PciDevice, onlyNode: number | null, root: string): PciPlace | null {
  const name = pciBusId === null ? null : toSysfsAddress(pciBusId);
  const path = name === null ? null : realPath(join(root, 'sys/bus/pci/devices', name));
  // A second host bridge below the first is a controller that hides disks; the first is the one that counts.
  const [, hostBridge, pciPath] = /^(.*?\/pci[0-9a-f]+:[0-9a-f]+)\/(.+)$/.exec(path ?? '') ?? [];
  if (path === null || hostBridge === undefined || pciPath === undefined) return null;
  return { id, hostBridge, pciPath: pciPath.split('/'), numaNode: readNumaNode(path) ?? onlyNode };
}

/** The kernel does not report a device's node where there is only one. @returns null: there are several, or none was read */
function readOnlyNumaNode(root: string): number | null {
  const online = tryReadKernelFile(join(root, 'sys/devices/system/node/online'));
  const nodes = online === null ? null : parseNumberList(online);
  return nodes?.length === 1 ? (nodes[0] ?? null) : null;
}
