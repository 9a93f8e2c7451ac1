import type { TaskRef } from '@muster/common/ids';
import { expect, test } from 'vitest';
import { jobIdOf, nodeNameOf, seededRandom } from '../modelFixture.ts';
import { chunkSpanMsMax, readingChunkBytes, readingsPerChunk } from './chunkMemory.ts';
import { endedKeepMs, JobReadings, readingAgeMsMax, seriesBytes } from './jobReadings.ts';
import { aReading } from './telemetryFixture.ts';

const node = nodeNameOf('node-1');
const taskOf = (number: number, fields: Partial<TaskRef> = {}): TaskRef => ({
  jobId: jobIdOf(number),
  attempt: 1,
  nodeRank: 0,
  ...fields,
});
const everything = { sinceMs: Number.POSITIVE_INFINITY, attempt: null, field: 'utilization' } as const;
const interval = 10_000;
/** A budget that so many chunks of three series fit in. */
const roomFor = (chunks: number) => chunks * readingChunkBytes + 4 * seriesBytes;
/** Wall clock of a moment, where the two clocks are one apart. */
const wallOf = (monotonicMs: number) => monotonicMs + 1;

function valuesOf(readings: JobReadings, number: number, nowMs: number, query = {}) {
  return readings
    .query({ jobId: jobIdOf(number), ...everything, ...query }, nowMs, wallOf(nowMs))
    .map(({ points }) => points.map(({ value }) => value));
}

/** One GPU of one job, `count` intervals from 0 on. */
function fill(readings: JobReadings, number: number, count: number, fromMs = 0): number {
  for (let index = 0; index < count; index += 1) {
    const endMs = fromMs + index * interval;
    readings.append(taskOf(number), node, aReading({ utilization: index }), endMs, endMs);
  }
  return fromMs + (count - 1) * interval;
}

test('every field comes back as it went in, what was not read as null, with its time', () => {
  const readings = new JobReadings(2 ** 20);
  const reading = aReading({ memoryUsedMb: 81_559, powerWatts: 612.3, tensorActive: 0, utilization: null });
  readings.append(taskOf(1), node, reading, 500, 500);
  const pointOf = (field: 'utilization' | 'memoryUsedMb' | 'powerWatts' | 'tensorActive' | 'smActive') =>
    readings.query({ jobId: jobIdOf(1), ...everything, field }, 700, wallOf(700))[0]?.points;
  expect(pointOf('memoryUsedMb')).toEqual([{ atMs: 501, value: 81_559 }]);
  expect(pointOf('powerWatts')).toEqual([{ atMs: 501, value: 612.3 }]);
  expect(pointOf('tensorActive')).toEqual([{ atMs: 501, value: 0 }]);
  expect(pointOf('smActive')).toEqual([{ atMs: 501, value: null }]);
  expect(pointOf('utilization')).toEqual([{ atMs: 501, value: null }]);
});

test('series come by attempt, rank and GPU, over as many chunks as it takes', () => {
  const readings = new JobReadings(2 ** 20);
  const places = [
    { attempt: 2, nodeRank: 0, gpuUuid: 'GPU-a' },
    { attempt: 1, nodeRank: 10, gpuUuid: 'GPU-a' },
    { attempt: 1, nodeRank: 2, gpuUuid: 'GPU-b' },
    { attempt: 1, nodeRank: 2, gpuUuid: 'GPU-a' },
  ];
  const count = readingsPerChunk * 2 + 1;
  for (const { gpuUuid, ...place } of places) {
    for (let index = 0; index < count; index += 1) {
      const reading = aReading({ gpuUuid, utilization: index });
      readings.append(taskOf(1, place), node, reading, index * interval, index * interval);
    }
  }
  const nowMs = count * interval;
  const found = readings.query({ jobId: jobIdOf(1), ...everything }, nowMs, wallOf(nowMs));
  expect(found.map(({ attempt, nodeRank, gpuUuid }) => ({ attempt, nodeRank, gpuUuid }))).toEqual(
    places.toReversed(),
  );
  const [first] = found;
  expect(first?.points.map(({ value }) => value)).toEqual(Array.from({ length: count }, (_, index) => index));
  expect(first?.points.map(({ atMs }) => atMs)).toEqual(
    Array.from({ length: count }, (_, index) => wallOf(index * interval)),
  );
  expect(valuesOf(readings, 1, nowMs, { attempt: 2 })).toHaveLength(1);
  expect(valuesOf(readings, 1, nowMs, { attempt: 3 })).toEqual([]);
  expect(valuesOf(readings, 2, nowMs)).toEqual([]);
});

test('a question about the last minutes is answered with those', () => {
  const readings = new JobReadings(2 ** 20);
  const nowMs = fill(readings, 1, 100);
  expect(valuesOf(readings, 1, nowMs, { sinceMs: 2 * interval })).toEqual([[97, 98, 99]]);
  expect(readings.countReadings(jobIdOf(1), 2 * interval, null, nowMs)).toBeGreaterThanOrEqual(3);
  expect(readings.countReadings(jobIdOf(1), Number.POSITIVE_INFINITY, null, nowMs)).toBe(100);
});

