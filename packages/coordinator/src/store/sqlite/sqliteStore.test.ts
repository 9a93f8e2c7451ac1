import { spawn } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import { trialsOf } from '../../../../../test/support/trials.ts';
import type { StoredEvent } from '../../model.ts';
import { aJob, jobIdOf, seededRandom } from '../../modelFixture.ts';
import { describeStore } from '../contract.ts';
import { type Batch, emptyBatch, type Store, StoreError, type StoreErrorKind } from '../store.ts';
import { asOrdinaryUser, smallDisk } from './hostFixture.ts';
import { closeDatabase, openDatabase } from './open.ts';
import { openSqliteStore } from './sqliteStore.ts';

const openStores = new Set<Store>();
afterEach(async () => {
  for (const store of openStores) await store.close();
  openStores.clear();
});

function openIn(dataDir: string): Store {
  const store = openSqliteStore(dataDir, () => 'c0ffee');
  openStores.add(store);
  return store;
}

async function close(store: Store): Promise<void> {
  openStores.delete(store);
  await store.close();
}

/** Expects a store not to open, with an error whose sentence names where. */
function expectRefusal(dataDir: string, kind: StoreErrorKind, named: string = dataDir): void {
  let refusal: unknown = null;
  try {
    openIn(dataDir);
  } catch (error) {
    refusal = error;
  }
  expect(refusal).toBeInstanceOf(StoreError);
  expect(refusal).toMatchObject({ kind, message: expect.stringContaining(named) });
}

const jobs = (numbers: readonly number[]): Batch => ({
  ...emptyBatch,
  newJobs: numbers.map((number) => aJob(number)),
});

describeStore('SqliteStore', async () => {
  const dataDir = tempDir('store').path;
  const store = openIn(dataDir);
  return {
    store,
    reopen: async () => {
      await close(store);
      return openIn(dataDir);
    },
  };
});

