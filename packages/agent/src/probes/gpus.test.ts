import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseGpuList, probeGpus } from './gpus.ts';

const h100 = { uuid: 'GPU-5d0c1b2a', model: 'NVIDIA H100 80GB HBM3', memoryMb: 81_559, simulated: false };

describe('the list of nvidia-smi', () => {
  test('has a line for each GPU', () => {
    const text = 'GPU-5d0c1b2a, NVIDIA H100 80GB HBM3, 81559\nGPU-6e1f2c3b, NVIDIA L40S, 46068\n';
    const l40s = { uuid: 'GPU-6e1f2c3b', model: 'NVIDIA L40S', memoryMb: 46_068, simulated: false };
    expect(parseGpuList(text)).toEqual([h100, l40s]);
  });

  test('may have the line ends of another system', () => {
    expect(parseGpuList('GPU-5d0c1b2a, NVIDIA H100 80GB HBM3, 81559\r\n')).toEqual([h100]);
  });

  test.each(['[N/A]', '[Not Supported]', '[Unknown Error]'])('memory "%s" is unknown, not 0', (cell) => {
    expect(parseGpuList(`GPU-5d0c1b2a, NVIDIA H100 80GB HBM3, ${cell}`)).toEqual([
      { ...h100, memoryMb: null },
    ]);
  });

  test.each([
    'GPU-6e1f2c3b, NVIDIA H100 80GB HBM3, [GPU is lost]',
    'GPU-6e1f2c3b, [GPU requires reset], [GPU requires reset]',
    '[Unknown Error], NVIDIA H100 80GB HBM3, 81559',
    '[GPU is lost], [GPU is lost], [GPU is lost]',
  ])('"%s" is not offered, and its neighbour is', (line) => {
    expect(parseGpuList(`${line}\nGPU-5d0c1b2a, NVIDIA H100 80GB HBM3, 81559\n`)).toEqual([h100]);
  });

  test.each(['', '\n', 'No devices were found\n'])('%j: no GPUs', (text) => {
    expect(parseGpuList(text)).toEqual([]);
  });

  test.each([
    'Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.54',
    'Unable to determine the device handle for GPU 0000:C1:00.0: GPU is lost.  Reboot the system to recover this GPU',
    'Field "nosuch" is not a valid field to query.',
    'GPU-5d0c1b2a, NVIDIA H100 80GB HBM3',
  ])('"%s" is an error that says so', (text) => {
    expect(() => parseGpuList(text)).toThrow(`nvidia-smi: ${text.split('\n')[0]}`);
  });
});

describe('asking nvidia-smi', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gpus-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  async function aProgram(script: string): Promise<string> {
    const path = join(directory, `nvidia-smi-${script.length}`);
    await writeFile(path, `#!/bin/sh\n${script}\n`);
    await chmod(path, 0o700);
    return path;
  }

  test('lists what it prints', async () => {
    const path = await aProgram('echo "GPU-5d0c1b2a, NVIDIA H100 80GB HBM3, 81559"');
    expect(await probeGpus({ kind: 'detect' }, 'a', path)).toEqual([h100]);
  });

  test('says what it said when it failed', async () => {
    const path = await aProgram('echo "Failed to initialize NVML: Unknown Error"; exit 255');
    await expect(probeGpus({ kind: 'detect' }, 'a', path)).rejects.toThrow(
      `${path} failed: Failed to initialize NVML: Unknown Error`,
    );
  });

  test('a node without it has no GPUs', async () => {
    expect(await probeGpus({ kind: 'detect' }, 'a', join(directory, 'nowhere'))).toEqual([]);
  });

  test('simulated GPUs say so and differ between nodes', async () => {
    const [a, b] = await Promise.all(
      ['a', 'b'].map((node) => probeGpus({ kind: 'simulated', count: 2 }, node, 'none')),
    );
    const uuids = [...(a ?? []), ...(b ?? [])].map((gpu) => (gpu.simulated ? gpu.uuid : null));
    expect(new Set(uuids).size).toBe(4);
    expect(uuids).not.toContain(null);
  });
});
