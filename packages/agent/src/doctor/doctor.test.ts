import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fakeGpu, writeFakeNvidiaSmi } from '../../../../test/support/fakeNvidiaSmi.ts';
import { aDirectory, bareOptions } from '../node/nodeWatchFixture.ts';
import type { AgentOptions } from '../options.ts';
import { examineNode } from './doctor.ts';

/** What the doctor says of one thing. */
async function checksOf(options: AgentOptions, name: string) {
  const { checks } = await examineNode(options);
  return checks.filter((check) => check.name === name);
}

test('a machine without anything has nothing to mend', async () => {
  const dir = aDirectory();
  const kernelLog = join(dir, 'kmsg');
  writeFileSync(kernelLog, '');
  const { checks } = await examineNode(bareOptions(dir, { kernelLog, profilingSource: 'auto' }));
  expect(checks.filter(({ state }) => state === 'problem')).toEqual([]);
  const found = new Map(checks.map((check) => [check.name, check]));
  expect(found.get('none')).toMatchObject({ area: 'GPU source', state: 'absent', chosen: true });
  expect(found.get('nvml')?.message).toContain('no-nvml.so cannot be loaded');
  expect(found.get('nvidia-smi')).toMatchObject({ state: 'absent', chosen: false });
  expect(found.get('dcgm-exporter')).toMatchObject({ state: 'absent' });
  expect(found.get('dcgmi')).toMatchObject({ state: 'absent' });
  expect(found.get(kernelLog)).toMatchObject({ state: 'ok' });
  expect(found.get('table of conditions')).toMatchObject({ state: 'ok' });
  expect(found.get(dir)).toMatchObject({ state: 'ok', message: expect.stringMatching(/\d GiB free$/) });
});

test('simulated GPUs are called that', async () => {
  const options = bareOptions(aDirectory(), { gpus: { kind: 'simulated', count: 2 } });
  expect(await checksOf(options, 'simulated')).toMatchObject([
    { state: 'ok', chosen: true, message: expect.stringMatching(/^2 GPUs .*not real hardware$/) },
  ]);
});

test('the source that is used is reported with what it lacks', async () => {
  const dir = aDirectory();
  const [check, ...others] = await checksOf(
    bareOptions(dir, { nvidiaSmiPath: writeFakeNvidiaSmi(dir) }),
    'nvidia-smi',
  );
  expect(check).toMatchObject({ state: 'ok', chosen: true });
  expect(check?.message).toMatch(/^2 GPUs \(NVIDIA Fake 80GB\), driver 580\.10\.01, CUDA 13\.0, 1 link$/);
  expect(check?.evidence).toMatch(/^not reported by any GPU: .*activity/);
  expect(others).toEqual([]);
});

test('each GPU that cannot be used is a problem of its own, with what was read', async () => {
  const dir = aDirectory();
  const gpus = [fakeGpu(0), fakeGpu(1, { state: 'dead' })];
  const checks = await checksOf(
    bareOptions(dir, { nvidiaSmiPath: writeFakeNvidiaSmi(dir, { gpus }) }),
    'nvidia-smi',
  );
  expect(checks.map(({ state }) => state)).toEqual(['warning', 'problem']);
  expect(checks[1]?.evidence).toContain('Unable to determine the device handle');
});

test('a source that is forced and not here is a problem', async () => {
  const options = bareOptions(aDirectory(), { gpuSource: 'nvml' });
  expect(await checksOf(options, 'nvml')).toMatchObject([
    { state: 'problem', chosen: true, remedy: expect.stringContaining('--gpu-source') },
  ]);
});

test('a kernel log that cannot be opened is reported, with what goes unnoticed', async () => {
  const options = bareOptions(aDirectory());
  expect(await checksOf(options, options.kernelLog)).toMatchObject([
    {
      state: 'warning',
      message: expect.stringContaining('Xids'),
      evidence: expect.stringContaining('ENOENT'),
    },
  ]);
});

test('a table of conditions that is not valid is a problem', async () => {
  const dir = aDirectory();
  const conditionTable = join(dir, 'table.yaml');
  writeFileSync(conditionTable, 'conditions: {xid_79: {action: reboot}}\n');
  expect(await checksOf(bareOptions(dir, { conditionTable }), conditionTable)).toMatchObject([
    { state: 'problem', message: expect.stringContaining('xid_79') },
  ]);
});

test('before the first start the directory of the agent is not there yet', async () => {
  const dir = aDirectory();
  const options = bareOptions(join(dir, 'not', 'yet'));
  expect(await checksOf(options, dir)).toMatchObject([{ state: 'ok' }]);
});

test('a GPU whose rows cannot be remapped any more is named, with what the agent will do about it', async () => {
  const dir = aDirectory();
  const gpus = [fakeGpu(0), fakeGpu(1, { values: { 'remapped_rows.failure': 'Yes' } })];
  const [, ...found] = await checksOf(
    bareOptions(dir, { nvidiaSmiPath: writeFakeNvidiaSmi(dir, { gpus }) }),
    'nvidia-smi',
  );
  expect(found).toMatchObject([
    { state: 'problem', message: expect.stringMatching(/GPU 1 .*row of its memory/) as string },
  ]);
});
