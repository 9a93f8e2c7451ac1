/** Everything about one node, for a person. Pure. */
import {
  cardUuid,
  type Gpu,
  type GpuDriver,
  type HostFacts,
  type NodeInventory,
} from '@muster/common/hardware';
import type { NodeView } from '@muster/common/views';
import { makeColours } from '../output/colours.ts';
import {
  type Column,
  type Field,
  formatFields,
  formatTable,
  type TextOptions,
  type View,
} from '../output/table.ts';
import { count, textWidth } from '../output/text.ts';
import { agoText, bytesText, durationText } from '../output/times.ts';
import { formatConditions } from './conditionText.ts';
import { byIndex, formatGpus } from './gpuTable.ts';
import { memoryUse, orphansText, stateText, usedOf } from './nodeText.ts';

/** Disks, interfaces and the like that are listed; a container host has hundreds, and `-o json` has all. */
const listedMax = 16;

export function formatNode(node: NodeView, options: View): string {
  const { colours } = options;
  const blocks = [
    `${colours.bold(node.name)}\n`,
    formatFields(nodeFields(node, options), colours, options.width),
    orphansText([node], options.programName),
    formatConditions(node, options),
    formatGpus(node, options),
    formatTopology(node.inventory, options),
  ];
  return blocks.filter((block) => block !== '').join('\n');
}

function nodeFields(node: NodeView, { nowMs, programName }: View): readonly Field[] {
  const { inventory } = node;
  const { host, gpuDriver } = inventory;
  return [
    ['State', stateText(node)],
    ['Drained', drainText(node, nowMs)],
    ['If it is dead', node.state === 'silent' ? `${programName} node confirm-dead ${node.name}` : null],
    ['Joined', agoText(node.joinedAtMs, nowMs)],
    ['Agent', node.agentVersion],
    ['Host', host === null || host.hostname === node.name ? null : host.hostname],
    ['Addresses', inventory.addresses.join(' ')],
    ['OS', host?.os ?? null],
    ['Kernel', host?.kernel ?? null],
    ['Machine', machineText(inventory)],
    ['CPU', host === null ? null : cpuText(host)],
    ['CPUs', `${usedOf(node.cpusUsed, inventory.cpus, String)} used`],
    ['Memory', `${memoryUse(node)} used`],
    ['GPU source', sourceTexts[gpuDriver.source]],
    ['Driver', driverText(gpuDriver)],
    ['Activity', gpuDriver.profilingSource === null ? null : activityTexts[gpuDriver.profilingSource]],
    ['Network', networkText(inventory)],
    ['RDMA', rdmaText(inventory)],
    ['Paths', pathsText(node, nowMs)],
    ['Drives', drivesText(inventory)],
    ['Modules', memoryText(inventory)],
    ['Disks', host === null ? null : disksText(host)],
    ['Runs', inventory.drivers.join(', ')],
    [
      'Labels',
      Object.entries(inventory.labels)
        .map(([name, value]) => `${name}=${value}`)
        .join(' '),
    ],
  ];
}

/** A drain by a user, or because the machine shuts down. Conditions are shown with their own messages. */
function drainText({ drain }: NodeView, nowMs: number): string | null {
  if (drain === null) return null;
  const { reason, sinceMs, deadlineMs } = drain;
  const until =
    deadlineMs === null
      ? 'running jobs may end'
      : deadlineMs <= nowMs
        ? 'its deadline has passed'
        : `jobs stop within ${durationText(deadlineMs - nowMs)}`;
  return [reason, agoText(sinceMs, nowMs), until].filter((part) => part !== '').join(', ');
}

/** `2 × AMD EPYC 9654, 192 cores, 384 threads, 2 NUMA nodes`. */
function cpuText({ cpuModel, sockets, cores, threads, numaNodes }: HostFacts): string {
  return [
    sockets > 1 ? `${sockets} × ${cpuModel}` : cpuModel,
    cores > 0 ? count(cores, 'core') : '',
    threads > 0 ? count(threads, 'thread') : '',
    numaNodes > 1 ? `${numaNodes} NUMA nodes` : '',
  ]
    .filter((part) => part !== '')
    .join(', ');
}

const sourceTexts = {
  nvml: 'NVML',
  'nvidia-smi': 'nvidia-smi',
  simulated: 'simulated GPUs',
  none: null,
} as const;

const activityTexts = {
  'dcgm-exporter': 'SM and tensor activity from dcgm-exporter',
  dcgmi: 'SM and tensor activity from dcgmi',
  gpm: "SM and tensor activity from NVML's GPM",
} as const;

function driverText({ driverVersion, cudaVersion }: GpuDriver): string | null {
  const parts = [driverVersion, cudaVersion === null ? null : `CUDA ${cudaVersion}`];
  return parts.filter((part) => part !== null).join(', ') || null;
}

/** Hardware by name; what is virtual is counted. */
function networkText({ nics }: NodeInventory): string {
  const hardware = nics.filter(({ isVirtual }) => !isVirtual);
  const lines = hardware.map(({ name, state, speedMbps, addresses, numaNode }) =>
    columns(
      name,
      state,
      speedMbps === null ? '' : speedText(speedMbps),
      addresses.join(' '),
      numaText(numaNode),
    ),
  );
  const virtual = nics.length - hardware.length;
  return listed(lines, virtual === 0 ? [] : [`and ${virtual} virtual`]);
}

/** What preflights measured, the slowest first: that is the one to look at. */
function pathsText({ bandwidths }: NodeView, nowMs: number): string {
  const slowestFirst = bandwidths.toSorted((a, b) => a.bytesPerS - b.bytesPerS);
  const lines = slowestFirst.map(({ peer, bytesPerS, measuredAtMs, backend }) =>
    columns(
      peer,
      speedText(Number(((bytesPerS * 8) / 1e6).toPrecision(3))),
      backend,
      agoText(measuredAtMs, nowMs),
    ),
  );
  return listed(lines);
}

