import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import { seededRandom } from '../../modelFixture.ts';
import { type Restored, restoredMeta } from '../restored.ts';
import { readAttached } from './attached.ts';
import { openBackup, pieceTakenMs } from './backup.ts';
import { checkStore } from './checkStore.ts';
import { flipBit, Jobs, lostIn, shownBy } from './damageFixture.ts';
import { closeDatabase, openDatabase } from './open.ts';
import { acceptStore, restoreStore } from './restoreStore.ts';
import { openSqliteStore, type SqliteStore } from './sqliteStore.ts';

let dataDir: string;
let backupPath: string;
let jobs: Jobs;
let store: SqliteStore | null;
beforeEach(() => {
  const directory = tempDir('tools').path;
  dataDir = join(directory, 'data');
  cpSync(tempDir('empty').path, dataDir, { recursive: true });
  backupPath = join(directory, 'backup');
  jobs = new Jobs();
  store = null;
});
afterEach(close);

const readFiles = () => readAttached(dataDir, null);

function open(): SqliteStore {
  store = openSqliteStore(dataDir, () => 'c0ffee');
  return store;
}

async function close(): Promise<void> {
  await store?.close();
  store = null;
}

async function commit(target: SqliteStore, batches: number): Promise<void> {
  for (let batch = 0; batch < batches; batch += 1) await target.commit(jobs.nextBatch(2));
}

