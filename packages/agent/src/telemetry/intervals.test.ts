import type { JobId, TaskRef } from '@muster/common/ids';
import { describe, expect, test } from 'vitest';
import { emptyActivity, emptySample, type GpuSample } from '../gpus/gpuSource.ts';
import { Intervals } from './intervals.ts';

const task: TaskRef = { jobId: 'job_0123456789ab' as JobId, attempt: 2, nodeRank: 0 };
const wall = 1_700_000_000_000;

function aSample(values: Partial<GpuSample>): GpuSample {
  return { ...emptySample('GPU-1'), ...values };
}

describe('a reading', () => {
  test('holds means over time, and the most of memory and temperature', () => {
    const intervals = new Intervals();
    intervals.add(aSample({ utilization: 0, memoryUsedMb: 10, temperature: 40 }), task, 0, wall);
    intervals.add(
      aSample({ utilization: 100, memoryUsedMb: 90, temperature: 60 }),
      task,
      1_000,
      wall + 1_000,
    );
    intervals.add(aSample({ utilization: 40, memoryUsedMb: 50, temperature: 50 }), task, 4_000, wall + 4_000);
    const [reading] = intervals.close(wall + 4_000);
    expect(reading).toMatchObject({ gpuUuid: 'GPU-1', task, atMs: wall + 4_000, intervalMs: 4_000 });
    expect(reading).toMatchObject({ memoryUsedMb: 90, temperature: 60 });
    // 100 for 1 s, 40 for 3 s; the first sample stands for a moment.
    expect(reading?.utilization).toBeCloseTo(55, 1);
  });

  test('has null for what was not read, never 0', () => {
    const intervals = new Intervals();
    intervals.add(aSample({ temperature: 40 }), null, 0, wall);
    expect(intervals.close(wall)).toEqual([
      {
        gpuUuid: 'GPU-1',
        atMs: wall,
        intervalMs: 0,
        task: null,
        temperature: 40,
        utilization: null,
        memoryUsedMb: null,
        powerWatts: null,
        nvlinkReceiveBytes: null,
        nvlinkTransmitBytes: null,
        energyJoules: null,
        smActive: null,
        tensorActive: null,
        dramActive: null,
      },
    ]);
  });

  test('of a GPU without values is not made', () => {
    const intervals = new Intervals();
    intervals.add(aSample({}), task, 0, wall);
    expect(intervals.close(wall)).toEqual([]);
    intervals.add(aSample({ utilization: 5 }), task, 1_000, wall);
    expect(intervals.close(wall)).toHaveLength(1);
    expect(intervals.close(wall)).toEqual([]);
  });

  test('takes energy from the counter of the card', () => {
    const intervals = new Intervals();
    intervals.add(aSample({ energyMillijoules: 1_000, powerWatts: 9 }), task, 0, wall);
    intervals.add(aSample({ energyMillijoules: 5_000, powerWatts: 9 }), task, 1_000, wall);
    expect(intervals.close(wall)).toMatchObject([{ energyJoules: 4, powerWatts: 9 }]);
  });

  test('takes energy from power over time where there is no counter, or it began anew', () => {
    const intervals = new Intervals();
    intervals.add(aSample({ powerWatts: 200 }), task, 0, wall);
    intervals.add(aSample({ powerWatts: 300 }), task, 2_000, wall);
    expect(intervals.close(wall)).toMatchObject([{ energyJoules: 600 }]);
    intervals.add(aSample({ energyMillijoules: 7_000, powerWatts: 100 }), task, 3_000, wall);
    intervals.add(aSample({ energyMillijoules: 10, powerWatts: 100 }), task, 4_000, wall);
    expect(intervals.close(wall)).toMatchObject([{ energyJoules: 200 }]);
  });

  test('has the activity of SMs, tensor cores and memory', () => {
    const intervals = new Intervals();
    const activity = { ...emptyActivity, smActive: 0.5, tensorActive: 0.25 };
    intervals.add(aSample({ activity }), task, 0, wall);
    expect(intervals.close(wall)).toMatchObject([{ smActive: 0.5, tensorActive: 0.25, dramActive: null }]);
  });
});

describe('the task of a reading', () => {
  test('changes with the holder: the reading before ends there', () => {
    const intervals = new Intervals();
    const next = { ...task, attempt: 3 };
    expect(intervals.add(aSample({ utilization: 80 }), task, 0, wall)).toBeNull();
    expect(intervals.add(aSample({ utilization: 80 }), task, 1_000, wall + 1_000)).toBeNull();
    const ended = intervals.add(aSample({ utilization: 10 }), next, 2_000, wall + 2_000);
    expect(ended).toMatchObject({ task, utilization: 80, intervalMs: 1_000, atMs: wall + 1_000 });
    expect(intervals.close(wall)).toMatchObject([{ task: next, utilization: 10 }]);
  });

  test('may be none', () => {
    const intervals = new Intervals();
    intervals.add(aSample({ utilization: 80 }), task, 0, wall);
    expect(intervals.add(aSample({ utilization: 0 }), null, 1_000, wall)).toMatchObject({ task });
    expect(intervals.close(wall)).toMatchObject([{ task: null }]);
  });
});

test('a gap is not counted as if it had been looked at', () => {
  const intervals = new Intervals();
  intervals.add(aSample({ utilization: 100, powerWatts: 100 }), task, 0, wall);
  intervals.add(aSample({ utilization: 0, powerWatts: 100 }), task, 600_000, wall);
  const [reading] = intervals.close(wall);
  expect(reading).toMatchObject({ intervalMs: 0, energyJoules: null });
  expect(reading?.utilization).toBeCloseTo(50, 5);
});

test('samples that are wanted far apart stand for the time between them', () => {
  const intervals = new Intervals(60_000);
  intervals.add({ ...emptySample('GPU-1'), utilization: 50, powerWatts: 100 }, null, 0, 0);
  intervals.add({ ...emptySample('GPU-1'), utilization: 50, powerWatts: 100 }, null, 60_000, 60_000);
  expect(intervals.close(60_000)).toMatchObject([
    { intervalMs: 60_000, utilization: 50, energyJoules: 6_000 },
  ]);
});
