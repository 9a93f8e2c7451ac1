import { appendFileSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { trainingMetricNames } from '@muster/common/training';
import { describe, expect, test } from 'vitest';
import { aDirectory, aRowStore, isThinned, rowsAtMs, someRows, someTask, storedRows } from './rowFixture.ts';

const plenty = 2 ** 30;
const laterMs = rowsAtMs + 10 ** 9;
const fileIn = (directory: string) => join(directory, `${someTask.jobId}.rows`);
const steps = async (store: ReturnType<typeof aRowStore>) =>
  (await storedRows(store)).map(({ values }) => values.step);

describe('a row', () => {
  test('is the same again after a restart, with every metric, and a loss that is no number', async () => {
    const directory = aDirectory();
    const values = Object.fromEntries(trainingMetricNames.map((name, index) => [name, index / 3]));
    const rows = [
      { position: 10, atMs: rowsAtMs, values, lossNotFinite: false },
      { position: 20, atMs: rowsAtMs + 1, values: { step: 0, grad_norm: 1e30 }, lossNotFinite: true },
      { position: 30, atMs: rowsAtMs + 1, values: {}, lossNotFinite: false },
    ];
    await aRowStore(directory).append(someTask, rows, plenty, laterMs);
    const stored = await storedRows(aRowStore(directory));
    expect(stored).toEqual(
      rows.map(({ atMs, values: each, lossNotFinite }) => ({
        atMs,
        values: each,
        notFinite: lossNotFinite ? 1 : 0,
        bucket: null,
      })),
    );
  });

  test('is there once, however often and in what batches it comes', async () => {
    const directory = aDirectory();
    const store = aRowStore(directory);
    expect(await store.position(someTask)).toBe(0);
    expect(await store.append(someTask, someRows(0, 1_500), plenty, laterMs)).toBe(150_000);
    expect(await store.append(someTask, someRows(700, 1_500), plenty, laterMs)).toBe(150_000);
    const restarted = aRowStore(directory);
    expect(await restarted.position(someTask)).toBe(150_000);
    expect(await restarted.append(someTask, someRows(1_000, 2_000), plenty, laterMs)).toBe(200_000);
    expect(await steps(restarted)).toEqual(Array.from({ length: 2_000 }, (_, index) => index));
    const other = { ...someTask, nodeRank: 1 };
    expect(await restarted.position(other)).toBe(0);
    await Promise.all([
      restarted.append(other, someRows(0, 10), plenty, laterMs),
      restarted.append(other, someRows(5, 20), plenty, laterMs),
    ]);
    expect(await restarted.position(other)).toBe(2_000);
    expect(await steps(restarted)).toHaveLength(2_020);
  });

  test('is never taken for later than now', async () => {
    const store = aRowStore();
    await store.append(someTask, someRows(0, 3), plenty, rowsAtMs + 1_000);
    expect((await storedRows(store)).map(({ atMs }) => atMs - rowsAtMs)).toEqual([0, 1_000, 1_000]);
  });
});

test('rows of a task are in the order of their times, also where an agent estimates them', async () => {
  const directory = aDirectory();
  const at = (position: number, atMs: number) => ({
    position,
    atMs: rowsAtMs + atMs,
    values: { step: position },
    lossNotFinite: false,
  });
  await aRowStore(directory).append(someTask, [at(1, 0), at(2, 90)], plenty, laterMs);
  await aRowStore(directory).append(someTask, [at(3, 40), at(4, 120), at(5, 70)], plenty, laterMs);
  const stored = await storedRows(aRowStore(directory));
  expect(stored.map(({ atMs }) => atMs - rowsAtMs)).toEqual([0, 90, 90, 120, 120]);
});

describe('what a crash leaves', () => {
  test.each([
    ['a frame that was cut short', (path: string) => truncateSync(path, statSync(path).size - 7), 1],
    ['a head that was cut short', (path: string) => truncateSync(path, 9), 0],
    ['zeros behind the end', (path: string) => appendFileSync(path, Buffer.alloc(5_000)), 2],
    [
      'a bit that has changed',
      (path: string) => {
        const bytes = readFileSync(path);
        bytes[bytes.length - 20] = (bytes[bytes.length - 20] ?? 0) ^ 1;
        writeFileSync(path, bytes);
      },
      1,
    ],
  ])('%s: what is whole stays, and its node sends the rest again', async (_, harm, left) => {
    const directory = aDirectory();
    const before = aRowStore(directory);
    await before.append(someTask, someRows(0, 10), plenty, laterMs);
    await before.append(someTask, someRows(10, 20), plenty, laterMs);
    harm(fileIn(directory));
    const store = aRowStore(directory);
    expect(await store.position(someTask)).toBe(left * 1_000);
    expect(await steps(store)).toHaveLength(left * 10);
    await store.append(someTask, someRows(0, 30), plenty, laterMs);
    expect(await steps(aRowStore(directory))).toEqual(Array.from({ length: 30 }, (_each, index) => index));
  });
});

test('what is removed is gone, and begins again', async () => {
  const store = aRowStore();
  await store.append(someTask, someRows(0, 10), plenty, laterMs);
  const { grownBytes } = store;
  expect(await store.files()).toMatchObject([{ jobId: someTask.jobId, bytes: grownBytes }]);
  expect(await store.remove(someTask.jobId)).toBe(grownBytes);
  expect([store.grownBytes, await isThinned(store), await store.files()]).toEqual([0, null, []]);
  expect(await store.position(someTask)).toBe(0);
});

describe('more than a share', () => {
  const share = 64 * 1024;
  const lossesOf = async (store: ReturnType<typeof aRowStore>) =>
    (await storedRows(store)).map(({ values }) => values.train_loss).filter((loss) => loss !== undefined);

  test('is thinned but for the losses, seldom, and reading goes on meanwhile', async () => {
    const directory = aDirectory();
    const store = aRowStore(directory);
    const rest = { grad_norm: 1, learning_rate: 1e-3, tokens_per_second: 5, step_seconds: 2 };
    let thinnings = 0;
    let bytes = 0;
    for (let from = 0; from < 2_000; from += 10) {
      await store.append(someTask, someRows(from, from + 10, rest), share, laterMs);
      if (store.grownBytes < bytes) thinnings += 1;
      bytes = store.grownBytes;
      expect(bytes).toBeLessThan(share + 1_000);
    }
    expect(thinnings).toBeGreaterThan(1);
    expect(thinnings).toBeLessThan(20);
    const again = aRowStore(directory);
    expect(await isThinned(again)).toBe(true);
    expect(await again.position(someTask)).toBe(200_000);
    const rows = await storedRows(again);
    expect(rows.map(({ values }) => values.step)).toEqual(Array.from({ length: 2_000 }, (_, step) => step));
    expect(rows.map(({ values }) => values.train_loss)).toEqual(
      someRows(0, 2_000).map(({ values }) => values.train_loss),
    );
    const full = rows.filter(({ values }) => values.grad_norm !== undefined);
    expect(full.length).toBeGreaterThan(50);
    expect(full.length).toBeLessThan(1_000);
  });

  test('becomes buckets where it is losses alone, and every row is in one', async () => {
    const directory = aDirectory();
    const store = aRowStore(directory);
    for (let from = 0; from < 40_000; from += 500) {
      const rows = someRows(from, from + 500).map((row) =>
        row.values.step === 7 ? { ...row, values: { step: 7 }, lossNotFinite: true } : row,
      );
      await store.append(someTask, rows, share, laterMs);
    }
    expect(store.grownBytes).toBe(statSync(fileIn(directory)).size);
    expect(store.grownBytes).toBeLessThan(share);
    const rows = await storedRows(store);
    expect(rows.reduce((sum, { bucket }) => sum + (bucket?.rows ?? 1), 0)).toBe(40_000);
    expect(rows.reduce((sum, { notFinite }) => sum + notFinite, 0)).toBe(1);
    expect(rows[0]).toMatchObject({ values: { step: 0, train_loss: 1 }, bucket: null });
    expect(rows.find(({ notFinite }) => notFinite > 0)).toMatchObject({ values: { step: 7 }, bucket: null });
    for (const { values, bucket } of rows) {
      if (bucket === null) continue;
      const { firstStep, min, max, mean } = bucket;
      expect((values.step ?? 0) - (firstStep ?? 0)).toBe(bucket.rows - 1);
      expect(min).toBeCloseTo(1 / ((values.step ?? 0) + 1), 12);
      expect(max).toBeCloseTo(1 / ((firstStep ?? 0) + 1), 12);
      expect(mean).toBeGreaterThanOrEqual(min ?? 0);
      expect(mean).toBeLessThanOrEqual(max ?? 0);
    }
    expect((await lossesOf(store)).at(-1)).toBe(1 / 40_000);
  });

  test('of many tasks is kept within it, too, and each is known up to where it was', async () => {
    const store = aRowStore();
    for (let rank = 0; rank < 50; rank += 1)
      await store.append({ ...someTask, nodeRank: rank }, someRows(0, 400), share, laterMs);
    expect(store.grownBytes).toBeLessThan(share);
    for (let rank = 0; rank < 50; rank += 1)
      expect(await store.position({ ...someTask, nodeRank: rank })).toBe(40_000);
  });

  test('a reader that had begun reads what was there then', async () => {
    const store = aRowStore();
    await store.append(someTask, someRows(0, 2_000), plenty, laterMs);
    let rows = 0;
    await store.lookAt(someTask.jobId, async ({ read }) => {
      await store.keepTo(someTask.jobId, 20_000);
      await read((frame) => (rows += frame.rows.length));
    });
    expect(rows).toBe(2_000);
    expect((await storedRows(store)).length).toBeLessThan(1_000);
  });
});

describe('the end of the rows of a task', () => {
  const other = { ...someTask, nodeRank: 1 };

  test('is marked once, on the disk, and is no row', async () => {
    const directory = aDirectory();
    const store = aRowStore(directory);
    await store.append(someTask, someRows(0, 10), plenty, laterMs);
    expect(await store.here(someTask)).toEqual({ position: 1_000, step: 9, mark: null });
    await store.markEnd(someTask, 'complete');
    const { size } = statSync(fileIn(directory));
    await store.markEnd(someTask, 'complete');
    expect(statSync(fileIn(directory)).size).toBe(size);
    const restarted = aRowStore(directory);
    expect(await restarted.here(someTask)).toEqual({ position: 1_000, step: 9, mark: 'complete' });
    expect(await restarted.here(other)).toEqual({ position: 0, step: null, mark: null });
    expect(await steps(restarted)).toHaveLength(10);
  });

  test('is known of a task without rows, and what was lost stays lost', async () => {
    const directory = aDirectory();
    await aRowStore(directory).markEnd(someTask, 'lost');
    await aRowStore(directory).markEnd(someTask, 'complete');
    expect(await aRowStore(directory).here(someTask)).toEqual({ position: 0, step: null, mark: 'lost' });
  });

  test('outlives thinning, and rows that follow', async () => {
    const directory = aDirectory();
    const store = aRowStore(directory);
    await store.append(someTask, someRows(0, 2_000), plenty, laterMs);
    await store.append(other, someRows(0, 2_000), plenty, laterMs);
    await store.markEnd(someTask, 'complete');
    await store.markEnd(other, 'lost');
    await store.keepTo(someTask.jobId, 20_000);
    await store.append({ ...someTask, nodeRank: 2 }, someRows(0, 10), 20_000, laterMs);
    const restarted = aRowStore(directory);
    expect(await isThinned(restarted)).toBe(true);
    expect(await restarted.here(someTask)).toMatchObject({ position: 200_000, mark: 'complete' });
    expect(await restarted.here(other)).toMatchObject({ position: 200_000, mark: 'lost' });
  });

  test('that a crash has cut short is sent again', async () => {
    const directory = aDirectory();
    const store = aRowStore(directory);
    await store.append(someTask, someRows(0, 10), plenty, laterMs);
    await store.markEnd(someTask, 'complete');
    truncateSync(fileIn(directory), statSync(fileIn(directory)).size - 3);
    const restarted = aRowStore(directory);
    expect(await restarted.here(someTask)).toMatchObject({ position: 1_000, mark: null });
    await restarted.markEnd(someTask, 'complete');
    expect(await aRowStore(directory).here(someTask)).toMatchObject({ position: 1_000, mark: 'complete' });
  });
});
