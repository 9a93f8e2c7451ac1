import type { JobId, TaskRef } from '@muster/common/ids';
import { expect, test } from 'vitest';
import { ReadingSeries } from './readingSeries.ts';

const task: TaskRef = { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 };

test('there is at most one reading a second, with the last value of each metric', () => {
  const series = new ReadingSeries();
  for (let step = 0; step < 1_000; step += 1) series.add({ step, train_loss: 1_000 - step }, 5_000 + step);
  series.add({ eval_loss: 7 }, 5_999);
  series.add({ step: 1_000 }, 6_000);
  expect(series.take(task)).toEqual([
    { task, atMs: 5_999, values: { step: 999, train_loss: 1, eval_loss: 7 } },
    { task, atMs: 6_000, values: { step: 1_000 } },
  ]);
  expect(series.hasSome).toBe(false);
  expect(series.take(task)).toEqual([]);
});

test('what nobody takes is kept for ten minutes', () => {
  const series = new ReadingSeries();
  for (let second = 0; second < 10_000; second += 1) series.add({ step: second }, second * 1_000);
  const taken = series.take(task);
  expect(taken).toHaveLength(600);
  expect(taken[0]?.values.step).toBe(9_400);
});
