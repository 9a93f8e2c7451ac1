/**
 * A store that is too large to be compared with its sums before it is served, altered in a page that the start did not look
 * at. What is written beside the damage must not make it valid.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import { trialsOf } from '../../../../../test/support/trials.ts';
import { seededRandom } from '../../modelFixture.ts';
import { StoreError } from '../store.ts';
import { Jobs } from './damageFixture.ts';
import { openDatabase } from './open.ts';
import { openSqliteStore, SqliteStore } from './sqliteStore.ts';

const trials = trialsOf(100);
const jobCount = 3_000;
/** What a start compares at least. */
const comparedBytes = 1024 * 1024;

let directory: string;
let original: string;
let shown: ReadonlyMap<number, string>;
beforeAll(async () => {
  directory = tempDir('altered').path;
  original = join(directory, 'original');
  mkdirSync(original);
  const store = openSqliteStore(original, () => 'c0ffee');
  const jobs = new Jobs();
  while (jobs.count < jobCount) await store.commit(jobs.nextBatch(100));
  shown = await eventsOf(store);
  await store.close();
});

async function eventsOf(store: SqliteStore): Promise<ReadonlyMap<number, string>> {
  const events = new Map<number, string>();
  for (let since = 0; ; ) {
    const read = await store.readEvents(since, 1_000, null);
    for (const event of read) events.set(event.seq, JSON.stringify(event));
    const last = read.at(-1);
    if (last === undefined) return events;
    since = last.seq;
  }
}

/** As if there had been time for the first megabyte only. */
function openInHaste(dataDir: string): SqliteStore {
  return new SqliteStore(openDatabase(dataDir, () => '', { pagesMs: 0, monotonicMs: () => 0 }));
}

function copyOfOriginal(name: string): string {
  const dataDir = join(directory, name);
  cpSync(original, dataDir, { recursive: true });
  return dataDir;
}

it('a commit that changes an altered page is not acknowledged, and the next start refuses the store', async () => {
  const dataDir = copyOfOriginal('one');
  const path = join(dataDir, 'muster.db');
  const bytes = readFileSync(path);
  // An event of the middle: no start reads it, and its neighbours are on the same page.
  const seq = 2_000;
  const at = bytes.indexOf(`cluster-${seq}`, comparedBytes);
  expect(at).toBeGreaterThan(comparedBytes);
  bytes[at] = (bytes[at] ?? 0) ^ 2;
  writeFileSync(path, bytes);
  const store = openInHaste(dataDir);
  expect(store.nextPage).not.toBeNull();

  await expect(store.retention.removeEvents([seq + 1])).rejects.toMatchObject({
    kind: 'damaged',
    message: expect.stringMatching(/of the database was altered.*muster store check/s),
  });
  await store.close();

  expect(() => openInHaste(dataDir)).toThrow(/was altered/);
});

/** @returns the events of even numbers that are lost; null: the store says that it is damaged */
async function lostAfterWork(dataDir: string, random: () => number): Promise<readonly number[] | null> {
  let store: SqliteStore | null = null;
  try {
    store = openInHaste(dataDir);
    for (let work = 0; work < 60; work += 1) {
      const odd = 2 * Math.floor((random() * shown.size) / 2) + 1;
      await store.retention.removeEvents([odd]);
    }
    await store.close();
    store = null;
    // Everything is compared here: what is altered and was not written again is found now.
    store = new SqliteStore(
      openDatabase(dataDir, () => '', { pagesMs: Number.POSITIVE_INFINITY, monotonicMs: () => 0 }),
    );
    const after = await eventsOf(store);
    return [...shown.keys()].filter((seq) => seq % 2 === 0 && after.get(seq) !== shown.get(seq));
  } catch (error) {
    expect((error as StoreError).kind).toBeOneOf(['damaged', 'behind']);
    return null;
  } finally {
    await store?.close();
  }
}

it(`an altered bit is found or does no harm, ${trials} times over`, async () => {
  const random = seededRandom(20_261_123);
  let refused = 0;
  for (let trial = 0; trial < trials; trial += 1) {
    const dataDir = copyOfOriginal(`trial-${trial}`);
    const path = join(dataDir, 'muster.db');
    const bytes = readFileSync(path);
    const at = comparedBytes + Math.floor(random() * (bytes.length - comparedBytes));
    bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(random() * 8));
    writeFileSync(path, bytes);

    const lost = await lostAfterWork(dataDir, random);

    expect(lost ?? [], `trial ${trial}, byte ${at}`).toEqual([]);
    if (lost === null) refused += 1;
    rmSync(dataDir, { recursive: true });
  }
  expect(refused).toBeGreaterThan(trials / 2);
});
