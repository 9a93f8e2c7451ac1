/**
 * What an agent sees of its GPUs, from the driver's library or program to the command line: inventory, live values,
 * conditions that keep new work away, and the usage of a job.
 */
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NodeView } from '@muster/common/views';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import {
  changeFakeNvidiaSmi,
  type FakeNvidiaSmi,
  fakeGpu,
  writeFakeNvidiaSmi,
} from '../support/fakeNvidiaSmi.ts';
import { buildFakeNvml, type FakeNvml } from '../support/fakeNvml/fakeNvml.ts';
import { tempDir, waitFor } from '../support/services.ts';

/** A heartbeat is a second, a reading too; a machine under load is slower than both. */

function untilNode(
  cluster: Cluster,
  what: string,
  until: (node: NodeView) => boolean,
  name = 'node-1',
): Promise<NodeView> {
  return waitFor(what, () => cluster.api.getNode(name), { until });
}

const kinds = ({ conditions }: NodeView) =>
  conditions.map(({ kind, gpuUuid }) => `${kind} ${gpuUuid ?? 'node'}`);

describe('a node whose GPUs are read with NVML', () => {
  let nvml: FakeNvml;
  let cluster: Cluster;
  let kernelLog: string;
  beforeAll(async () => {
    const dir = tempDir('nvml').path;
    nvml = await buildFakeNvml(dir, { cards: 2 });
    // A driver before R570: a newer one reports itself what must follow, and its report outranks our table.
    nvml.setAll({ rowsPending: 0, recoveryAction: null });
    kernelLog = join(dir, 'kmsg');
    writeFileSync(kernelLog, '');
    const source = ['--gpu-source', 'nvml', '--nvml-library', nvml.path, '--kernel-log', kernelLog];
    cluster = await startCluster({ agentFlags: () => [...source, '--profiling', 'off'] });
    await untilNode(cluster, 'the GPUs are listed', ({ inventory }) => inventory.gpus.length === 2);
  });

  test('tells what they are, and how they are connected', async () => {
    const { inventory } = await cluster.api.getNode('node-1');
    expect(inventory.gpuDriver).toMatchObject({ source: 'nvml', profilingSource: null });
    expect(inventory.gpuDriver.driverVersion).toMatch(/^\d/);
    expect(inventory.gpus).toMatchObject([
      { uuid: nvml.uuid(0), simulated: false, index: 0, mig: null },
      { uuid: nvml.uuid(1), simulated: false, index: 1 },
    ]);
    expect(inventory.host).toMatchObject({ os: expect.stringMatching(/./), threads: expect.any(Number) });
    const text = (await cluster.muster(['node', 'node-1'])).stdout;
    expect(text).toContain(nvml.uuid(0));
    expect(text).toContain('NVML');
    expect(text).not.toContain('simulated');
  });

  test('shows their values live, with the job on them, and keeps its usage', async () => {
    nvml.setAll({ utilization: 87, memoryUsedMb: 40_000, energyMillijoules: 1_000_000 });
    const job = await cluster.submit({
      command: 'while [ ! -e done ]; do sleep 0.1; done',
      workdir: '/tmp',
      resources: { gpus: 1 },
    });
    await cluster.until(job, 'running');
    const telemetry = await waitFor(
      'a reading of the job has come',
      async () => (await cluster.api.queryMetrics({ jobId: job, name: 'gpu_utilization' })).series,
      { until: (series) => series.some(({ points }) => points.length > 0) },
    );
    expect(telemetry).toMatchObject([{ attempt: 1, nodeRank: 0, node: 'node-1' }]);
    expect(telemetry[0]?.points[0]?.value).toBeCloseTo(87, 3);
    const top = (await cluster.muster(['top', '--once'])).stdout;
    expect(top).toContain('87 %');
    expect(top).toContain(job);
    await cluster.api.stopJobs([job]);
    const ended = await cluster.untilEnded(job);
    expect(ended.attempts[0]?.gpuUsage).toMatchObject({ gpus: 1, memoryPeakMb: 40_000, idleGpuSeconds: 0 });
    expect(ended.attempts[0]?.gpuUsage?.utilizationMean).toBeCloseTo(87, 3);
    expect((await cluster.muster(['job', job])).stdout).toMatch(/87 %/);
  });

  test('a GPU with a fatal Xid gets no new work, the other one does, and a person can end that', async () => {
    nvml.announceXid(0, 48);
    const drained = await untilNode(
      cluster,
      'the Xid is a condition',
      ({ conditions }) => conditions.length > 0,
    );
    expect(drained).toMatchObject({ drained: false, drainedGpuUuids: [nvml.uuid(0)] });
    expect(kinds(drained)).toEqual([`xid_48 ${nvml.uuid(0)}`]);
    const spec = { command: 'echo $CUDA_VISIBLE_DEVICES', resources: { gpus: 1 } };
    const jobs = [await cluster.run(spec), await cluster.run(spec)];
    for (const { id } of jobs) expect(await cluster.output(id)).toBe(`${nvml.uuid(1)}\n`);
    const waiting = await cluster.submit({ command: 'true', resources: { gpus: 2 } });
    const { summary, details } = await waitFor(
      'the job is explained',
      () => cluster.api.explainJob(waiting),
      { until: (answer) => [answer.summary, ...answer.details].join(' ').includes('drained') },
    );
    expect([summary, ...details].join(' ')).toMatch(/drained/);
    expect((await cluster.muster(['nodes'])).stdout).toMatch(/xid_48/);
    const cleared = await cluster.muster(['node', 'clear', 'node-1', 'xid_48', '--gpu', '0']);
    expect(cleared.exitCode, cleared.stderr).toBe(0);
    expect(await cluster.untilEnded(waiting)).toMatchObject({ state: 'succeeded' });
    const events = (await cluster.events('node-1')).map(({ kind }) => kind);
    expect(events.filter((kind) => kind.startsWith('condition.'))).toEqual([
      'condition.raised',
      'condition.cleared',
    ]);
  });

  test('an Xid of the kernel log that blames the program drains nothing', async () => {
    const { inventory } = await cluster.api.getNode('node-1');
    const place = inventory.gpus[1]?.pciBusId?.replace(/^0000/, '').replace(/\.0$/, '');
    appendFileSync(
      kernelLog,
      `4,7001,99000000,-;NVRM: Xid (PCI:${place}): 13, pid=77, name=python, Graphics Exception\n`,
    );
    const node = await untilNode(
      cluster,
      'the Xid is a condition',
      ({ conditions }) => conditions.length > 0,
    );
    expect(node).toMatchObject({ drained: false, drainedGpuUuids: [] });
    expect(node.conditions).toMatchObject([{ kind: 'xid_13', action: 'blame_job', gpuUuid: nvml.uuid(1) }]);
    expect(node.conditions[0]?.evidence).toContain('Graphics Exception');
    await cluster.muster(['node', 'clear', 'node-1', 'xid_13']);
  });

  test('a library that hangs holds up neither heartbeats nor jobs, and its GPU gets no new work', async () => {
    nvml.behaveAll(1, 'hang');
    const node = await untilNode(
      cluster,
      'the GPU is suspect',
      ({ drainedGpuUuids }) => drainedGpuUuids.length > 0,
    );
    expect(node).toMatchObject({ state: 'online', drainedGpuUuids: [nvml.uuid(1)] });
    const job = await cluster.run({ command: 'echo $CUDA_VISIBLE_DEVICES', resources: { gpus: 1 } });
    expect(await cluster.output(job.id)).toBe(`${nvml.uuid(0)}\n`);
    const events = (await cluster.events('node-1')).map(({ kind }) => kind);
    expect(events).not.toContain('node.silent');
  });
});