/** `400 Gbit/s`, `100 Mbit/s`. */
function speedText(speedMbps: number): string {
  return speedMbps < 1_000 ? `${speedMbps} Mbit/s` : `${speedMbps / 1_000} Gbit/s`;
}

function rdmaText({ rdmaDevices }: NodeInventory): string {
  const lines = rdmaDevices.map(({ name, port, linkLayer, state, rateGbps, nic, numaNode }) =>
    columns(
      `${name}:${port}`,
      linkLayer,
      state,
      rateGbps === null ? '' : `${rateGbps} Gbit/s`,
      nic ?? '',
      numaText(numaNode),
    ),
  );
  return listed(lines);
}

function disksText({ fileSystems }: HostFacts): string {
  const lines = fileSystems.map(({ mountPoint, device, type, sizeBytes }) =>
    columns(mountPoint, type, bytesText(sizeBytes), device),
  );
  return listed(lines);
}

/** `Supermicro SYS-821GE-TNHR, board Supermicro X13DEG, BIOS American Megatrends 2.1`. */
function machineText({ machine }: NodeInventory): string | null {
  if (machine === null) return null;
  const { model, board, bios } = machine;
  const parts = [model, board === null ? null : `board ${board}`, bios === null ? null : `BIOS ${bios}`];
  return parts.filter((part) => part !== null).join(', ') || null;
}

function drivesText({ machine }: NodeInventory): string {
  const lines = (machine?.disks ?? []).map(({ model, type, sizeBytes }) =>
    columns(model, type, sizeBytes === null ? '' : bytesText(sizeBytes)),
  );
  return listed(counted(lines));
}

function memoryText({ machine }: NodeInventory): string {
  const lines = (machine?.memoryModules ?? []).map(({ sizeBytes, type, clockMhz, model }) =>
    columns(bytesText(sizeBytes), type, clockMhz === null ? '' : `${clockMhz} MHz`, model),
  );
  return listed(counted(lines));
}

/** Equal lines once, with their number. */
function counted(lines: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return Array.from(counts, ([line, amount]) => (amount === 1 ? line : `${amount} × ${line}`));
}

function numaText(numaNode: number | null): string {
  return numaNode === null ? '' : `NUMA ${numaNode}`;
}

function columns(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('  ');
}

function listed(lines: readonly string[], closing: readonly string[] = []): string {
  const more = lines.length - listedMax;
  const cut = more > 0 ? [`and ${more} more`] : [];
  return [...lines.slice(0, listedMax), ...cut, ...closing].join('\n');
}

/** @returns nothing without links, and one line in place of a matrix that the terminal is too narrow for */
function formatTopology(inventory: NodeInventory, options: TextOptions): string {
  const { colours, width } = options;
  const { links } = inventory;
  if (links.length === 0) return '';
  const cards = [...new Map(byIndex(inventory.gpus).map((gpu) => [cardUuid(gpu), gpu])).values()];
  const names = new Map(
    cards.map((gpu) => [cardUuid(gpu), gpu.index === null ? gpu.uuid : `GPU${gpu.index}`]),
  );
  const kinds = new Map(
    links.flatMap(({ from, to, kind }) => [
      [pairKey(from, to), kind],
      [pairKey(to, from), kind],
    ]),
  );
  // NICs and RDMA devices by name, behind the cards.
  const others = [...new Set(links.map(({ to }) => to))].filter((to) => !names.has(to)).toSorted();
  const linkColumn = (to: string): Column<Gpu> => ({
    header: names.get(to) ?? to,
    cell: (gpu) => (cardUuid(gpu) === to ? 'X' : (kinds.get(pairKey(cardUuid(gpu), to)) ?? '-')),
  });
  const linkColumns: readonly Column<Gpu>[] = [
    { header: '', cell: (gpu) => names.get(cardUuid(gpu)) ?? '' },
    ...[...names.keys(), ...others].map(linkColumn),
    { header: 'CPUS', cell: (gpu) => gpu.cpuAffinity ?? '', narrow: 'drop' },
    { header: 'NUMA', cell: (gpu) => (gpu.numaNode === null ? '' : String(gpu.numaNode)), narrow: 'drop' },
  ];
  const heading = colours.bold('Topology');
  const plain = formatTable(cards, linkColumns, { width, colours: makeColours(false) });
  const widest = Math.max(...plain.split('\n').map(textWidth));
  if (width !== null && widest > width) {
    return `${heading}  ${colours.dim(`needs ${widest} columns to be shown; -o json has it`)}\n`;
  }
  const legend = colours.dim(legendText(links.map(({ kind }) => kind)));
  return `${heading}\n${formatTable(cards, linkColumns, options)}${legend}\n`;
}

/** Best first. */
const kindTexts = {
  NV: 'NV#: # NVLinks',
  PIX: 'PIX: one PCIe switch',
  PXB: 'PXB: several PCIe switches',
  PHB: 'PHB: the PCIe host bridge',
  NODE: 'NODE: the same NUMA node',
  SYS: 'SYS: another NUMA node',
} as const;

/** What the words in the matrix mean: those that occur. */
function legendText(kinds: readonly string[]): string {
  const words = new Set(kinds.map((kind) => kind.replace(/\d+$/, '')));
  return Object.entries(kindTexts)
    .filter(([word]) => words.has(word))
    .map(([, text]) => text)
    .join(' · ');
}

function pairKey(from: string, to: string): string {
  return `${from} ${to}`;
}
