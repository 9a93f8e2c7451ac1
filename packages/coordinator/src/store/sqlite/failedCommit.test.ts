/** What a commit that failed may have left in the log: nothing of it is ever taken for a commit. */
import { appendFileSync, cpSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import { emptyBatch } from '../store.ts';
import { Jobs, lostIn, shownBy } from './damageFixture.ts';
import { openSqliteStore, type SqliteStore } from './sqliteStore.ts';

const frameBytes = 24 + 4_096;

let dataDir: string;
let jobs: Jobs;
let store: SqliteStore;
beforeEach(async () => {
  dataDir = tempDir('failed').path;
  jobs = new Jobs();
  store = openSqliteStore(dataDir, () => 'c0ffee');
  for (let batch = 0; batch < 3; batch += 1) await store.commit(jobs.nextBatch(2));
});
afterEach(() => store.close());

/** Frames behind the last commit, with the salts of this log and the mark of a commit, as a disk that was full leaves them. */
function leaveFrames(count: number): void {
  const log = join(dataDir, 'muster.db-wal');
  const bytes = readFileSync(log);
  const last = bytes.subarray(bytes.length - frameBytes);
  for (let index = 0; index < count; index += 1) {
    const frame = Buffer.from(last);
    frame.fill(0xa5, 24);
    frame.writeUInt32BE(index === count - 1 ? 1_000 : 0, 4);
    appendFileSync(log, frame);
  }
}

/** What the next coordinator finds, if this one is killed now. */
async function requireWhole(): Promise<void> {
  const shown = await shownBy(store, jobs.count);
  const killed = join(tempDir('killed').path, 'data');
  cpSync(dataDir, killed, { recursive: true });
  const next = openSqliteStore(killed, () => 'another');
  expect(lostIn(shown, await shownBy(next, jobs.count))).toEqual([]);
  await next.close();
}

it.each([1, 2, 40])(
  'the commit after one that has left %i frames is the one that is witnessed',
  async (count) => {
    leaveFrames(count);
    for (let batch = 0; batch < 3; batch += 1) {
      await store.commit(jobs.nextBatch(2));
      await requireWhole();
    }
  },
);

it('a transaction that changes nothing does not make a commit of them', async () => {
  leaveFrames(2);
  await store.commit({ ...emptyBatch, removedCredentials: ['nobody'] });
  await store.commit(emptyBatch);
  await requireWhole();
  await store.commit(jobs.nextBatch(2));
  await requireWhole();
  expect(existsSync(join(dataDir, 'muster.db-wal'))).toBe(true);
});
