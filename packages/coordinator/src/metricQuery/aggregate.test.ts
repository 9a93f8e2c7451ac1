import type { MetricPoint, MetricSeries } from '@muster/common/telemetry';
import { expect, test } from 'vitest';
import { aggregated, type Shape } from './aggregate.ts';

const points = (...values: readonly (number | null)[]): readonly MetricPoint[] =>
  values.map((value, index) => ({ atMs: (index + 1) * 10_000, value }));

function ofGpu(nodeRank: number, gpu: number, values: readonly (number | null)[]): MetricSeries {
  return {
    jobId: 'job_a',
    attempt: 1,
    nodeRank,
    node: `node-${nodeRank}`,
    gpuUuid: `GPU-${gpu}`,
    points: points(...values),
  };
}

const gpus = [ofGpu(0, 0, [10, 20, 30, 40]), ofGpu(0, 1, [null, 60, 70, 80]), ofGpu(1, 2, [100, 0, 0, 0])];
const whole: Shape = { aggregation: 'mean', by: 'gpu', stepMs: null, toMs: 50_000 };
const valuesOf = (shape: Partial<Shape>, series = gpus) =>
  aggregated(series, { ...whole, ...shape }).map((each) => each.points.map(({ value }) => value));

test.each([
  ['mean', [25, 70, 25]],
  ['min', [10, 60, 0]],
  ['max', [40, 80, 100]],
  ['p95', [40, 80, 100]],
  ['last', [40, 80, 0]],
  ['sum', [100, 210, 100]],
] as const)(
  '%s of each GPU over the whole time; what was not read counts nowhere',
  (aggregation, expected) => {
    expect(valuesOf({ aggregation })).toEqual(expected.map((value) => [value]));
    expect(aggregated(gpus, whole)[0]?.points[0]?.atMs).toBe(50_000);
  },
);

test('a step has the values up to its end, steps begin at multiples of their length, and the last ends with the time', () => {
  const [first] = aggregated(gpus, { ...whole, stepMs: 20_000, toMs: 35_000 });
  expect(first?.points).toEqual([
    { atMs: 20_000, value: 15 },
    { atMs: 35_000, value: 35 },
  ]);
});

test('over ranks, nodes, jobs and all; members that differ are absent', () => {
  const identities = (by: Shape['by']) =>
    aggregated(gpus, { ...whole, by }).map(({ nodeRank, node, gpuUuid }) => [nodeRank, node, gpuUuid]);
  expect(identities('gpu')).toHaveLength(3);
  expect(identities('rank')).toEqual([
    [0, 'node-0', ''],
    [1, 'node-1', 'GPU-2'],
  ]);
  expect(identities('job')).toEqual([[null, '', '']]);
  expect(valuesOf({ by: 'rank', aggregation: 'max' })).toEqual([[80], [100]]);
  const other = { ...ofGpu(0, 0, [50]), jobId: 'job_b' };
  expect(aggregated([...gpus, other], { ...whole, by: 'job' }).map(({ jobId }) => jobId)).toEqual([
    'job_a',
    'job_b',
  ]);
  const all = aggregated([...gpus, other], { ...whole, by: 'all', aggregation: 'max' });
  expect(all).toMatchObject([{ attempt: 1, points: [{ value: 100 }] }]);
  expect(Object.hasOwn(all[0] ?? {}, 'jobId')).toBe(false);
  expect(valuesOf({ by: 'node' }, [...gpus, other])).toEqual([[45], [25]]);
});

test('the last value over several series is the mean of the newest of each', () => {
  expect(valuesOf({ by: 'all', aggregation: 'last' })).toEqual([[40]]);
});

test('19 of 20 values are not above the 95th percentile', () => {
  const ramp = [
    ofGpu(
      0,
      0,
      Array.from({ length: 100 }, (_, index) => index + 1),
    ),
  ];
  expect(valuesOf({ aggregation: 'p95', toMs: 2_000_000 }, ramp)).toEqual([[95]]);
});

test('rows that stand for several count as many times, and what is not finite is counted', () => {
  const bucket = { rows: 3, firstStep: 0, min: 1, max: 9, last: 2 };
  const rows: MetricSeries = {
    ...ofGpu(0, 0, []),
    points: [
      { atMs: 10_000, value: 4, step: 2, bucket },
      { atMs: 20_000, value: 8, step: 3 },
      { atMs: 30_000, value: null, step: 4, notFinite: 1 },
    ],
  };
  const at = (aggregation: Shape['aggregation']) => aggregated([rows], { ...whole, aggregation })[0]?.points;
  expect(at('mean')).toEqual([{ atMs: 50_000, value: 5, step: 4, notFinite: 1 }]);
  expect(at('min')).toMatchObject([{ value: 1 }]);
  expect(at('max')).toMatchObject([{ value: 9 }]);
  expect(at('last')).toMatchObject([{ value: 8 }]);
});

test('a step in which nothing was read has no value, and is no zero', () => {
  expect(valuesOf({ stepMs: 10_000 }, [ofGpu(0, 0, [5, null, 7])])).toEqual([[5, null, 7]]);
});
