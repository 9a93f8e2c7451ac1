/** The agent's Prometheus page as a whole, rendered from what was read last: a scrape never waits for a driver. */

import type { SpaceReading } from '../host/fileSystemSpace.ts';
import { cpuModes, type HostSample } from '../host/hostMetrics.ts';
import { type AgentFigures, agentFamilies } from './agentPage.ts';
import { type GpuPageParts, gpuFamilies } from './gpuPage.ts';
import { type Family, type MetricSample, oneRow, renderFamilies } from './textFormat.ts';

export interface PageParts {
  readonly gpus: GpuPageParts;
  /** null: not read yet. */
  readonly host: HostSample | null;
  readonly agent: AgentFigures;
}

export const pageContentType = 'text/plain; version=0.0.4; charset=utf-8';

export function renderPage({ gpus, host, agent }: PageParts): string {
  return renderFamilies([
    ...gpuFamilies(gpus),
    ...(host === null ? [] : hostFamilies(host)),
    ...agentFamilies(agent, gpus.observation),
  ]);
}

// ---- The host: node_exporter's names and units under a prefix of Muster's

/** Of disks, interfaces and file systems each: machines full of containers have hundreds. */
const devicesMax = 64;

function hostFamilies(host: HostSample): readonly Family[] {
  const { cpu, load } = host;
  const disks = host.disks.slice(0, devicesMax);
  // Hardware first, so that bridges and tunnels are dropped before it.
  const nics = host.nics.toSorted((a, b) => Number(b.isHardware) - Number(a.isHardware)).slice(0, devicesMax);
  return [
    counter(
      'cpu_seconds',
      'Seconds all CPUs together spent in each mode.',
      cpu === null ? [] : cpuModes.map((mode) => ({ labels: [['mode', mode]], value: cpu[mode] })),
    ),
    gauge('memory_size_bytes', 'Memory of the machine.', oneRow(host.memoryTotalBytes)),
    gauge(
      'memory_available_bytes',
      'Memory that programs can get without swapping.',
      oneRow(host.memoryAvailableBytes),
    ),
    gauge('load1', 'Load average over 1 minute.', oneRow(load?.load1)),
    gauge('load5', 'Load average over 5 minutes.', oneRow(load?.load5)),
    gauge('load15', 'Load average over 15 minutes.', oneRow(load?.load15)),
    counter('disk_read_bytes', 'Bytes read from the disk.', perDevice(disks, 'readBytes')),
    counter('disk_written_bytes', 'Bytes written to the disk.', perDevice(disks, 'writtenBytes')),
    counter('network_receive_bytes', 'Bytes received by the interface.', perDevice(nics, 'receivedBytes')),
    counter('network_transmit_bytes', 'Bytes sent by the interface.', perDevice(nics, 'transmittedBytes')),
    ...fileSystemFamilies(host.fileSystems.slice(0, devicesMax)),
  ];
}

function fileSystemFamilies(fileSystems: readonly SpaceReading[]): readonly Family[] {
  /** Values that a file system had before it stopped answering are not shown. */
  const spaces = fileSystems.flatMap(({ path, space, isAnswering }) =>
    space !== null && isAnswering ? [{ path, ...space }] : [],
  );
  const perPath = (key: Exclude<keyof (typeof spaces)[number], 'path'>) =>
    spaces.flatMap((space) => oneRow(space[key], [['path', space.path]]));
  return [
    gauge('filesystem_size_bytes', 'Size of the file system that holds the path.', perPath('sizeBytes')),
    gauge(
      'filesystem_avail_bytes',
      'Space that users other than root can still have.',
      perPath('availableBytes'),
    ),
    gauge('filesystem_files', 'Files the file system can hold.', perPath('files')),
    gauge('filesystem_files_free', 'Files that can still be made.', perPath('availableFiles')),
    gauge(
      'filesystem_answering',
      'Whether the file system answers; a dead network mount does not.',
      fileSystems.map(({ path, isAnswering }) => ({ labels: [['path', path]], value: Number(isAnswering) })),
    ),
  ];
}

function gauge(name: string, help: string, rows: readonly MetricSample[]): Family {
  return { name: `muster_host_${name}`, type: 'gauge', help, rows };
}

function counter(name: string, help: string, rows: readonly MetricSample[]): Family {
  return { name: `muster_host_${name}_total`, type: 'counter', help, rows };
}

function perDevice<Key extends string>(
  devices: readonly (Readonly<Record<Key, number>> & { readonly name: string })[],
  key: Key,
): readonly MetricSample[] {
  return devices.map((device) => ({ labels: [['device', device.name]], value: device[key] }));
}
