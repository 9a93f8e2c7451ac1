import type { MetricPoint } from '@muster/common/telemetry';
import { expect, test } from 'vitest';
import { continued, valueOf } from './trialValue.ts';

const points = (...values: readonly (number | null)[]): readonly MetricPoint[] =>
  values.map((value, index) => ({
    atMs: index,
    value,
    step: index * 10,
    ...(value === null ? { notFinite: 1 } : {}),
  }));
const min = { metric: 'train_loss', goal: 'min' } as const;

test('the last value counts, or the best, or the last up to a step', () => {
  const falling = points(3, 1, 2);
  expect(valueOf(falling, { ...min, of: 'last' })).toEqual({ kind: 'value', value: 2, step: 20 });
  expect(valueOf(falling, { ...min, of: 'best' })).toEqual({ kind: 'value', value: 1, step: 10 });
  expect(valueOf(falling, { ...min, goal: 'max', of: 'best' })).toEqual({ kind: 'value', value: 3, step: 0 });
  expect(valueOf(falling, { ...min, of: { atStep: 15 } })).toEqual({ kind: 'value', value: 1, step: 10 });
});

test('values that were thinned to one are looked into', () => {
  const bucket = { rows: 4, firstStep: 0, min: 0.5, max: 9, last: 2 };
  const thinned = [{ atMs: 0, value: 4, step: 30, bucket }];
  expect(valueOf(thinned, { ...min, of: 'last' })).toMatchObject({ value: 2 });
  expect(valueOf(thinned, { ...min, of: 'best' })).toMatchObject({ value: 0.5 });
  expect(valueOf(thinned, { ...min, goal: 'max', of: 'best' })).toMatchObject({ value: 9 });
});

test('a loss that is not finite at its end is no value, whatever it was before', () => {
  expect(valueOf(points(3, 0.1, null), { ...min, of: 'last' })).toEqual({ kind: 'notFinite' });
  expect(valueOf(points(3, null, 1), { ...min, of: 'best' })).toMatchObject({ kind: 'value', value: 1 });
  expect(valueOf(points(null), { ...min, of: 'best' })).toEqual({ kind: 'notFinite' });
});

test('a metric that never appears is told from one that is not finite', () => {
  expect(valueOf([], { ...min, of: 'last' })).toEqual({ kind: 'none' });
  expect(valueOf([], { ...min, of: 'best' })).toEqual({ kind: 'none' });
  expect(
    valueOf(
      points(1).map((point) => ({ ...point, step: 5 })),
      { ...min, of: { atStep: 4 } },
    ),
  ).toEqual({
    kind: 'none',
  });
});

test('a job that continues another adds what lies behind the end of that', () => {
  const joined = (...parts: readonly (readonly (number | null)[])[]) => continued(parts, (at) => at);
  expect(joined([10, 20, 30], [20, 30, 40], [40, 50])).toEqual([10, 20, 30, 40, 50]);
  // It resumed, and had nothing left to do.
  expect(joined([10, 20], [])).toEqual([10, 20]);
  expect(joined([null], [null])).toEqual([null, null]);
  expect(joined()).toEqual([]);
});
