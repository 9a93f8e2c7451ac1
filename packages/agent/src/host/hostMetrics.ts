/**
 * What this machine does: counters of CPU, memory, disks and network, read straight from /proc. One sample starts no
 * process, waits for nothing, and leaves out what the kernel, or the container around the agent, does not show.
 */
import { join } from 'node:path';
import type { HostReading } from '@muster/common/telemetry';
import { FileSystemSpaces, type SpaceReading } from './fileSystemSpace.ts';
import { tryReadKernelFile } from './kernelFiles.ts';
import { countsOnce } from './nics.ts';

/** Counters are since boot. */
export interface HostSample {
  readonly monotonicMs: number;
  readonly cpu: CpuSeconds | null;
  readonly memoryTotalBytes: number | null;
  /** What programs can still get without swapping. */
  readonly memoryAvailableBytes: number | null;
  readonly load: LoadAverages | null;
  readonly disks: readonly DiskCounters[];
  /** Loopback is not among them. */
  readonly nics: readonly NicCounters[];
  readonly fileSystems: readonly SpaceReading[];
}

export const cpuModes = ['user', 'nice', 'system', 'idle', 'iowait', 'irq', 'softirq', 'steal'] as const;
/** Of all CPUs together. */
export type CpuSeconds = Readonly<Record<(typeof cpuModes)[number], number>>;

export interface LoadAverages {
  readonly load1: number;
  readonly load5: number;
  readonly load15: number;
}

export interface DiskCounters {
  /** A whole disk, or a device made of several: `nvme0n1`, `md0`, `dm-0`. */
  readonly name: string;
  readonly readBytes: number;
  readonly writtenBytes: number;
}

export interface NicCounters {
  readonly name: string;
  readonly receivedBytes: number;
  readonly transmittedBytes: number;
  /** A device, and counted nowhere else: the sum over these is what went over wires. */
  readonly isHardware: boolean;
}

export interface HostMetricsOptions {
  readonly root?: string;
  /** Whose file systems are watched: directories of the agent itself, which wait for no other mount. */
  readonly paths: readonly string[];
  readonly monotonicMs: () => number;
  readonly spaces?: FileSystemSpaces;
}

/** A node with a container for each CPU has hundreds of interfaces; more than this are not reported one by one. */
const rowsMax = 512;

export class HostMetrics {
  private readonly root: string;
  private readonly monotonicMs: () => number;
  private readonly spaces: FileSystemSpaces;
  /** By interface; asked once, as long as it is there. */
  private isHardware: ReadonlyMap<string, boolean> = new Map();

  constructor({ root = '/', paths, monotonicMs, spaces }: HostMetricsOptions) {
    this.root = root;
    this.monotonicMs = monotonicMs;
    this.spaces = spaces ?? new FileSystemSpaces(paths, { isOwn: true });
  }

  sample(): HostSample {
    const monotonicMs = this.monotonicMs();
    const memory = this.read('proc/meminfo');
    const fileSystems = this.spaces.readings(monotonicMs);
    void this.spaces.ask(monotonicMs);
    return {
      monotonicMs,
      cpu: parseCpu(this.read('proc/stat')),
      memoryTotalBytes: parseMemory(memory, 'MemTotal'),
      memoryAvailableBytes: parseMemory(memory, 'MemAvailable'),
      load: parseLoad(this.read('proc/loadavg')),
      disks: parseDisks(this.read('proc/diskstats')),
      nics: this.withHardware(parseNics(this.read('proc/net/dev'))),
      fileSystems,
    };
  }

  private read(path: string): string {
    return tryReadKernelFile(join(this.root, path)) ?? '';
  }

  private withHardware(nics: readonly Omit<NicCounters, 'isHardware'>[]): readonly NicCounters[] {
    const rows = nics.map((nic) => ({
      ...nic,
      isHardware: this.isHardware.get(nic.name) ?? countsOnce(this.root, nic.name),
    }));
    this.isHardware = new Map(rows.map(({ name, isHardware }) => [name, isHardware]));
    // Real ones first, should there be too many.
    return rows.length <= rowsMax
      ? rows
      : rows.sort((a, b) => Number(b.isHardware) - Number(a.isHardware)).slice(0, rowsMax);
  }
}

/**
 * What happened between two samples. A value that cannot be derived from them, because a counter is missing or has started
 * over, is null.
 * @param atMs wall clock of the second sample
 */
export function toReading(previous: HostSample, next: HostSample, atMs: number): HostReading {
  const intervalMs = Math.round(next.monotonicMs - previous.monotonicMs);
  const { memoryTotalBytes: total, memoryAvailableBytes: available } = next;
  return {
    atMs,
    intervalMs,
    cpuUtilization: cpuUtilization(previous.cpu, next.cpu),
    memoryUsedMb:
      total === null || available === null || available > total
        ? null
        : Math.round((total - available) / (1024 * 1024)),
    load1: next.load?.load1 ?? null,
    networkReceiveBytes: bytesPerSecond(previous, next, ({ receivedBytes }) => receivedBytes),
    networkTransmitBytes: bytesPerSecond(previous, next, ({ transmittedBytes }) => transmittedBytes),
  };
}

