import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type JobId, type TaskRef, taskKey } from '@muster/common/ids';
import { expect, onTestFinished, test } from 'vitest';
import { emptyActivity, emptySample, type GpuSample } from '../gpus/gpuSource.ts';
import { UsageMeter } from './usageMeter.ts';

const task: TaskRef = { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 };

function aNode() {
  const root = mkdtempSync(join(tmpdir(), 'usage-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const errors: unknown[] = [];
  const fileOf = (of: TaskRef) => join(root, taskKey(of), 'usage.json');
  mkdirSync(join(root, taskKey(task)));
  const agent = () => new UsageMeter({ fileOf, onError: (_task, error) => errors.push(error) });
  return { agent, fileOf, errors };
}

function aSample(uuid: string, values: Partial<GpuSample>): GpuSample {
  return { ...emptySample(uuid), ...values };
}

test('usage is what the samples say', () => {
  const meter = aNode().agent();
  const busy = { utilization: 90, memoryUsedMb: 4_000, activity: { ...emptyActivity, smActive: 0.8 } };
  for (const second of [0, 1, 2, 3, 4]) {
    const energyMillijoules = second * 3_600_000;
    meter.add(task, aSample('GPU-1', { ...busy, energyMillijoules }), second * 1_000);
    meter.add(
      task,
      aSample('GPU-2', { utilization: 0, memoryUsedMb: 100, energyMillijoules: 0 }),
      second * 1_000,
    );
  }
  const reading = { gpuUuid: 'GPU-1', atMs: 0, intervalMs: 10_000, task, utilization: 90 };
  meter.addReading({
    ...reading,
    memoryUsedMb: null,
    powerWatts: null,
    energyJoules: null,
    smActive: null,
    tensorActive: null,
    dramActive: null,
    temperature: null,
    nvlinkReceiveBytes: null,
    nvlinkTransmitBytes: null,
  });
  expect(meter.usageOf(task)).toEqual({
    gpus: 2,
    observedGpuSeconds: 8,
    utilizationMean: 45,
    utilizationPeak: 90,
    memoryPeakMb: 4_000,
    energyKwh: 0.004,
    idleGpuSeconds: 4,
    smActiveMean: 0.8,
    tensorActiveMean: null,
  });
});

test('a task without readings has no usage, and one whose GPUs do not tell has nulls', () => {
  const meter = aNode().agent();
  expect(meter.usageOf(task)).toBeNull();
  meter.add(task, aSample('GPU-1', {}), 0);
  meter.add(task, aSample('GPU-1', {}), 1_000);
  expect(meter.usageOf(task)).toMatchObject({
    gpus: 1,
    observedGpuSeconds: 1,
    utilizationMean: null,
    utilizationPeak: null,
    memoryPeakMb: null,
    energyKwh: null,
    idleGpuSeconds: null,
    smActiveMean: null,
  });
});

test('counting goes on in the next agent, energy over the gap included', () => {
  const { agent } = aNode();
  const first = agent();
  for (const second of [0, 1]) {
    const energyMillijoules = 1_000_000 * second;
    first.add(task, aSample('GPU-1', { utilization: 50, energyMillijoules }), second * 1_000);
  }
  first.save([task]);
  const second = agent();
  // Ended while nobody looked: what was written down is what is known.
  expect(second.usageOf(task)).toEqual(first.usageOf(task));
  // Runs on: the card itself has counted 8 kJ since.
  second.add(task, aSample('GPU-1', { utilization: 100, energyMillijoules: 9_000_000 }), 70_000_000);
  second.add(task, aSample('GPU-1', { utilization: 100, energyMillijoules: 9_000_000 }), 70_001_000);
  const usage = second.usageOf(task);
  expect(usage).toMatchObject({ observedGpuSeconds: 2, utilizationMean: 75 });
  expect(usage?.energyKwh).toBeCloseTo(9_000 / 3_600_000, 9);
});

test('a counter that went back is not energy given back', () => {
  const meter = aNode().agent();
  meter.add(task, aSample('GPU-1', { energyMillijoules: 8_000_000 }), 0);
  meter.add(task, aSample('GPU-1', { energyMillijoules: 1_000 }), 1_000);
  meter.add(task, aSample('GPU-1', { energyMillijoules: 2_000 }), 2_000);
  expect((meter.usageOf(task)?.energyKwh ?? 0) * 3_600_000).toBeCloseTo(1, 6);
});

test('a damaged file costs what was counted, and nothing else', () => {
  const { agent, fileOf } = aNode();
  writeFileSync(fileOf(task), '{"version":1,"gpus":');
  const meter = agent();
  expect(meter.usageOf(task)).toBeNull();
  meter.add(task, aSample('GPU-1', { utilization: 10 }), 0);
  expect(meter.usageOf(task)).toMatchObject({ gpus: 1 });
});

test('a pipe in place of the file, which a task may have put there, holds nobody up', () => {
  const { agent, fileOf } = aNode();
  execFileSync('mkfifo', [fileOf(task), `${fileOf(task)}.tmp`]);
  const meter = agent();
  expect(meter.usageOf(task)).toBeNull();
  meter.add(task, aSample('GPU-1', { utilization: 10 }), 0);
  meter.save([task]);
  expect(agent().usageOf(task)).toMatchObject({ gpus: 1 });
});

test('what cannot be written down is reported, and counting goes on', () => {
  const { agent, errors, fileOf } = aNode();
  const meter = agent();
  rmSync(join(fileOf(task), '..'), { recursive: true });
  meter.add(task, aSample('GPU-1', { utilization: 10 }), 0);
  meter.save([task, { ...task, attempt: 9 }]);
  expect(errors).toHaveLength(1);
  meter.add(task, aSample('GPU-1', { utilization: 10 }), 1_000);
  expect(meter.usageOf(task)).toMatchObject({ observedGpuSeconds: 1 });
});
