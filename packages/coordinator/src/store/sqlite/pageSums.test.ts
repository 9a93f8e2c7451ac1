import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import { comparePages, comparePagesLater, sliceBytes, writeAllPageSums } from './pageSums.ts';

const slices = 16;
const pageBytes = 4_096;
const pages = (slices * sliceBytes) / pageBytes;

let database: number;
let sums: number;
beforeEach(() => {
  const { path } = tempDir('page-sums');
  database = openSync(join(path, 'database'), 'w+');
  sums = openSync(join(path, 'sums'), 'w+');
  for (let slice = 0; slice < slices; slice += 1) writeSync(database, Buffer.alloc(sliceBytes, slice));
  writeAllPageSums({ database, sums, pageBytes });
});
afterEach(() => {
  closeSync(database);
  closeSync(sums);
});

const byLength = (allocated: readonly (readonly [size: number])[]) =>
  allocated.filter(([size]) => size > sliceBytes / 2);

test('comparing a large store needs no more memory than comparing a small one', async () => {
  const files = { database, sums, pageBytes };
  const own = Buffer.allocUnsafe(sliceBytes);
  const allocated = [vi.spyOn(Buffer, 'allocUnsafe'), vi.spyOn(Buffer, 'alloc')];

  for (let first = 1; first <= pages; ) first = comparePages(files, first, pages).next;
  for (let first = 1; first <= pages; ) first = (await comparePagesLater(files, first, pages, own)).next;

  expect(allocated.flatMap((spy) => byLength(spy.mock.calls as [number][]))).toEqual([]);
  for (const spy of allocated) spy.mockRestore();
});

test('a slice does not show what an earlier one has read', async () => {
  const files = { database, sums, pageBytes };
  const own = Buffer.allocUnsafe(sliceBytes);
  const beyond = pages + 1;
  comparePages(files, 1, pages);
  await comparePagesLater(files, 1, pages, own);

  expect(comparePages(files, beyond, beyond).differing).toEqual([beyond]);
  expect((await comparePagesLater(files, beyond, beyond, own)).differing).toEqual([beyond]);
  writeSync(database, 'x', 5 * pageBytes);
  expect(comparePages(files, 1, pages).differing).toEqual([6]);
  expect((await comparePagesLater(files, 1, pages, own)).differing).toEqual([6]);
});