describe('a SQLite store', () => {
  let dataDir: string;
  let databasePath: string;
  beforeEach(() => {
    dataDir = tempDir('store').path;
    databasePath = join(dataDir, 'muster.db');
  });

  /** A store with some jobs in it, closed. */
  async function makeStore(): Promise<void> {
    const store = openIn(dataDir);
    await store.commit(jobs(Array.from({ length: 200 }, (_, index) => index + 1)));
    await close(store);
  }

  it('is set so that a commit that was acknowledged survives a power cut', () => {
    const opened = openDatabase(dataDir, () => 'c0ffee');
    const { database } = opened;
    const setting = (name: string) => Object.values(database.prepare(`pragma ${name}`).get() ?? {})[0];
    try {
      expect(setting('journal_mode')).toBe('wal');
      expect(setting('synchronous')).toBe(2);
      expect(setting('foreign_keys')).toBe(1);
      expect(setting('locking_mode')).toBe('exclusive');
    } finally {
      closeDatabase(opened);
      opened.lock.release();
    }
  });

  it('keeps the id that its cluster got at first', async () => {
    await makeStore();
    const again = openSqliteStore(dataDir, () => 'another');
    openStores.add(again);

    expect((await again.load()).clusterId).toBe('c0ffee');
    expect(readFileSync(join(dataDir, 'cluster.json'), 'utf8')).toContain('c0ffee');
  });

  describe('refuses to open', () => {
    it('for a second coordinator', async () => {
      const first = openIn(dataDir);
      expectRefusal(dataDir, 'locked');

      await first.commit(jobs([1]));
      expect(await first.readJob(jobIdOf(1))).not.toBeNull();
    });

    it('while a coordinator in another process has it', async () => {
      const { child, acknowledged } = startCommitting(dataDir, 1);
      try {
        await acknowledged.first;
        expectRefusal(dataDir, 'locked');
      } finally {
        child.kill('SIGKILL');
        await acknowledged.all;
      }
      expect(openIn(dataDir)).toBeDefined();
    });

    it.each([
      ['a newer version', 99],
      ['a version before the first release', 13],
    ])('when %s wrote it, and leaves it as it is', async (_name, version) => {
      await makeStore();
      change(dataDir, `pragma user_version = ${version}`);
      const before = readFileSync(databasePath);

      expectRefusal(dataDir, 'unknown_schema');
      expect(readFileSync(databasePath).equals(before)).toBe(true);
    });

    it.each([
      ['is cut off', (path: string) => truncateSync(path, Math.floor(statSync(path).size / 2))],
      ['is cut to nothing', (path: string) => truncateSync(path, 0)],
      ['begins with garbage', (path: string) => overwrite(path, 0, 4_096)],
      ['has garbage in the middle', (path: string) => overwrite(path, 4_096, 8_192)],
      [
        'has garbage where only jobs are',
        (path: string) => overwrite(path, statSync(path).size - 8_192, statSync(path).size),
      ],
      ['is something else', (path: string) => writeFileSync(path, 'not a database\n'.repeat(1_000))],
    ])('when its file %s', async (_what, damage) => {
      await makeStore();
      damage(databasePath);

      expectRefusal(dataDir, 'damaged', databasePath);
    });

    it('when its file belongs to another cluster', async () => {
      await makeStore();
      change(dataDir, `update meta set value = 'another' where name = 'cluster_id'`);

      expectRefusal(dataDir, 'damaged', 'another');
    });

    it.each(['', '{"clust', '{}', 'null'])(
      'when the file that names its cluster is damaged: "%s"',
      async (content) => {
        await makeStore();
        writeFileSync(join(dataDir, 'cluster.json'), content);

        expectRefusal(dataDir, 'damaged', join(dataDir, 'cluster.json'));
      },
    );

    it('when its file is gone, rather than begin with an empty one', async () => {
      await makeStore();
      rmSync(databasePath);

      expectRefusal(dataDir, 'missing');
      expect(() => statSync(databasePath)).toThrow(/ENOENT/);
    });

    it('in a directory that it may not write', () => {
      chmodSync(dataDir, 0o555);
      try {
        asOrdinaryUser(() => expectRefusal(dataDir, 'no_permission', databasePath));
      } finally {
        chmodSync(dataDir, 0o700);
      }
    });

    it('when it may not read what is there', async () => {
      await makeStore();
      chmodSync(join(dataDir, 'cluster.json'), 0o000);
      chmodSync(dataDir, 0o755);

      asOrdinaryUser(() => expectRefusal(dataDir, 'no_permission'));
    });

    it('when it may only read its file', async () => {
      await makeStore();
      chmodSync(join(dataDir, 'cluster.json'), 0o444);
      chmodSync(databasePath, 0o444);
      chmodSync(dataDir, 0o555);
      try {
        asOrdinaryUser(() => expectRefusal(dataDir, 'no_permission', databasePath));
      } finally {
        chmodSync(dataDir, 0o700);
      }
    });

    it('where there is no directory', () => {
      writeFileSync(join(dataDir, 'file'), '');
      expectRefusal(join(dataDir, 'file', 'below'), 'io');
    });
  });

  it('starts again after a first start that was killed half-way', async () => {
    await makeStore();
    // The store is made before the file that says that there is one.
    rmSync(join(dataDir, 'cluster.json'));

    expect((await openIn(dataDir).load()).clusterId).toBe('c0ffee');
    expect(readFileSync(join(dataDir, 'cluster.json'), 'utf8')).toContain('c0ffee');
  });

  it('says that the disk is full, keeps what it had, and goes on once there is room', async () => {
    const disk = smallDisk(dataDir, '4m');
    try {
      const ballast = join(disk.path, 'ballast');
      writeFileSync(ballast, Buffer.alloc(1024 * 1024));
      mkdirSync(join(disk.path, 'data'));
      const store = openIn(join(disk.path, 'data'));
      const { stored, refusal } = await commitUntilRefused(store);
      expect(refusal).toMatchObject({ name: 'StoreError', kind: 'full' });
      expect(stored.length).toBeGreaterThan(10);
      expect(await storedNumbers(store)).toEqual(stored);

      rmSync(ballast);
      const next = stored.length + 1;
      await store.commit(bigBatch(next));
      await close(store);

      expect(await storedNumbers(openIn(join(disk.path, 'data')))).toEqual([...stored, next]);
    } finally {
      for (const store of openStores) await close(store);
      disk.unmount();
    }
  });

  const kills = trialsOf(20, 8);
  it(`has every commit that was acknowledged before a kill -9, ${kills} times over`, async () => {
    const random = seededRandom(20_240_517);
    let last = 0;
    for (let round = 0; round < kills; round += 1) {
      const { child, acknowledged } = startCommitting(dataDir, last + 1);
      await acknowledged.first;
      await acknowledged.atLeast(1 + Math.floor(random() * 150));
      child.kill('SIGKILL');
      const numbers = await acknowledged.all;

      const store = openIn(dataDir);
      const found = await storedNumbers(store);
      await close(store);

      expect(found).toEqual(Array.from({ length: found.length }, (_, index) => index + 1));
      // One more may be stored than acknowledged: it was killed between the two.
      expect(found.length - (numbers.at(-1) ?? 0)).toBeOneOf([0, 1]);
      last = found.length;
    }
  });

  it('can be copied while it is closed, and the copy opened elsewhere', async () => {
    await makeStore();
    const copy = tempDir('store').path;
    cpSync(dataDir, copy, { recursive: true });

    expect(await storedNumbers(openIn(copy))).toHaveLength(200);
  });
});

