import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { JobId, TaskRef } from '@muster/common/ids';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { changeFakeNvidiaSmi, fakeGpu, writeFakeNvidiaSmi } from '../../../../test/support/fakeNvidiaSmi.ts';
import type { GpuObservation } from '../gpus/gpuSource.ts';
import { aDirectory, bareOptions, type WatchedNode, watchNode } from './nodeWatchFixture.ts';

const task: TaskRef = { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 };
const [gpu0, gpu1] = [fakeGpu(0), fakeGpu(1)];

/** nvidia-smi is started for each reading, on a machine that may be busy. */
const soon = (check: () => Promise<void>) => vi.waitFor(check, { interval: 20 });

const conditionsOf = async ({ watch }: WatchedNode) =>
  (await watch.status()).conditions.map(({ kind, gpuUuid }) => `${kind} ${gpuUuid ?? 'node'}`);

test('a node without GPUs, Docker and kernel log is nothing to complain about', async () => {
  const node = await watchNode(bareOptions(aDirectory()));
  await node.watch.start();
  const { inventory, conditions } = await node.watch.status();
  expect(inventory).toMatchObject({ gpus: [], gpuDriver: { source: 'none' }, drivers: ['process'] });
  expect(conditions).toEqual([]);
  const page = await node.page();
  expect(page).toContain('muster_agent_gpu_source_info{source="none",use="samples"} 1');
  expect(page).not.toContain('DCGM_FI_');
});

test('simulated GPUs say everywhere that they are', async () => {
  const node = await watchNode(bareOptions(aDirectory(), { gpus: { kind: 'simulated', count: 2 } }));
  await node.watch.start();
  const { inventory, conditions } = await node.watch.status();
  expect(inventory.gpuDriver.source).toBe('simulated');
  expect(inventory.gpus).toMatchObject([{ simulated: true }, { simulated: true }]);
  expect(conditions).toEqual([]);
  const page = await node.page();
  expect(page).toMatch(/^DCGM_FI_DEV_GPU_UTIL\{[^}]*modelName="[^"]*[Ss]imulated/m);
  expect(page).not.toContain('DCGM_FI_DEV_XID_ERRORS');
});

test('what the GPUs of tasks do is shown to whoever follows their training', async () => {
  const dataDir = aDirectory();
  const seen: GpuObservation[] = [];
  const node = await watchNode(bareOptions(dataDir, { gpus: { kind: 'simulated', count: 1 } }), {
    training: { observe: (observation) => seen.push(observation) },
  });
  node.running.push({ task, gpuUuids: ['GPU-SIMULATED-a-0'] });
  await node.watch.start();
  const newest = () => seen.at(-1)?.samples.get('GPU-SIMULATED-a-0');
  await vi.waitFor(() => expect(newest()?.powerWatts).toBeGreaterThan(400));
  expect(seen.at(-1)?.holders.get('GPU-SIMULATED-a-0')).toEqual(task);
  writeFileSync(join(dataDir, 'simulated-gpus'), 'pinned\n');
  await vi.waitFor(() => expect(newest()).toMatchObject({ utilization: 100, activity: { tensorActive: 0 } }));
});

