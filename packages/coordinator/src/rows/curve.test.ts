import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Curves, pageOf, type RowRange, reduced, rowFilter } from './curve.ts';
import { aRowStore, rowsAtMs, someRows, someTask } from './rowFixture.ts';
import type { RowStore } from './rowStore.ts';
import { Summaries } from './summaries.ts';

const everything: RowRange = {
  fromMs: Number.NEGATIVE_INFINITY,
  toMs: Number.POSITIVE_INFINITY,
  attempt: null,
  superseded: false,
};
const ofAttempt = (attempt: number) => ({ ...someTask, attempt });
const append = (store: RowStore, attempt: number, rows: ReturnType<typeof someRows>) =>
  store.append(ofAttempt(attempt), rows, 2 ** 30, rowsAtMs + 10 ** 9);

async function look(store: RowStore, range = everything) {
  const looked = await store.lookAt(someTask.jobId, async ({ firstSteps, read }) => {
    const isIn = rowFilter(range, firstSteps);
    const curves = new Curves('train_loss', isIn);
    const summaries = new Summaries(isIn);
    await read((frame) => {
      curves.take(frame);
      summaries.take(frame);
    });
    return { curves: curves.curves, metrics: summaries.metrics };
  });
  if (looked === null) throw new Error('there are no rows');
  return looked;
}

const stepsOf = ({ points }: { readonly points: readonly { readonly step?: number | null }[] }) =>
  points.map(({ step }) => step);

test('what a later attempt did again counts in its place, unless the earlier is asked for', async () => {
  const store = aRowStore();
  await append(store, 1, someRows(0, 100));
  await append(store, 2, someRows(50, 60));
  await append(store, 3, someRows(55, 58));
  const attempts = async (range = everything) =>
    (await look(store, range)).curves.map((curve) => [
      curve.attempt,
      stepsOf(curve)[0],
      stepsOf(curve).at(-1),
    ]);
  expect(await attempts()).toEqual([
    [1, 0, 49],
    [2, 50, 54],
    [3, 55, 57],
  ]);
  expect(await attempts({ ...everything, superseded: true })).toEqual([
    [1, 0, 99],
    [2, 50, 59],
    [3, 55, 57],
  ]);
  expect(await attempts({ ...everything, attempt: 1 })).toEqual([[1, 0, 99]]);
  expect(await attempts({ ...everything, fromMs: rowsAtMs + 56_000 })).toEqual([[3, 56, 57]]);
});

test('a summary has the last and the best with their steps, of the lowest rank', async () => {
  const store = aRowStore();
  const rows = someRows(0, 10, { tokens_per_second: 5, learning_rate: 0.1 }).map((row) => {
    const { step = 0 } = row.values;
    if (step === 3) return { ...row, values: { ...row.values, train_loss: 0.01, tokens_per_second: 9 } };
    return step === 8 ? { ...row, values: { step, eval_loss: 2 }, lossNotFinite: true } : row;
  });
  await append(store, 1, rows);
  await store.append({ ...someTask, nodeRank: 1 }, someRows(0, 20), 2 ** 30, rowsAtMs);
  const { metrics } = await look(store);
  expect(metrics.map(({ name }) => name)).toEqual([
    'train_loss',
    'eval_loss',
    'learning_rate',
    'step',
    'tokens_per_second',
  ]);
  expect(metrics[0]).toEqual({
    name: 'train_loss',
    unit: 'loss',
    last: 0.1,
    lastStep: 9,
    firstStep: 0,
    best: 0.01,
    bestStep: 3,
    rows: 10,
    notFinite: 1,
    notFiniteStep: 8,
    first: 1,
    least: 0.01,
    leastStep: 3,
    greatest: 1,
    greatestStep: 0,
    omitted: 0,
    mergedPoints: 0,
  });
  expect(metrics[4]).toMatchObject({ best: 9, bestStep: 3, last: 5, rows: 9 });
  expect(metrics[2]).toMatchObject({ best: null, last: 0.1 });
});

test('fewer points have the extremes of those that they stand for, and say how many these are', () => {
  const points = Array.from({ length: 10 }, (_, step) => ({
    atMs: step,
    value: step === 4 ? null : step,
    step,
  }));
  const withNan = points.map((point) => (point.value === null ? { ...point, notFinite: 1 } : point));
  expect(reduced(points, 10)).toBe(points);
  const few = reduced(withNan, 4);
  expect(few).toHaveLength(4);
  expect(few[1]).toEqual({
    atMs: 5,
    value: (3 + 5) / 2,
    step: 5,
    notFinite: 1,
    bucket: { rows: 3, firstStep: 3, min: 3, max: 5, last: 5 },
  });
  expect(few.at(-1)).toEqual({ atMs: 9, value: 9, step: 9 });
  const one = reduced(few, 1);
  expect(one).toEqual([
    {
      atMs: 9,
      value: (45 - 4) / 9,
      step: 9,
      notFinite: 1,
      bucket: { rows: 10, firstStep: 0, min: 0, max: 9, last: 9 },
    },
  ]);
});

test('fewer points keep the extremes, the ends and the first NaN as points of their own', () => {
  fc.assert(
    fc.property(
      fc.array(fc.option(fc.integer({ min: -5, max: 5 })), { minLength: 1, maxLength: 300 }),
      fc.integer({ min: 16, max: 60 }),
      (values, pointsMax) => {
        const points = values.map((value, step) =>
          value === null ? { atMs: step, value, step, notFinite: 1 } : { atMs: step, value, step },
        );
        const few = reduced(points, pointsMax);
        expect(few.length).toBeLessThanOrEqual(pointsMax);
        expect(few.reduce((sum, { bucket }) => sum + (bucket?.rows ?? 1), 0)).toBe(points.length);
        const finite = values.filter((value) => value !== null);
        const marked = [0, points.length - 1];
        for (const value of [Math.min(...finite), Math.max(...finite), null])
          marked.push(values.indexOf(value));
        for (const place of marked) if (place >= 0) expect(few).toContainEqual(points[place]);
      },
    ),
  );
});

test('pages have every point once', () => {
  const curve = (attempt: number, count: number) => ({
    attempt,
    nodeRank: 0,
    points: Array.from({ length: count }, (_, step) => ({ atMs: 0, value: 1, step })),
    mergedPoints: 0,
  });
  const curves = [curve(1, 5), curve(2, 0), curve(3, 4)];
  const seen: (number | null | undefined)[][] = [];
  for (let skip: number | null = 0; skip !== null; ) {
    const page: ReturnType<typeof pageOf> = pageOf(curves, skip, 2);
    for (const { attempt, points } of page.curves) for (const { step } of points) seen.push([attempt, step]);
    skip = page.nextSkip;
  }
  expect(seen).toEqual([
    ...[0, 1, 2, 3, 4].map((step) => [1, step]),
    ...[0, 1, 2, 3].map((step) => [3, step]),
  ]);
});
