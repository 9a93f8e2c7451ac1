import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '@muster/common/clock';
import { findProgram } from '@muster/common/files';
import { silentLogger } from '@muster/common/log';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fakeGpu, writeFakeNvidiaSmi } from '../../../../test/support/fakeNvidiaSmi.ts';
import { buildFakeNvml } from '../../../../test/support/fakeNvml/fakeNvml.ts';
import { aDirectory, bareOptions } from '../node/nodeWatchFixture.ts';
import type { AgentOptions } from '../options.ts';
import { type OpenedSources, openSources } from './openSources.ts';

async function opened(options: AgentOptions): Promise<OpenedSources> {
  const sources = await openSources(options, {
    log: silentLogger,
    clock: systemClock,
    searchPath: process.env['PATH'] ?? '',
    libraryPath: null,
    busyGpus: () => new Set(),
    listedGpus: () => [],
  });
  onTestFinished(async () => {
    await sources.source.close();
    await sources.profiling?.close();
  });
  return sources;
}

/** A dcgm-exporter that prints this page. */
async function anExporter(page: string): Promise<string> {
  const server = createServer((_request, answer) => answer.end(page));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`;
}

describe('found by itself', () => {
  test('NVML goes before nvidia-smi', async () => {
    const dir = aDirectory();
    const fake = await buildFakeNvml(dir, { cards: 1 });
    onTestFinished(() => fake.close());
    const both = { nvmlLibrary: fake.path, nvidiaSmiPath: writeFakeNvidiaSmi(dir) };
    const { source, profiling } = await opened(bareOptions(dir, both));
    expect(source.name).toBe('nvml');
    expect(profiling).toBeNull();
    expect((await source.list()).gpus).toMatchObject([{ uuid: fake.uuid(0) }]);
  });

  test('a driver that fails is still the driver of this node, and not passed over', async () => {
    const dir = aDirectory();
    const fake = await buildFakeNvml(dir, { cards: 1 });
    onTestFinished(() => fake.close());
    const libRmVersionMismatch = 18;
    fake.behave('nvmlInit_v2', null, libRmVersionMismatch);
    const both = { nvmlLibrary: fake.path, nvidiaSmiPath: writeFakeNvidiaSmi(dir) };
    const { source } = await opened(bareOptions(dir, both));
    expect(source.name).toBe('nvml');
    expect((await source.list()).problems).toMatchObject([{ kind: 'driver_mismatch' }]);
  });

  test('nvidia-smi where there is no library', async () => {
    const dir = aDirectory();
    const { source } = await opened(bareOptions(dir, { nvidiaSmiPath: writeFakeNvidiaSmi(dir) }));
    expect(source.name).toBe('nvidia-smi');
    expect((await source.list()).gpus).toMatchObject([{ uuid: fakeGpu(0).uuid }, { uuid: fakeGpu(1).uuid }]);
  });

  test('no GPUs where there is neither', async () => {
    const { source } = await opened(bareOptions(aDirectory()));
    expect(source.name).toBe('none');
    expect(await source.list()).toMatchObject({ gpus: [], problems: [] });
    expect(await source.sample()).toEqual({ samples: [], problems: [] });
  });
});

describe('forced', () => {
  test.each(['nvml', 'nvidia-smi'] as const)('%s, although it is not here', async (gpuSource) => {
    const { source } = await opened(bareOptions(aDirectory(), { gpuSource }));
    expect(source.name).toBe(gpuSource);
    await expect(source.list()).rejects.toThrow(/cannot be/);
  });

  test('simulated GPUs ask nobody else', async () => {
    const { source, profiling } = await opened(
      bareOptions(aDirectory(), { gpus: { kind: 'simulated', count: 3 }, profilingSource: 'dcgm-exporter' }),
    );
    expect(source.name).toBe('simulated');
    expect(profiling).toBeNull();
    expect((await source.list()).gpus.every(({ simulated }) => simulated)).toBe(true);
  });
});

describe('profiling values', () => {
  const uuid = fakeGpu(0).uuid;

  test('come from an exporter that has some', async () => {
    const dcgmExporterUrl = await anExporter(`DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="${uuid}"} 0.5\n`);
    const options = bareOptions(aDirectory(), { profilingSource: 'auto', dcgmExporterUrl });
    const { profiling, profilingName } = await opened(options);
    expect(profilingName()).toBe('dcgm-exporter');
    expect((await profiling?.sample())?.get(uuid)).toMatchObject({ smActive: 0.5, tensorActive: null });
  });

  test('not from one that has none', async () => {
    const dcgmExporterUrl = await anExporter(`DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="${uuid}"} 50\n`);
    const options = bareOptions(aDirectory(), { profilingSource: 'auto', dcgmExporterUrl });
    const { profiling, profilingName } = await opened(options);
    expect([profiling, profilingName()]).toEqual([null, null]);
  });

  test.each(['dcgm-exporter', 'dcgmi'] as const)('from %s when that is forced', async (profilingSource) => {
    const { profiling, profilingName } = await opened(bareOptions(aDirectory(), { profilingSource }));
    expect(profilingName()).toBe(profilingSource);
    await expect(profiling?.sample()).rejects.toThrow(/not running|no such program/);
  });
});

test('programs are found by name and by path', () => {
  expect(findProgram('sh', '/nowhere:/bin')).toBe('/bin/sh');
  expect(findProgram('/bin/sh', '')).toBe('/bin/sh');
  expect(findProgram('sh', '/nowhere')).toBeNull();
  expect(findProgram('/etc/passwd', '/bin')).toBeNull();
});
