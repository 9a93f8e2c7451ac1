/** How a container gets exactly its GPUs: by CDI where the engine has a device of each name, else by NVIDIA's hook. */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GpuDevice } from '../driver.ts';
import type { DeviceRequest, EngineInfo } from './engineAnswers.ts';

/**
 * `cdi` is preferred: under `nvidia`, the older hook, a `docker update` or a reload of systemd can take the devices away
 * from a running container. For the same reason nothing may ever change the limits of a running container.
 */
export type GpuRequestMode = 'cdi' | 'nvidia';

const cdiKind = 'nvidia.com/gpu';

export async function chooseGpuRequestMode(
  gpus: readonly GpuDevice[],
  info: EngineInfo,
): Promise<GpuRequestMode> {
  const uuids = gpus.filter((gpu) => !gpu.simulated).map((gpu) => gpu.uuid);
  const found = info.cdiDevices ?? (await devicesInSpecs(info.cdiSpecDirs));
  return uuids.length > 0 && uuids.every((uuid) => found.includes(`${cdiKind}=${uuid}`)) ? 'cdi' : 'nvidia';
}

/** Where the packages of the NVIDIA Container Toolkit put the program that engines look for on their PATH. */
const hookFolders = [
  '/usr/bin',
  '/usr/sbin',
  '/usr/local/bin',
  '/usr/local/sbin',
  '/usr/local/nvidia/toolkit',
];

/** Whether the engine can serve a request to the driver `nvidia`; it does not say, but for the runtime beside it. */
export function canRequestGpus(info: EngineInfo): boolean {
  if (info.runtimes.includes('nvidia')) return true;
  return hookFolders.some((folder) => existsSync(join(folder, 'nvidia-container-runtime-hook')));
}

/** Empty without real GPUs. Always by UUID: indexes change after a reset. */
export function deviceRequests(gpus: readonly GpuDevice[], mode: GpuRequestMode): readonly DeviceRequest[] {
  const uuids = gpus.filter((gpu) => !gpu.simulated).map((gpu) => gpu.uuid);
  if (uuids.length === 0) return [];
  if (mode === 'cdi') return [{ Driver: 'cdi', DeviceIDs: uuids.map((uuid) => `${cdiKind}=${uuid}`) }];
  return [{ Driver: 'nvidia', DeviceIDs: uuids, Capabilities: [['gpu', 'compute', 'utility']] }];
}

/**
 * The value of NVIDIA_VISIBLE_DEVICES. `void` keeps the NVIDIA runtime, where it is the engine's default, from adding
 * devices of its own: for tasks without GPUs, and beside CDI, which has brought the right ones.
 */
export function visibleDevices(gpus: readonly GpuDevice[], mode: GpuRequestMode): string {
  const hasDevices = gpus.some((gpu) => !gpu.simulated);
  if (gpus.length === 0 || (hasDevices && mode === 'cdi')) return 'void';
  return gpus.map((gpu) => gpu.uuid).join(',');
}

/**
 * The GPUs asked for that a created container would not get. Podman accepts device requests and drops them: a job that
 * then runs without its GPUs costs more than one that does not start.
 */
export function missingGpus(
  gpus: readonly GpuDevice[],
  requested: readonly DeviceRequest[],
): readonly GpuDevice[] {
  const ids = new Set(requested.flatMap((request) => request.DeviceIDs));
  return gpus.filter((gpu) => !gpu.simulated && !ids.has(gpu.uuid) && !ids.has(`${cdiKind}=${gpu.uuid}`));
}

/** Engines before 28.2 do not list their CDI devices; the specs they read are YAML or JSON and name a device per GPU. */
async function devicesInSpecs(folders: readonly string[]): Promise<readonly string[]> {
  const devices: string[] = [];
  for (const folder of folders) {
    // A folder that does not exist is normal: of /etc/cdi and /var/run/cdi most machines have one.
    const names = await readdir(folder).catch(() => []);
    for (const name of names.filter((each) => /\.(json|ya?ml)$/.test(each))) {
      const words = (await readFile(join(folder, name), 'utf8').catch(() => '')).split(/[\s"',]+/);
      if (words.includes(cdiKind)) devices.push(...words.map((word) => `${cdiKind}=${word}`));
    }
  }
  return devices;
}