function put(name: string, content: string): void {
  const path = join(dataDir, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

const keyLine = (digit: string) => `${digit.repeat(64)}\n`;

async function backUp(target: SqliteStore): Promise<void> {
  const pieces: Buffer[] = [];
  for await (const piece of target.backup(1_000, readFiles)) pieces.push(piece);
  writeFileSync(backupPath, Buffer.concat(pieces));
}

const someMs = Date.UTC(2026, 10, 22);

describe('a backup', () => {
  it('is the store as it was when it was begun, whatever is committed while it is taken', async () => {
    const live = open();
    await commit(live, 150);
    const before = await shownBy(live, jobs.count);
    const pieces: Buffer[] = [];
    for await (const piece of live.backup(1_000, readFiles)) {
      pieces.push(piece);
      // More than the log is carried over after, if nobody held it.
      await commit(live, 60);
    }
    writeFileSync(backupPath, Buffer.concat(pieces));
    const after = await shownBy(live, jobs.count);
    await close();

    expect(openBackup(backupPath).about).toMatchObject({
      clusterId: 'c0ffee',
      takenAtMs: 1_000,
      lastEventSeq: 449,
    });
    const replaced = await restoreStore(dataDir, backupPath, someMs, { replaces: true });
    const restored = open();
    expect(await shownBy(restored, jobs.count)).toEqual(before);
    expect(replaced).toMatchObject({ lostJobs: jobs.count - 300, lostEvents: jobs.events - 449 });

    // What was replaced is intact, too.
    await close();
    cpSync(replaced.keptIn ?? '', dataDir, { recursive: true });
    expect(lostIn(after, await shownBy(open(), jobs.count))).toEqual([]);
  });

  it('ends where nobody takes it, and holds the log no longer', async () => {
    const live = open();
    await commit(live, 150);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const pieces = live.backup(1_000, readFiles)[Symbol.asyncIterator]();
      expect((await pieces.next()).done).toBe(false);
      vi.advanceTimersByTime(pieceTakenMs - 1);
      expect((await pieces.next()).done).toBe(false);
      vi.advanceTimersByTime(pieceTakenMs);
      await expect(pieces.next()).rejects.toMatchObject({
        kind: 'io',
        message: expect.stringContaining('not taken within 60 s'),
      });
    } finally {
      vi.useRealTimers();
    }
    // Another one can be taken: the log is carried over again.
    await backUp(live);
    expect(openBackup(backupPath).about.lastSubmitSeq).toBe(jobs.count);
  });

  it('can be restored where nothing has been before', async () => {
    const live = open();
    await commit(live, 3);
    await backUp(live);
    const shown = await shownBy(live, jobs.count);
    await close();
    dataDir = join(tempDir('elsewhere').path, 'data');

    expect(await restoreStore(dataDir, backupPath, someMs, { replaces: true })).toMatchObject({
      lostEvents: null,
      keptIn: null,
    });
    expect(await shownBy(open(), jobs.count)).toEqual(shown);
    expect(readFileSync(join(dataDir, 'cluster.json'), 'utf8')).toContain('c0ffee');
  });

  it('that was cut off or altered is refused, and the store stays as it is', async () => {
    const live = open();
    await commit(live, 20);
    put('secrets.key', keyLine('a'));
    await backUp(live);
    const shown = await shownBy(live, jobs.count);
    await close();
    const whole = readFileSync(backupPath);
    const random = seededRandom(1);
    const damages = [
      () => truncateSync(backupPath, Math.floor(random() * whole.length)),
      ...Array.from({ length: 20 }, () => () => flipBit(backupPath, random)),
      () => writeFileSync(backupPath, ''),
      () => writeFileSync(backupPath, whole.toString('latin1').replace('aaaa', 'aaba'), 'latin1'),
      () => copyFileSync(join(dataDir, 'muster.db'), backupPath),
    ];
    for (const damage of damages) {
      writeFileSync(backupPath, whole);
      damage();
      await expect(restoreStore(dataDir, backupPath, someMs, { replaces: true })).rejects.toMatchObject({
        kind: 'damaged',
      });
    }
    expect(await shownBy(open(), jobs.count)).toEqual(shown);
  });

  it('of a page that is damaged is not taken', async () => {
    const live = open();
    await commit(live, 200);
    await live.close();
    store = null;
    const again = open();
    const bytes = readFileSync(join(dataDir, 'muster.db'));
    bytes[bytes.length - 2_000] = (bytes[bytes.length - 2_000] ?? 0) ^ 1;
    writeFileSync(join(dataDir, 'muster.db'), bytes);

    await expect(backUp(again)).rejects.toMatchObject({ kind: 'damaged' });
  });

  it('replaces a store only where that is asked for, and one of another cluster with its key files', async () => {
    const live = open();
    put('secrets.key', keyLine('a'));
    await backUp(live);
    await close();
    const refused = { kind: 'conflict', message: expect.stringContaining('--force') };
    await expect(restoreStore(dataDir, backupPath, someMs, { replaces: false })).rejects.toMatchObject(
      refused,
    );
    dataDir = join(tempDir('other').path);
    store = openSqliteStore(dataDir, () => 'another');
    await close();
    put('tls/ca.key', 'of the other');
    put('secrets.key', keyLine('b'));
    await expect(restoreStore(dataDir, backupPath, someMs, { replaces: false })).rejects.toMatchObject(
      refused,
    );

    const { keptIn } = await restoreStore(dataDir, backupPath, someMs, { replaces: true });

    expect(readFileSync(join(dataDir, 'cluster.json'), 'utf8')).toContain('c0ffee');
    expect(readFileSync(join(dataDir, 'secrets.key'), 'utf8')).toBe(keyLine('a'));
    expect(existsSync(join(dataDir, 'tls/ca.key'))).toBe(false);
    expect(readFileSync(join(keptIn ?? '', 'tls/ca.key'), 'utf8')).toBe('of the other');
    open();
  });

  it('has the key files, and a restore keeps those of the same cluster', async () => {
    const live = open();
    for (const [name, content] of [
      ['tls/ca.key', 'key'],
      ['tls/ca.pem', 'certificate'],
      ['secrets.key', keyLine('a')],
      ['admin.token', 'token'],
    ] as const)
      put(name, content);
    await backUp(live);
    await close();

    // 1. Where the key is lost and the keys of secrets were replaced.
    rmSync(join(dataDir, 'tls/ca.key'));
    put('secrets.key', keyLine('b'));
    put('admin.token', 'rotated');
    const { restoredFiles } = await restoreStore(dataDir, backupPath, someMs, { replaces: true });
    expect([...restoredFiles].sort()).toEqual(['secrets.key', 'tls/ca.key', 'tls/ca.pem']);
    const read = (name: string) => readFileSync(join(dataDir, name), 'utf8');
    expect(read('tls/ca.key')).toBe('key');
    expect(read('secrets.key')).toBe(keyLine('b') + keyLine('a'));
    expect(read('admin.token')).toBe('rotated');

    // 2. On another machine.
    dataDir = join(tempDir('elsewhere').path, 'data');
    await restoreStore(dataDir, backupPath, someMs, { replaces: false });
    expect(['tls/ca.key', 'tls/ca.pem', 'secrets.key', 'admin.token'].map(read)).toEqual([
      'key',
      'certificate',
      keyLine('a'),
      'token',
    ]);
    expect(statSync(join(dataDir, 'tls/ca.key')).mode & 0o777).toBe(0o600);
  });

  it('is not restored under a coordinator that is at work', async () => {
    const live = open();
    await backUp(live);
    await expect(restoreStore(dataDir, backupPath, someMs, { replaces: true })).rejects.toMatchObject({
      kind: 'locked',
    });
    expect(() => acceptStore(dataDir, someMs)).toThrow(/another coordinator/);
    await expect(checkStore(dataDir)).rejects.toMatchObject({ kind: 'locked' });
  });
});

/** A copy of what a killed coordinator leaves, with half of its log. */
async function storeThatLost(): Promise<void> {
  const live = open();
  await commit(live, 40);
  const killed = join(tempDir('killed').path, 'data');
  cpSync(dataDir, killed, { recursive: true });
  await close();
  dataDir = killed;
  const log = join(dataDir, 'muster.db-wal');
  truncateSync(log, Math.floor(readFileSync(log).length / 2));
}

async function restoredNote(target: SqliteStore): Promise<Restored> {
  return JSON.parse((await target.readMeta(restoredMeta)) ?? 'null') as Restored;
}

describe('accepting a store', () => {
  it('goes on with what is left of it, and says what is lost', async () => {
    await storeThatLost();
    expect(open).toThrow(/lost acknowledged commits: .*119.*muster store accept/);
    expect(open).toThrow(/lost acknowledged commits/);

    const replaced = acceptStore(dataDir, someMs);
    const accepted = open();
    const { lastEventSeq } = await accepted.load();
    expect(replaced).toMatchObject({ lastEventSeq, lostEvents: 119 - lastEventSeq });
    expect(replaced?.lostJobs).toBeGreaterThan(0);
    expect(readdirSync(replaced?.keptIn ?? '')).toContain('muster.db-wal');
    expect((await restoredNote(accepted)).eventSeqMin).toBeGreaterThan(119);

    await close();
    expect(acceptStore(dataDir, someMs)).toBeNull();
    expect((await checkStore(dataDir)).findings).toEqual([]);
  });

  it.each(['muster.witness', 'muster.sums', 'cluster.json'])(
    'whose %s is gone makes it anew',
    async (name) => {
      const live = open();
      await commit(live, 5);
      const shown = await shownBy(live, jobs.count);
      await close();
      rmSync(join(dataDir, name));

      acceptStore(dataDir, someMs);

      expect(lostIn(shown, await shownBy(open(), jobs.count))).toEqual([]);
      expect(existsSync(join(dataDir, name))).toBe(true);
    },
  );

  it('is refused where SQLite cannot read all of it', async () => {
    const live = open();
    await commit(live, 60);
    await close();
    const path = join(dataDir, 'muster.db');
    const bytes = readFileSync(path);
    bytes.fill(0xa5, 8_192, bytes.length);
    writeFileSync(path, bytes);

    expect(() => acceptStore(dataDir, someMs)).toThrow(/SQLite cannot read all of it.*muster restore/s);
  });
});

describe('checking a store', () => {
  it('reads all of it', async () => {
    const live = open();
    await commit(live, 10);
    await close();
    expect(await checkStore(dataDir)).toEqual({
      findings: [],
      contents: { jobs: 20, events: 29, pages: expect.any(Number) },
    });
  });

  it('makes none where there is none', async () => {
    expect(await checkStore(dataDir)).toMatchObject({ findings: [{ kind: 'missing' }], contents: null });
    expect(readdirSync(dataDir)).not.toContain('muster.db');
  });

  it('finds rows that no program can read, and events that are not there', async () => {
    const live = open();
    await commit(live, 10);
    await close();
    const opened = openDatabase(dataDir, () => '');
    opened.database.exec(`begin; update jobs set body = '{' where submit_seq = 7; delete from events where subject_seq = 1 and seq < 3;
      delete from events where subject = (select id from jobs where submit_seq = 4) and subject_seq = 1`);
    opened.database.exec(`insert into events (seq, id, subject, subject_seq, kind, time_ms, data, caller, peer)
      values (5000, 'x', 'gap', 1, 'k', 0, '{}', '', ''), (5001, 'y', 'gap', 3, 'k', 0, '{}', '', ''); commit`);
    opened.files.follow();
    opened.files.acknowledgeNow();
    closeDatabase(opened);
    opened.lock.release();

    const kinds = (await checkStore(dataDir)).findings.map(({ kind }) => kind);
    expect(kinds).toContain('unreadable');
    expect(kinds).toContain('events');
  });

  it('tells what is wrong with its files', async () => {
    await storeThatLost();
    const report = await checkStore(dataDir);
    expect(report).toMatchObject({ findings: [{ kind: 'behind' }], contents: null });
    // Looked at, and left as it was.
    expect((await checkStore(dataDir)).findings).toEqual(report.findings);
  });
});

it('compares its pages with their sums while it is at work, and is refused at the next start', async () => {
  const live = open();
  await commit(live, 150);
  await close();
  const again = open();
  await commit(again, 3);
  const compareAll = async () => {
    for (let page: number | null = 1; page !== null; ) {
      const { damage, next } = await again.comparePages(page);
      if (damage !== null) return damage;
      page = next;
    }
    return null;
  };
  expect(await compareAll()).toBeNull();
  const path = join(dataDir, 'muster.db');
  const bytes = readFileSync(path);
  // What the log has of a page counts more than what the database has.
  const log = readFileSync(`${path}-wal`);
  const inLog = new Set<number>();
  for (let frame = 32; frame < log.length; frame += 24 + 4_096) inLog.add(log.readUInt32BE(frame));
  let page = Math.floor(bytes.length / 4_096 / 2);
  while (inLog.has(page + 1)) page += 1;
  bytes[page * 4_096 + 17] = (bytes[page * 4_096 + 17] ?? 0) ^ 8;
  writeFileSync(path, bytes);

  const damage = await compareAll();

  expect(damage).toBe(`page ${page + 1} of the database was altered`);
  expect(again.recordDamage(damage ?? '').message).toContain('muster store check');
  await close();
  // The page is well again by itself: what was seen counts.
  bytes[page * 4_096 + 17] = (bytes[page * 4_096 + 17] ?? 0) ^ 8;
  expect(open).toThrow(new RegExp(`page ${page + 1} of the database`));
});