test('instances of a GPU in MIG mode are devices of their own', async () => {
  const dir = tempDir('mig').path;
  const nvml = await buildFakeNvml(dir, { cards: 2 });
  nvml.setAll({ rowsPending: 0, recoveryAction: null });
  nvml.set(1, { migMode: 1, migSlots: 0b101 });
  const source = ['--gpu-source', 'nvml', '--nvml-library', nvml.path, '--kernel-log', '/dev/null'];
  const cluster = await startCluster({ agentFlags: () => [...source, '--profiling', 'off'] });
  const listed = await untilNode(
    cluster,
    'the GPUs are listed',
    ({ inventory }) => inventory.gpus.length === 3,
  );
  expect(listed.inventory.gpus).toMatchObject([
    { uuid: nvml.uuid(0), mig: null },
    { uuid: nvml.migUuid(1, 0), mig: { parentUuid: nvml.uuid(1), profile: '1g.10gb' } },
    { uuid: nvml.migUuid(1, 2), mig: { parentUuid: nvml.uuid(1) } },
  ]);
  const job = await cluster.run({ command: 'echo $CUDA_VISIBLE_DEVICES', resources: { gpus: 3 } });
  const given = (await cluster.output(job.id)).trim().split(',').sort();
  expect(given).toEqual([nvml.uuid(0), nvml.migUuid(1, 0), nvml.migUuid(1, 2)].sort());
  // A fault of the card is a fault of all its instances.
  nvml.announceXid(1, 95);
  const drained = await untilNode(
    cluster,
    'the card is drained',
    ({ drainedGpuUuids }) => drainedGpuUuids.length > 0,
  );
  expect([...drained.drainedGpuUuids].sort()).toEqual([nvml.migUuid(1, 0), nvml.migUuid(1, 2)].sort());
});

