/** What this machine is, read once at start. All from /proc and /sys: see docs/decisions/host-facts.md. */

import { arch, availableParallelism, hostname, release } from 'node:os';
import { join } from 'node:path';
import { withDeadline } from '@muster/common/async';
import type { FileSystem, HostFacts } from '@muster/common/hardware';
import { type FileSystemQuestions, FileSystemSpaces } from './fileSystemSpace.ts';
import { parseNumberList, tryReadKernelFile } from './kernelFiles.ts';
import { dataFileSystems, readMounts } from './mounts.ts';

export interface HostFactsOptions {
  readonly root?: string;
  /** For all file systems together. Those that have not answered by then are excluded. */
  readonly deadlineMs?: number;
  readonly questions?: FileSystemQuestions;
}

/** `sockets` and `cores` are 0 where the kernel does not report them, as in some containers. */
export async function readHostFacts(options: HostFactsOptions = {}): Promise<HostFacts> {
  const { root = '/', deadlineMs = 2_000 } = options;
  return {
    hostname: hostname(),
    os: readOs(root),
    kernel: release(),
    cpuModel: readCpuModel(root),
    ...readCpuCounts(root),
    numaNodes: readList(root, 'sys/devices/system/node/online')?.length ?? 1,
    fileSystems: await readFileSystems(root, deadlineMs, options.questions),
  };
}

/** `Debian GNU/Linux 12`; without a version where the system has none. */
function readOs(root: string): string {
  const text =
    tryReadKernelFile(join(root, 'etc/os-release')) ??
    tryReadKernelFile(join(root, 'usr/lib/os-release')) ??
    '';
  const value = (key: string) =>
    new RegExp(`^${key}=(["']?)(.*)\\1$`, 'm').exec(text)?.[2]?.replace(/\\(.)/g, '$1').slice(0, 100) ?? '';
  return `${value('NAME') || 'Linux'} ${value('VERSION_ID')}`.trim();
}

function readCpuModel(root: string): string {
  const text = tryReadKernelFile(join(root, 'proc/cpuinfo')) ?? '';
  const value = (key: string) => new RegExp(`^${key}\\s*:\\s*(.+)$`, 'mi').exec(text)?.[1]?.trim();
  const model = value('model name') ?? value('cpu model');
  if (model !== undefined) return model.replace(/\s+/g, ' ').slice(0, 100);
  const part = value('CPU part');
  return part === undefined ? arch() : `${arch()} ${value('CPU implementer') ?? ''} ${part}`;
}

/**
 * Two files name all CPUs of a core and of a socket, so one CPU of each is enough: half of the reads on a machine with
 * two threads a core.
 */
function readCpuCounts(root: string): Pick<HostFacts, 'sockets' | 'cores' | 'threads'> {
  const online = readList(root, 'sys/devices/system/cpu/online');
  if (online === null) return { sockets: 0, cores: 0, threads: availableParallelism() };
  const countGroups = (file: string): number => {
    const seen = new Set<number>();
    let groups = 0;
    for (const cpu of online) {
      if (seen.has(cpu)) continue;
      const group = readList(root, `sys/devices/system/cpu/cpu${cpu}/topology/${file}`);
      if (group === null) return 0;
      for (const member of group) seen.add(member);
      groups += 1;
    }
    return groups;
  };
  return {
    sockets: countGroups('core_siblings_list'),
    cores: countGroups('thread_siblings_list'),
    threads: online.length,
  };
}

function readList(root: string, path: string): readonly number[] | null {
  const text = tryReadKernelFile(join(root, path));
  return text === null ? null : parseNumberList(text);
}

async function readFileSystems(
  root: string,
  deadlineMs: number,
  questions: FileSystemQuestions | undefined,
): Promise<readonly FileSystem[]> {
  const mounts = dataFileSystems(readMounts(root));
  const spaces = new FileSystemSpaces(
    mounts.map(({ mountPoint }) => mountPoint),
    questions === undefined ? {} : { questions },
  );
  await withDeadline(spaces.ask(0), deadlineMs);
  const sizes = new Map(spaces.readings(0).map(({ path, space }) => [path, space?.sizeBytes]));
  return mounts.flatMap(({ mountPoint, device, type }) => {
    const sizeBytes = sizes.get(mountPoint);
    return sizeBytes === undefined ? [] : [{ mountPoint, device, type, sizeBytes }];
  });
}