/** Percent. Waiting for a disk is idle; time that the hypervisor gave to others is not. */
function cpuUtilization(previous: CpuSeconds | null, next: CpuSeconds | null): number | null {
  if (previous === null || next === null) return null;
  const total = cpuModes.reduce((sum, mode) => sum + next[mode] - previous[mode], 0);
  if (!(total > 0)) return null;
  const idle = next.idle - previous.idle + next.iowait - previous.iowait;
  // The kernel's count of time spent waiting can go back by a tick.
  return Math.min(100, Math.max(0, 100 * (1 - idle / total)));
}

/** Over interfaces that are in both samples. */
function bytesPerSecond(
  previous: HostSample,
  next: HostSample,
  bytes: (nic: NicCounters) => number,
): number | null {
  const seconds = (next.monotonicMs - previous.monotonicMs) / 1_000;
  if (!(seconds > 0)) return null;
  const before = new Map(previous.nics.map((nic) => [nic.name, nic]));
  let sum: number | null = null;
  for (const nic of next.nics) {
    const earlier = before.get(nic.name);
    if (!nic.isHardware || earlier === undefined) continue;
    const grown = bytes(nic) - bytes(earlier);
    // Started over with its driver: how much there was before that is lost.
    if (grown < 0) return null;
    sum = (sum ?? 0) + grown;
  }
  return sum === null ? null : sum / seconds;
}

/** Ticks of USER_HZ, which is 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** `cpu  984828 31964 331346 1408961 7166 0 5822 1684 0 0`; guests are counted in user and nice already. */
function parseCpu(stat: string): CpuSeconds | null {
  const ticks = /^cpu +(\d+(?: \d+)+)/.exec(stat)?.[1]?.split(' ').map(Number) ?? [];
  if (ticks.length < cpuModes.length) return null;
  const seconds = (index: number) => (ticks[index] ?? 0) / ticksPerSecond;
  const [user, nice, system, idle, iowait, irq, softirq, steal] = [0, 1, 2, 3, 4, 5, 6, 7].map(seconds);
  return { user, nice, system, idle, iowait, irq, softirq, steal } as CpuSeconds;
}

function parseMemory(meminfo: string, key: string): number | null {
  const kib = new RegExp(`^${key}: +(\\d+) kB$`, 'm').exec(meminfo)?.[1];
  return kib === undefined ? null : Number(kib) * 1024;
}

/** `0.52 0.41 0.33 1/512 12345` */
function parseLoad(loadavg: string): LoadAverages | null {
  const [, load1, load5, load15] = /^(\d+\.\d+) (\d+\.\d+) (\d+\.\d+) /.exec(loadavg) ?? [];
  if (load15 === undefined) return null;
  return { load1: Number(load1), load5: Number(load5), load15: Number(load15) };
}

/** Memory and images that look like disks, and partitions, whose bytes the disk counts too. */
const notDisks = /^(?:(?:loop|ram|zram|fd|sr)\d+|(?:sd|vd|xvd|hd)[a-z]+\d+|(?:nvme\d+n\d+|mmcblk\d+)p\d+)$/;
/** The kernel counts in these, whatever the disk's own are. */
const sectorBytes = 512;

/** `254 0 vda 574143 66271 30037130 1068091 2228144 799464 64630240 …`: major, minor, name, reads, merged, sectors … */
function parseDisks(diskstats: string): readonly DiskCounters[] {
  const disks: DiskCounters[] = [];
  for (const line of diskstats.split('\n')) {
    const [, , name, , , sectorsRead, , , , sectorsWritten] = line.trim().split(/ +/);
    const readBytes = Number(sectorsRead) * sectorBytes;
    const writtenBytes = Number(sectorsWritten) * sectorBytes;
    if (name === undefined || notDisks.test(name) || !Number.isFinite(readBytes + writtenBytes)) continue;
    if (disks.length < rowsMax) disks.push({ name, readBytes, writtenBytes });
  }
  return disks;
}

/** `eth0: 1821128038 47372 0 0 0 0 0 0 4924307 …`: received bytes first, transmitted bytes ninth. */
function parseNics(netDev: string): readonly Omit<NicCounters, 'isHardware'>[] {
  const nics: Omit<NicCounters, 'isHardware'>[] = [];
  for (const line of netDev.split('\n')) {
    const [, name, numbers] = /^ *([^ |]+): *(\d[\d ]+)$/.exec(line) ?? [];
    const counters = numbers?.trim().split(/ +/).map(Number) ?? [];
    const [receivedBytes, , , , , , , , transmittedBytes] = counters;
    if (name === undefined || name === 'lo') continue;
    if (receivedBytes === undefined || transmittedBytes === undefined) continue;
    nics.push({ name, receivedBytes, transmittedBytes });
  }
  return nics;
}