describe('a node with nvidia-smi', () => {
  function aNode(change: Parameters<typeof bareOptions>[1] = {}, dataDir = aDirectory()) {
    const nvidiaSmiPath = writeFakeNvidiaSmi(dataDir);
    return {
      nvidiaSmiPath,
      options: bareOptions(dataDir, { gpuSource: 'nvidia-smi', nvidiaSmiPath, ...change }),
    };
  }

  test('shows its GPUs, and who holds them', async () => {
    const { options } = aNode();
    const node = await watchNode(options);
    node.running.push({ task, gpuUuids: [gpu1.uuid] });
    await node.watch.start();
    const { inventory } = await node.watch.status();
    expect(inventory).toMatchObject({
      gpus: [{ uuid: gpu0.uuid, simulated: false }, { uuid: gpu1.uuid }],
      gpuDriver: { source: 'nvidia-smi', driverVersion: '580.10.01' },
      links: expect.arrayContaining([{ from: gpu0.uuid, to: gpu1.uuid, kind: 'NV18' }]),
    });
    const page = await node.page();
    expect(page).toMatch(
      new RegExp(`DCGM_FI_DEV_GPU_UTIL\\{gpu="1",UUID="${gpu1.uuid}".*job_0123.*\\} 97\n`),
    );
    await vi.waitFor(() => expect(node.watch.usageOf(task)).toMatchObject({ gpus: 1, memoryPeakMb: 40_000 }));
  });

  test('tells of a process on a GPU that no task has started', async () => {
    const { options, nvidiaSmiPath } = aNode();
    const node = await watchNode(options);
    await node.watch.start();
    expect(node.watch.foreignProcessesOn([gpu0.uuid, gpu1.uuid])).toEqual([]);
    const { pid } = process;
    changeFakeNvidiaSmi(nvidiaSmiPath, { gpus: [gpu0, { ...gpu1, processes: [{ pid, memoryMb: 500 }] }] });
    await soon(async () => {
      expect(node.watch.foreignProcessesOn([gpu0.uuid, gpu1.uuid])).toMatchObject([
        { gpuUuid: gpu1.uuid, pid },
      ]);
    });
    expect(node.watch.foreignProcessesOn([gpu0.uuid])).toEqual([]);
  });

  test('does not claim that there were no Xids where nobody watches for them', async () => {
    const { options } = aNode();
    const deaf = await watchNode(options);
    await deaf.watch.start();
    expect(await deaf.page()).not.toContain('XID_ERRORS');

    const { options: heard } = aNode({ kernelLog: join(aDirectory(), 'kmsg') });
    writeFileSync(heard.kernelLog, `4,1,1000,-;NVRM: Xid (PCI:0000:01:00): 48, pid=7, name=python, DBE\n`);
    const node = await watchNode(heard);
    await node.watch.start();
    await soon(async () => expect(await conditionsOf(node)).toContain(`xid_48 ${gpu1.uuid}`));
    const page = await node.page();
    expect(page).toMatch(new RegExp(`XID_ERRORS\\{gpu="1",.*\\} 48\n`));
    expect(page).toMatch(new RegExp(`XID_ERRORS\\{gpu="0",.*\\} 0\n`));
  });

  test('tells of a GPU that is lost, and that it is back', async () => {
    let changes = 0;
    const { options, nvidiaSmiPath } = aNode();
    const node = await watchNode(options, { onStatusChange: () => (changes += 1) });
    await node.watch.start();
    const before = changes;
    changeFakeNvidiaSmi(nvidiaSmiPath, { gpus: [gpu0, { ...gpu1, state: 'dead' }] });
    await soon(async () => expect(await conditionsOf(node)).toContain(`gpu_lost ${gpu1.uuid}`));
    await soon(async () => expect((await node.watch.status()).inventory.gpus).toHaveLength(1));
    expect(changes).toBeGreaterThan(before);
    const page = await node.page();
    expect(page).toContain(`muster_agent_conditions{kind="gpu_lost",gpu="${gpu1.uuid}"`);
    expect(page).not.toMatch(new RegExp(`DCGM_FI_DEV_GPU_UTIL\\{gpu="1"`));
    changeFakeNvidiaSmi(nvidiaSmiPath, {});
    await soon(async () => expect((await node.watch.status()).inventory.gpus).toHaveLength(2));
  });

  test.each([
    [
      'a driver of another version',
      'Failed to initialize NVML: Driver/library version mismatch\n',
      'driver_mismatch node',
    ],
    ['garbage', '\u0000\u001b[2J<nvidia_smi_log><gpu id="', null],
    ['10 MB of it', '7, [N/A]\n'.repeat(1_200_000), null],
  ])('goes on with %s, and shows no value', async (_what, text, expected) => {
    const { options, nvidiaSmiPath } = aNode();
    const node = await watchNode(options);
    await node.watch.start();
    changeFakeNvidiaSmi(nvidiaSmiPath, { failure: { text, status: expected === null ? 0 : 18 } });
    await soon(async () => {
      const kinds = await conditionsOf(node);
      if (expected === null) expect(kinds.every((kind) => kind.startsWith('gpu_unreadable'))).toBe(true);
      else expect(kinds).toEqual([expected]);
      expect(kinds).not.toEqual([]);
    });
    // They are still the node's: nothing says that they are gone.
    expect((await node.watch.status()).inventory.gpus).toHaveLength(2);
    expect(await node.page()).not.toContain('DCGM_FI_DEV_GPU_UTIL');
  });

  test('remembers over a restart how many GPUs there were', async () => {
    const { options, nvidiaSmiPath } = aNode();
    const first = await watchNode(options);
    await first.watch.start();
    await first.watch.close();
    changeFakeNvidiaSmi(nvidiaSmiPath, { gpus: [gpu0] });
    const second = await watchNode(options);
    await second.watch.start();
    expect(await conditionsOf(second)).toEqual([`gpu_missing ${gpu1.uuid}`]);
  });

  test('starts without its GPUs when the driver takes too long, and has them once it answers', async () => {
    const { options, nvidiaSmiPath } = aNode();
    changeFakeNvidiaSmi(nvidiaSmiPath, { delayMs: 1_500 });
    let changes = 0;
    const node = await watchNode(options, { firstListingMs: 50, onStatusChange: () => (changes += 1) });
    await node.watch.start();
    expect((await node.watch.status()).inventory.gpus).toEqual([]);
    changeFakeNvidiaSmi(nvidiaSmiPath, {});
    await vi.waitFor(() => expect(changes).toBeGreaterThan(0));
    expect((await node.watch.status()).inventory.gpus).toHaveLength(2);
  });

  test('can be closed while the driver hangs', async () => {
    const { options, nvidiaSmiPath } = aNode();
    changeFakeNvidiaSmi(nvidiaSmiPath, { delayMs: 600_000 });
    const node = await watchNode(options, { firstListingMs: 50 });
    await node.watch.start();
    await node.watch.close();
  });
});

