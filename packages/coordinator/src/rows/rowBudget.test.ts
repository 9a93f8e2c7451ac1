import { utimesSync } from 'node:fs';
import { join } from 'node:path';
import type { JobId } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import { expect, test } from 'vitest';
import { jobIdOf } from '../modelFixture.ts';
import { RowBudget } from './rowBudget.ts';
import { aDirectory, aRowStore, isThinned, rowsAtMs, someRows, someTask } from './rowFixture.ts';

async function keeping(bytesMax: number, live: readonly JobId[]) {
  const directory = aDirectory();
  const rows = aRowStore(directory);
  for (const [index, number] of [1, 2, 3].entries()) {
    const jobId = jobIdOf(number);
    await rows.append({ jobId, attempt: 1, nodeRank: 0 }, someRows(0, 5_000), 2 ** 30, rowsAtMs);
    utimesSync(join(directory, `${jobId}.rows`), 1_000 + index, 1_000 + index);
  }
  let nowMs = 0;
  const budget = new RowBudget({
    rows,
    bytesMax,
    log: silentLogger,
    monotonicMs: () => nowMs,
    isLive: (jobId) => live.includes(jobId),
  });
  const run = async () => {
    nowMs += 60_000;
    await budget.run();
    return (await rows.files()).map(({ jobId }) => jobId).sort();
  };
  const [first] = await rows.files();
  return { rows, budget, run, jobBytes: first?.bytes ?? 0 };
}

const all = [jobIdOf(1), jobIdOf(2), jobIdOf(3)];

test('within the budget all stay, and what is there counts after a restart', async () => {
  const { run, budget, jobBytes } = await keeping(2 ** 30, []);
  expect(await run()).toEqual(all);
  expect(budget.usedBytes).toBe(3 * jobBytes);
  expect(budget.isUsedUp).toBe(false);
});

test('of jobs that have ended the oldest goes first', async () => {
  const { run, budget } = await keeping(300_000, [jobIdOf(1)]);
  expect(await run()).toEqual([jobIdOf(1), jobIdOf(3)]);
  expect(budget.usedBytes).toBeLessThanOrEqual(300_000);
});

test('where only jobs that run are left, each is thinned to its share', async () => {
  const { run, budget, rows } = await keeping(250_000, all);
  expect(await run()).toEqual(all);
  expect(budget.shareBytes).toBe(75_000);
  expect(budget.usedBytes).toBeLessThan(250_000);
  expect(await isThinned(rows, { ...someTask, jobId: jobIdOf(2) })).toBe(true);
});

test('a budget that is far too small takes no more rows', async () => {
  const { run, budget } = await keeping(50_000, all);
  await run();
  expect(budget.isUsedUp).toBe(true);
});
