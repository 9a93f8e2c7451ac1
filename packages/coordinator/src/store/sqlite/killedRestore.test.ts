/** `muster restore` and `accept`, killed before every step: no store that forgets what it was is ever served. */
import { spawnSync } from 'node:child_process';
import {
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
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import { type Restored, restoredMeta } from '../restored.ts';
import { StoreError } from '../store.ts';
import { Jobs } from './damageFixture.ts';
import { acceptStore, restoreStore } from './restoreStore.ts';
import { openSqliteStore } from './sqliteStore.ts';

const program = join(import.meta.dirname, 'restoreUntilKilled.ts');

let directory: string;
let dataDir: string;
let backupPath: string;
/** Of the store that is replaced. */
let lastEventSeq: number;

/** A store with commits after its backup, copied while it is open, as if its program had been killed. */
beforeEach(async () => {
  directory = tempDir('killed').path;
  const original = join(directory, 'original');
  backupPath = join(directory, 'backup');
  const jobs = new Jobs();
  cpSync(tempDir('empty').path, original, { recursive: true });
  const store = openSqliteStore(original, () => 'c0ffee');
  const commit = async (batches: number) => {
    for (let batch = 0; batch < batches; batch += 1) await store.commit(jobs.nextBatch(2));
  };
  await commit(10);
  const files = [{ name: 'secrets.key', content: Buffer.from('of the backup\n') }];
  const pieces: Buffer[] = [];
  for await (const piece of store.backup(1_000, () => files)) pieces.push(piece);
  writeFileSync(backupPath, Buffer.concat(pieces));
  await commit(30);
  lastEventSeq = (await store.load()).lastEventSeq;
  dataDir = join(directory, 'data');
  writeFileSync(join(original, 'secrets.key'), 'own\n');
  cpSync(original, join(directory, 'before'), { recursive: true });
  await store.close();
});

function putBack(): void {
  rmSync(dataDir, { recursive: true, force: true });
  cpSync(join(directory, 'before'), dataDir, { recursive: true });
}

/** Runs it to its end, or to the call at which it is killed. @returns the places of its copies: one before each of its calls */
function run(what: 'restore' | 'accept', killedAt = 0): readonly string[] {
  const copies = join(directory, `copies-${killedAt}`);
  mkdirSync(copies);
  const args = [program, what, dataDir, backupPath, copies, String(killedAt)];
  const { signal, status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (killedAt > 0 ? signal !== 'SIGKILL' : status !== 0) throw new Error(stderr);
  return readdirSync(copies)
    .map(Number)
    .sort((one, other) => one - other)
    .map((call) => join(copies, String(call)));
}

/** What a run leaves behind when it is killed before each of its calls, and when it ends. */
function leftBy(what: 'restore' | 'accept'): readonly string[] {
  putBack();
  return [...run(what), dataDir];
}

const filesOf = (path: string) =>
  readdirSync(path, { recursive: true, encoding: 'utf8' })
    .map((name) => `${name} ${statSync(join(path, name)).size}`)
    .sort();

it('leaves behind what its copies show when it is killed', () => {
  const left = leftBy('restore');
  for (const call of [Math.floor(left.length / 3), Math.floor((2 * left.length) / 3)]) {
    putBack();
    run('restore', call);
    expect(filesOf(dataDir), `call ${call}`).toEqual(filesOf(left[call - 1] ?? ''));
  }
});

interface Found {
  readonly lastEventSeq: number;
  readonly note: Restored | null;
}

/** What a coordinator would be given. null: it would refuse the store, or there is none. */
async function found(): Promise<Found | null> {
  try {
    const store = openSqliteStore(dataDir, () => 'another');
    const text = await store.readMeta(restoredMeta);
    const { lastEventSeq: seq } = await store.load();
    await store.close();
    return { lastEventSeq: seq, note: text ? (JSON.parse(text) as Restored) : null };
  } catch (error) {
    if (error instanceof StoreError) return null;
    throw error;
  }
}

/** The same again from the same state, on another copy: looking at a store writes to it. */
async function foundInCopy(): Promise<Found | null> {
  const kept = dataDir;
  dataDir = join(directory, 'looked-at');
  rmSync(dataDir, { recursive: true, force: true });
  cpSync(kept, dataDir, { recursive: true });
  const answer = await found();
  dataDir = kept;
  return answer;
}

it('leaves the old or the restored store, with its key files, wherever a restore is killed', async () => {
  const seen = new Set<string>();
  for (const [step, left] of leftBy('restore').entries()) {
    dataDir = left;
    const after = await foundInCopy();
    const isOld = after?.lastEventSeq === lastEventSeq;
    seen.add(after === null ? 'refused' : isOld ? 'old' : 'restored');
    const keys = readFileSync(join(directory, 'looked-at', 'secrets.key'), 'utf8');
    expect(keys, `step ${step}`).toBe(isOld ? 'own\n' : 'own\nof the backup\n');
    if (!isOld) expect(after?.note?.eventSeqMin, `step ${step}`).toBeGreaterThan(lastEventSeq);

    // Done again, it knows what the first run has moved aside.
    await restoreStore(dataDir, backupPath, step + 1, { replaces: true });
    const again = await found();
    expect(again?.note?.eventSeqMin, `again after step ${step}`).toBeGreaterThan(lastEventSeq);
    expect(again?.lastEventSeq).toBeLessThan(lastEventSeq);
    expect(existsSync(join(dataDir, 'restoring'))).toBe(false);
  }
  expect([...seen].sort()).toEqual(['old', 'restored']);
});

it('accepts a store with the note of what it lacks, or not at all, wherever it is killed', async () => {
  const log = join(directory, 'before', 'muster.db-wal');
  truncateSync(log, Math.floor(readFileSync(log).length / 2));
  for (const [step, left] of leftBy('accept').entries()) {
    dataDir = left;
    const after = await foundInCopy();
    if (after !== null) expect(after.note?.eventSeqMin, `step ${step}`).toBeGreaterThan(lastEventSeq);

    acceptStore(dataDir, step + 1);
    expect((await found())?.note?.eventSeqMin, `again after step ${step}`).toBeGreaterThan(lastEventSeq);
  }
});