test('an exporter that hangs does not keep the node from starting', async () => {
  const exporter = createServer(() => {});
  await new Promise<void>((resolve) => exporter.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    exporter.closeAllConnections();
    exporter.close();
  });
  const { port } = exporter.address() as AddressInfo;
  const options = bareOptions(aDirectory(), {
    profilingSource: 'auto',
    dcgmExporterUrl: `http://127.0.0.1:${port}/metrics`,
  });
  const node = await watchNode(options, { firstListingMs: 50 });
  await node.watch.start();
  expect((await node.watch.status()).inventory.gpuDriver.source).toBe('none');
  // Closed before it knows its sources, it ends those that it finds afterwards.
  await node.watch.close();
});

test('a card in MIG mode that is not divided yet is not missing', async () => {
  const dir = aDirectory();
  const options = bareOptions(dir, { gpuSource: 'nvidia-smi', nvidiaSmiPath: writeFakeNvidiaSmi(dir) });
  const first = await watchNode(options);
  await first.watch.start();
  await first.watch.close();
  changeFakeNvidiaSmi(options.nvidiaSmiPath, { gpus: [{ ...gpu0, mig: [] }, gpu1] });
  const second = await watchNode(options);
  await second.watch.start();
  expect((await second.watch.status()).inventory.gpus).toMatchObject([{ uuid: gpu1.uuid }]);
  expect((await second.watch.status()).conditions).toMatchObject([
    { kind: 'gpu_without_instances', gpuUuid: gpu0.uuid, severity: 'warning', action: 'note' },
  ]);
});
