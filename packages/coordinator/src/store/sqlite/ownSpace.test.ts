import { cpSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import { StoreError } from '../store.ts';
import { Jobs, lostIn, shownBy } from './damageFixture.ts';
import { DiskFiller, imageDisk, smallDisk } from './hostFixture.ts';
import { openSqliteStore, type SqliteStore } from './sqliteStore.ts';

const mebibyte = 1024 * 1024;

let jobs: Jobs;
let stores: SqliteStore[];
beforeEach(() => {
  jobs = new Jobs();
  stores = [];
});
afterEach(async () => {
  for (const store of stores) await store.close().catch(() => {});
});

function open(dataDir: string, fillers: number) {
  const store = openSqliteStore(dataDir, () => 'c0ffee');
  stores.push(store);
  return { store, space: store.keepOwnSpace(fillers) };
}

/** A store with all of its own space, on a disk of its own that another program can fill. */
async function onDisk(kind: string, fillers: number) {
  const parent = tempDir('own-space').path;
  const disk = kind === 'tmpfs' ? smallDisk(parent, '40m') : imageDisk(parent, 40);
  onTestFinished(async () => {
    for (const store of stores.splice(0)) await store.close().catch(() => {});
    disk.unmount();
  });
  const dataDir = join(disk.path, 'data');
  mkdirSync(dataDir);
  const { store, space } = open(dataDir, fillers);
  while (!space.isWhole) space.addFiller();
  for (let batch = 0; batch < 20; batch += 1) await store.commit(jobs.nextBatch(2));
  return { dataDir, store, space, filler: new DiskFiller(disk.path) };
}

/** Commits until one is refused, or as many times; another program takes what becomes free meanwhile. */
async function commitUnderPressure(store: SqliteStore, filler: DiskFiller, times: number) {
  for (let batch = 0; batch < times; batch += 1) {
    if (batch % 40 === 0) filler.fill();
    const { count, events } = jobs;
    try {
      await store.commit(jobs.nextBatch(2));
    } catch (error) {
      Object.assign(jobs, { count, events });
      return { batches: batch, refusal: error };
    }
  }
  return { batches: times, refusal: null };
}

it('commits go on when another program has filled the disk, over a restart', async () => {
  const { dataDir, store, filler } = await onDisk('ext4', 4);
  expect(await commitUnderPressure(store, filler, 200)).toEqual({ batches: 200, refusal: null });
  const shown = await shownBy(store, jobs.count);
  await store.close();
  filler.fill();
  const next = open(dataDir, 4);
  expect(lostIn(shown, await shownBy(next.store, jobs.count))).toEqual([]);
  expect(await commitUnderPressure(next.store, filler, 80)).toEqual({ batches: 80, refusal: null });
}, 120_000);

it('a store that has used up its space refuses with the bytes, and is read', async () => {
  const { dataDir, store, space, filler } = await onDisk('ext4', 2);
  const { refusal } = await commitUnderPressure(store, filler, 20_000);
  expect(refusal).toBeInstanceOf(StoreError);
  expect(refusal).toMatchObject({
    kind: 'full',
    message: expect.stringContaining(`free at least ${2 * mebibyte} bytes`),
  });
  expect(space.heldBytes).toBe(0);
  const shown = await shownBy(store, jobs.count);
  // What a start of the coordinator writes.
  for (let start = 0; start < 50; start += 1) await store.writeMeta('term', String(start));
  await store.close();
  filler.fill();
  const next = open(dataDir, 2);
  await next.store.writeMeta('term', 'next');
  expect(lostIn(shown, await shownBy(next.store, jobs.count))).toEqual([]);

  filler.remove();
  while (!next.space.isWhole) next.space.addFiller();
  expect(await commitUnderPressure(next.store, filler, 100)).toEqual({ batches: 100, refusal: null });
}, 120_000);

it('a store that was killed with space behind its log and its database has all of its commits', async () => {
  const dataDir = tempDir('own-space').path;
  const { store, space } = open(dataDir, 2);
  while (!space.isWhole) space.addFiller();
  // Some after the log was carried over, and begun again.
  for (let batch = 0; batch < 300; batch += 1) await store.commit(jobs.nextBatch(2));
  const shown = await shownBy(store, jobs.count);
  const killed = join(tempDir('killed').path, 'data');
  cpSync(dataDir, killed, { recursive: true });
  const next = open(killed, 2);
  expect(lostIn(shown, await shownBy(next.store, jobs.count))).toEqual([]);
  expect(next.space.isWhole).toBe(true);
  await next.store.commit(jobs.nextBatch(2));
});

it('the log keeps its blocks while no coordinator runs, and what is in them is no commit', async () => {
  const dataDir = tempDir('own-space').path;
  const { store } = open(dataDir, 1);
  for (let batch = 0; batch < 10; batch += 1) await store.commit(jobs.nextBatch(2));
  const shown = await shownBy(store, jobs.count);
  await store.close();
  const kept = join(dataDir, 'muster.db-space');
  expect(statSync(kept)).toMatchObject({ size: 8 * mebibyte });
  expect(readdirSync(dataDir)).not.toContain('muster.db-wal');

  // A release before this one leaves it there and makes a log of its own.
  await openSqliteStore(dataDir, () => '').close();
  const next = open(dataDir, 1);
  expect(existsSync(kept)).toBe(false);
  expect(lostIn(shown, await shownBy(next.store, jobs.count))).toEqual([]);
});

it('a file of a log that was left beside the log of a killed coordinator is removed', async () => {
  const dataDir = tempDir('own-space').path;
  const { store } = open(dataDir, 1);
  await store.commit(jobs.nextBatch(2));
  const shown = await shownBy(store, jobs.count);
  const killed = join(tempDir('killed').path, 'data');
  cpSync(dataDir, killed, { recursive: true });
  writeFileSync(join(killed, 'muster.db-space'), 'half');
  const next = open(killed, 1);
  expect(lostIn(shown, await shownBy(next.store, jobs.count))).toEqual([]);
  expect(existsSync(join(killed, 'muster.db-space'))).toBe(false);
});

it('a backup gives way when the log behind it has no room left', async () => {
  const { store, filler } = await onDisk('tmpfs', 4);
  const backup = store.backup(0, () => [])[Symbol.asyncIterator]();
  await backup.next();
  expect(await commitUnderPressure(store, filler, 400)).toEqual({ batches: 400, refusal: null });
  await expect(backup.next()).rejects.toMatchObject({ kind: 'full' });
});

/** A backup carries the log over before it begins. */
async function carriedOver(store: SqliteStore): Promise<void> {
  for await (const _piece of store.backup(0, () => [])) return;
}

it('space behind the end of the database is never taken for a part of it, over many restarts', async () => {
  const dataDir = tempDir('own-space').path;
  for (let start = 0; start < 12; start += 1) {
    const { store, space } = open(dataDir, 2);
    space.addFiller();
    // Of different lengths: in some the log is carried over last, in others it is not.
    for (let batch = 0; batch < 15 * start; batch += 1) await store.commit(jobs.nextBatch(3));
    if (start % 3 === 0) await carriedOver(store);
    await store.commit(jobs.nextBatch(1));
    for (let next: number | null = 1; next !== null; ) {
      const compared = await store.comparePages(next);
      expect(compared.damage).toBe(null);
      next = compared.next;
    }
    // At a start without a log, the length of the file is all that tells SQLite where the database ends.
    if (start % 2 === 0) await carriedOver(store);
    await store.close();
    const { size } = statSync(join(dataDir, 'muster.db'));
    expect(size % 4_096).toBe(0);
  }
  const shown = await shownBy(open(dataDir, 2).store, jobs.count);
  expect(shown.size).toBeGreaterThan(0);
});