describe('a node whose GPUs are read with nvidia-smi', () => {
  let program: string;
  let cluster: Cluster;
  const healthy: Partial<FakeNvidiaSmi> = { gpus: [fakeGpu(0), fakeGpu(1)] };
  beforeAll(async () => {
    program = writeFakeNvidiaSmi(tempDir('smi').path, healthy);
    // With the built-in table, a condition ends when all has been well for a minute.
    const table = join(tempDir('table').path, 'conditions.yaml');
    writeFileSync(
      table,
      'conditions: {driver_mismatch: {quiet: 1s}, gpu_lost: {quiet: 1s}, gpu_unreadable: {quiet: 1s}}',
    );
    const source = ['--gpu-source', 'nvidia-smi', '--nvidia-smi', program, '--condition-table', table];
    cluster = await startCluster({
      agentFlags: () => [...source, '--profiling', 'off', '--sample-interval', '1s'],
    });
    await untilNode(cluster, 'the GPUs are listed', ({ inventory }) => inventory.gpus.length === 2);
  });

  test('tells what they are, and how they are connected', async () => {
    const { inventory } = await cluster.api.getNode('node-1');
    expect(inventory.gpuDriver).toMatchObject({ source: 'nvidia-smi', driverVersion: '580.10.01' });
    const [first, second] = inventory.gpus;
    expect(inventory.links).toContainEqual({ from: first?.uuid, to: second?.uuid, kind: 'NV18' });
  });

  test('a GPU that is lost is drained, and works again when it is back', async () => {
    changeFakeNvidiaSmi(program, { gpus: [fakeGpu(0), fakeGpu(1, { state: 'lost' })] });
    const lost = fakeGpu(1).uuid;
    const node = await untilNode(cluster, 'the loss is seen', ({ conditions }) => conditions.length > 0);
    expect(node.state).toBe('online');
    expect(node.conditions.map(({ gpuUuid }) => gpuUuid)).toContain(lost);
    const job = await cluster.run({ command: 'echo $CUDA_VISIBLE_DEVICES', resources: { gpus: 1 } });
    expect(await cluster.output(job.id)).toBe(`${fakeGpu(0).uuid}\n`);
    changeFakeNvidiaSmi(program, healthy);
    await untilNode(
      cluster,
      'all is well again',
      ({ drainedGpuUuids, drained, inventory }) =>
        inventory.gpus.length === 2 && !drained && drainedGpuUuids.length === 0,
    );
  });

  test('a program that prints garbage, or fails, is a condition and never a number', async () => {
    changeFakeNvidiaSmi(program, {
      failure: { text: 'Failed to initialize NVML: Driver/library version mismatch\n', status: 18 },
    });
    const node = await untilNode(cluster, 'the mismatch is seen', ({ conditions }) =>
      conditions.some(({ kind }) => kind.includes('mismatch')),
    );
    expect(node).toMatchObject({ state: 'online' });
    changeFakeNvidiaSmi(program, { failure: { text: 'x'.repeat(10_000_000), status: 0 } });
    await untilNode(cluster, 'the garbage is seen', ({ conditions }) =>
      conditions.some(({ kind }) => kind.includes('unreadable')),
    );
    // Drained, because no GPU can be used; a job that waits for it runs as soon as the driver is well.
    expect(node.drained).toBe(true);
    const job = await cluster.submit({ command: 'echo still here', resources: { gpus: 1 } });
    changeFakeNvidiaSmi(program, healthy);
    expect(await cluster.untilEnded(job)).toMatchObject({ state: 'succeeded' });
  });
});

test('simulated GPUs say so wherever they are shown', async () => {
  const cluster = await startCluster({});
  const { inventory } = await untilNode(
    cluster,
    'the GPUs are listed',
    (node) => node.inventory.gpus.length === 2,
  );
  expect(inventory.gpuDriver.source).toBe('simulated');
  expect(inventory.gpus.every(({ simulated }) => simulated)).toBe(true);
  for (const args of [['nodes'], ['node', 'node-1'], ['top', '--once']]) {
    expect((await cluster.muster(args)).stdout, args.join(' ')).toMatch(/simulated/);
  }
});