test('times of a series never go back, and a pause of hours is kept exactly', () => {
  const readings = new JobReadings(2 ** 20);
  for (const endMs of [1_000, 400, 1_000, chunkSpanMsMax + 2_001])
    readings.append(taskOf(1), node, aReading(), endMs, endMs);
  const nowMs = chunkSpanMsMax + 3_000;
  const [series] = readings.query({ jobId: jobIdOf(1), ...everything }, nowMs, nowMs);
  expect(series?.points.map(({ atMs }) => atMs)).toEqual([1_000, 1_001, 1_002, chunkSpanMsMax + 2_001]);
});

test('when the budget is used up the oldest readings of all go first', () => {
  const bytesMax = roomFor(20);
  const readings = new JobReadings(bytesMax);
  fill(readings, 1, readingsPerChunk * 10);
  const nowMs = fill(readings, 2, readingsPerChunk * 30, 1_000_000);
  expect(readings.bytes).toBeLessThanOrEqual(bytesMax);
  expect(valuesOf(readings, 1, nowMs)).toEqual([]);
  const [kept = []] = valuesOf(readings, 2, nowMs);
  expect(kept.at(-1)).toBe(readingsPerChunk * 30 - 1);
  expect(kept.length).toBeGreaterThan(readingsPerChunk * 15);
  expect(readings.evictedReadings).toBe(readingsPerChunk * 40 - kept.length);
});

test('jobs that ended a while ago make room before jobs that run', () => {
  const readings = new JobReadings(roomFor(10));
  fill(readings, 1, readingsPerChunk * 2);
  fill(readings, 2, readingsPerChunk * 6, 10_000_000);
  readings.sweep(11_000_000, (jobId) => jobId === jobIdOf(1));
  const nowMs = fill(readings, 3, readingsPerChunk * 6, 11_000_000 + endedKeepMs);
  expect(valuesOf(readings, 1, nowMs)[0]).toHaveLength(readingsPerChunk * 2);
  expect(valuesOf(readings, 2, nowMs)[0]?.length ?? 0).toBeLessThan(readingsPerChunk * 6);
  expect(valuesOf(readings, 3, nowMs)[0]).toHaveLength(readingsPerChunk * 6);
});

test('what ended a moment ago has no less right to its place than what runs', () => {
  const readings = new JobReadings(roomFor(10));
  fill(readings, 1, readingsPerChunk * 2);
  fill(readings, 2, readingsPerChunk * 6, 10_000_000);
  readings.sweep(11_000_000, (jobId) => jobId === jobIdOf(1));
  const nowMs = fill(readings, 3, readingsPerChunk * 6, 11_000_000);
  expect(valuesOf(readings, 1, nowMs)).toEqual([]);
  expect(valuesOf(readings, 2, nowMs)[0]?.length).toBeGreaterThanOrEqual(readingsPerChunk * 4);
});

test('readings that are too old are gone, also behind a GPU that is seldom read', () => {
  const readings = new JobReadings(2 ** 20);
  readings.append(taskOf(1), node, aReading({ utilization: 1 }), 0, 0);
  fill(readings, 2, readingsPerChunk * 3, 1_000);
  const nowMs = readingAgeMsMax + readingsPerChunk * 4 * interval;
  readings.append(taskOf(1), node, aReading({ utilization: 2 }), nowMs, nowMs);
  readings.sweep(nowMs, () => true);
  expect(valuesOf(readings, 1, nowMs)).toEqual([[2]]);
  expect(valuesOf(readings, 2, nowMs)).toEqual([]);
  expect(readings.series).toBe(1);
});

test('whatever comes and goes, the budget holds and memory is used again', () => {
  const random = seededRandom(7);
  const bytesMax = 50 * readingChunkBytes;
  const readings = new JobReadings(bytesMax);
  const active = new Set<number>();
  let nowMs = 0;
  let mostBytes = 0;
  for (let step = 0; step < 50_000; step += 1) {
    nowMs += 1 + Math.floor(random() * 5_000);
    const number = Math.floor(step / 500) + Math.floor(random() * 20);
    if (random() < 0.02) active.delete(number);
    else active.add(number);
    readings.append(taskOf(number), node, aReading({ utilization: number }), nowMs, nowMs);
    if (step % 50 === 0) readings.sweep(nowMs, (jobId) => active.has(Number(jobId.slice(4))));
    mostBytes = Math.max(mostBytes, readings.bytes);
    // Slots that were given to two series would show the numbers of the other one.
    if (step % 500 === 0) {
      for (const values of valuesOf(readings, number, nowMs))
        expect(new Set(values)).toEqual(new Set([number]));
    }
  }
  expect(mostBytes).toBeLessThanOrEqual(bytesMax);
  expect(readings.evictedReadings).toBeGreaterThan(1_000);
});

test('a budget of nothing keeps the newest chunk and goes on', () => {
  const readings = new JobReadings(0);
  const nowMs = fill(readings, 1, 100);
  fill(readings, 2, 3, nowMs);
  expect(valuesOf(readings, 1, nowMs)).toEqual([]);
  expect(valuesOf(readings, 2, nowMs + 3 * interval)).toEqual([[0, 1, 2]]);
});