interface Acknowledged {
  readonly first: Promise<void>;
  readonly atLeast: (count: number) => Promise<void>;
  /** What was acknowledged until the program ended. */
  readonly all: Promise<readonly number[]>;
}

/** Runs the program that commits jobs until it is killed. */
function startCommitting(dataDir: string, first: number) {
  const program = join(import.meta.dirname, 'commitUntilKilled.ts');
  const child = spawn(process.execPath, [program, dataDir, String(first)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const numbers: number[] = [];
  const waiters: {
    readonly count: number;
    readonly wake: () => void;
    readonly fail: (error: Error) => void;
  }[] = [];
  createInterface(child.stdout).on('line', (line) => {
    numbers.push(Number(line));
    for (const waiter of waiters) if (numbers.length >= waiter.count) waiter.wake();
  });
  const all = new Promise<readonly number[]>((resolve) => child.once('close', () => resolve(numbers)));
  const atLeast = (count: number) =>
    new Promise<void>((resolve, reject) => {
      if (numbers.length >= count) resolve();
      else waiters.push({ count, wake: resolve, fail: reject });
    });
  void all.then(() => {
    for (const waiter of waiters) waiter.fail(new Error(`it ended after ${numbers.length} commits`));
  });
  const acknowledged: Acknowledged = { first: atLeast(1), atLeast, all };
  return { child, acknowledged };
}

async function storedNumbers(store: Store): Promise<readonly number[]> {
  const query = {
    states: [],
    arrayId: null,
    name: null,
    limit: 100_000,
    sizeMax: Number.POSITIVE_INFINITY,
    beforeSubmitSeq: null,
  } as const;
  return (await store.listJobs(query)).records.map(({ job }) => job.submitSeq).reverse();
}

async function commitUntilRefused(store: Store): Promise<{ stored: readonly number[]; refusal: unknown }> {
  const stored: number[] = [];
  for (;;) {
    const number = stored.length + 1;
    try {
      await store.commit(bigBatch(number));
    } catch (refusal) {
      return { stored, refusal };
    }
    stored.push(number);
  }
}

/** A job with an event of 50 KB, so that a small disk is full soon. */
function bigBatch(number: number): Batch {
  const job = aJob(number);
  const event: StoredEvent = {
    seq: number,
    id: `c0ffee-${number}`,
    kind: 'job.submitted',
    subject: job.id,
    subjectSeq: 1,
    timeMs: 0,
    data: { text: 'x'.repeat(50_000) },
    by: 'admin',
    peer: '',
  };
  return { ...emptyBatch, newJobs: [job], events: [event] };
}

/** As a program would that keeps witness and sums as well. */
function change(dataDir: string, sql: string): void {
  const opened = openDatabase(dataDir, () => 'c0ffee');
  opened.database.exec(sql);
  opened.files.follow();
  opened.files.acknowledgeNow();
  closeDatabase(opened);
  opened.lock.release();
}

function overwrite(path: string, from: number, to: number): void {
  const content = readFileSync(path);
  content.fill(0xa5, from, Math.min(to, content.length));
  writeFileSync(path, content);
}
