/** RDMA devices (InfiniBand, RoCE), one entry per port, from /sys/class/infiniband. */
import { join } from 'node:path';
import type { RdmaDevice } from '@muster/common/hardware';
import {
  askDevice,
  namesIn,
  pciBusIdInPath,
  readNumaNode,
  realPath,
  tryReadKernelFile,
} from './kernelFiles.ts';

const portsMax = 256;

/** Asks the adapters' firmware, one port at a time. @returns by name and port */
export async function readRdmaDevices(root = '/'): Promise<readonly RdmaDevice[]> {
  const folder = join(root, 'sys/class/infiniband');
  const devices: RdmaDevice[] = [];
  for (const name of namesIn(folder)) {
    const ports = namesIn(join(folder, name, 'ports'))
      .filter((port) => /^[1-9]\d{0,2}$/.test(port))
      .map(Number)
      .sort((a, b) => a - b);
    for (const port of ports) {
      if (devices.length < portsMax) devices.push(await readPort(join(folder, name), name, port));
    }
  }
  return devices;
}

async function readPort(folder: string, name: string, port: number): Promise<RdmaDevice> {
  const portFolder = join(folder, 'ports', String(port));
  const device = realPath(join(folder, 'device'));
  const state = toState(await askDevice(join(portFolder, 'state')));
  const rateGbps = toRate(await askDevice(join(portFolder, 'rate')));
  return {
    name,
    port,
    linkLayer: tryReadKernelFile(join(portFolder, 'link_layer'))?.trim() ?? '',
    state,
    // Without a link the kernel still names a rate: that of the slowest link there is.
    rateGbps: state === 'DOWN' ? null : rateGbps,
    nic: interfaceOf(folder, portFolder, port),
    pciBusId: device === null ? null : pciBusIdInPath(device),
    numaNode: device === null ? null : readNumaNode(device),
  };
}

/** `4: ACTIVE` */
function toState(text: string | null): string {
  return /^\d+: ([A-Z_]{1,32})$/.exec(text ?? '')?.[1] ?? 'UNKNOWN';
}

/** `400 Gb/sec (4X NDR)`, `2.5 Gb/sec (1X SDR)` */
function toRate(text: string | null): number | null {
  const [, rate] = /^(\d{1,6}(?:\.\d{1,3})?) Gb\/sec\b/.exec(text ?? '') ?? [];
  return rate === undefined ? null : Number(rate);
}

function interfaceOf(folder: string, portFolder: string, port: number): string | null {
  // With Ethernet below, each entry of the address table names its interface: the bond where there is one.
  const named = tryReadKernelFile(join(portFolder, 'gid_attrs/ndevs/0'))?.trim();
  if (named !== undefined && named !== '') return named;
  // Soft RoCE has no device, but an interface as its parent.
  const parent = tryReadKernelFile(join(folder, 'parent'))?.trim();
  if (parent !== undefined && parent !== '') return parent;
  // The interfaces of a card with several ports are distinguished by `dev_port`, which counts from 0.
  const interfaces = namesIn(join(folder, 'device/net'));
  const ofPort = interfaces.find(
    (name) => tryReadKernelFile(join(folder, 'device/net', name, 'dev_port'))?.trim() === String(port - 1),
  );
  return ofPort ?? (interfaces.length === 1 ? (interfaces[0] ?? null) : null);
}
