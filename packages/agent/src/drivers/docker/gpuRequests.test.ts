import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import type { GpuDevice } from '../driver.ts';
import type { EngineInfo } from './engineAnswers.ts';
import { chooseGpuRequestMode, deviceRequests, missingGpus } from './gpuRequests.ts';

const gpus: GpuDevice[] = [
  { uuid: 'GPU-aaaa', simulated: false },
  { uuid: 'MIG-bbbb', simulated: false },
];

function anEngine(info: Partial<EngineInfo>): EngineInfo {
  const plain = { liveRestore: true, selinux: false, mapsUsers: false, runtimes: [] };
  return { ...plain, cdiSpecDirs: [], cdiDevices: null, ...info };
}

const yamlSpec = (...uuids: string[]) =>
  `cdiVersion: "0.6.0"\nkind: "nvidia.com/gpu"\ndevices:\n${uuids.map((uuid) => `- name: "${uuid}"\n`).join('')}`;

async function specDir(files: Record<string, string>): Promise<string> {
  const folder = join(tempDir('cdi').path, 'cdi');
  await mkdir(folder);
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
  return folder;
}

describe('chooseGpuRequestMode', () => {
  it('prefers CDI where the engine lists a device for each GPU', async () => {
    const cdiDevices = ['nvidia.com/gpu=0', 'nvidia.com/gpu=GPU-aaaa', 'nvidia.com/gpu=MIG-bbbb'];
    expect(await chooseGpuRequestMode(gpus, anEngine({ cdiDevices }))).toBe('cdi');
  });

  it('does not mix the ways: one GPU without a CDI device, and all go through the NVIDIA runtime', async () => {
    expect(await chooseGpuRequestMode(gpus, anEngine({ cdiDevices: ['nvidia.com/gpu=GPU-aaaa'] }))).toBe(
      'nvidia',
    );
  });

  it('reads the specs of an engine that does not list its devices', async () => {
    const yaml = await specDir({ 'nvidia.yaml': yamlSpec('0', 'GPU-aaaa', 'MIG-bbbb') });
    const json = await specDir({
      'nvidia.json': JSON.stringify({
        kind: 'nvidia.com/gpu',
        devices: gpus.map(({ uuid }) => ({ name: uuid })),
      }),
    });
    expect(await chooseGpuRequestMode(gpus, anEngine({ cdiSpecDirs: ['/no/such/folder', yaml] }))).toBe(
      'cdi',
    );
    expect(await chooseGpuRequestMode(gpus, anEngine({ cdiSpecDirs: [json] }))).toBe('cdi');
  });

  it('takes no stale, foreign or half-named spec for one', async () => {
    const stale = await specDir({ 'nvidia.yaml': yamlSpec('GPU-aaaa', 'GPU-gone') });
    const foreign = await specDir({
      'other.yaml': yamlSpec('GPU-aaaa', 'MIG-bbbb').replace('nvidia.com', 'example.com'),
    });
    const longer = await specDir({ 'nvidia.yaml': yamlSpec('GPU-aaaa0', 'MIG-bbbb') });
    const backup = await specDir({ 'nvidia.yaml.bak': yamlSpec('GPU-aaaa', 'MIG-bbbb') });
    for (const folder of [stale, foreign, longer, backup]) {
      expect(await chooseGpuRequestMode(gpus, anEngine({ cdiSpecDirs: [folder] })), folder).toBe('nvidia');
    }
  });

  it('uses the NVIDIA runtime of an engine without CDI', async () => {
    expect(await chooseGpuRequestMode(gpus, anEngine({}))).toBe('nvidia');
  });
});

describe('missingGpus', () => {
  it('finds nothing missing in what was requested, either way', () => {
    expect(missingGpus(gpus, deviceRequests(gpus, 'cdi'))).toEqual([]);
    expect(missingGpus(gpus, deviceRequests(gpus, 'nvidia'))).toEqual([]);
  });

  it('names the GPUs that an engine dropped', () => {
    expect(missingGpus(gpus, [])).toEqual(gpus);
    expect(missingGpus(gpus, [{ Driver: 'nvidia', DeviceIDs: ['GPU-aaaa'] }])).toEqual([gpus[1]]);
  });

  it('does not miss simulated ones', () => {
    expect(missingGpus([{ uuid: 'GPU-cccc', simulated: true }], [])).toEqual([]);
  });
});
