/** Replaces a store with a backup, and accepts a store that has lost something. Both while no coordinator runs. */
import {
  closeSync,
  copyFileSync,
  createWriteStream,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pipeline } from 'node:stream/promises';
import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '@muster/common/errors';
import { syncDirectory, writeFileDurably } from '@muster/common/files';
import { type Restored, restoredMeta } from '../restored.ts';
import { selectMeta, upsertMeta } from '../statements/cluster.ts';
import { StoreError } from '../store.ts';
import { type AttachedFile, authorityFiles, keyFiles, mergedKeys, secretKeysName } from './attached.ts';
import { type BackupAbout, type OpenedBackup, openBackup } from './backup.ts';
import { inspectStore, keptNamePrefix, restoredName, type StorePaths, storePaths } from './inspection.ts';
import { lockFile } from './lockFile.ts';
import {
  adopt,
  asOpenError,
  closeDatabase,
  configure,
  newestNumbers,
  openDatabase,
  readMarker,
} from './open.ts';
import { giveStoreToItsOwner } from './ownership.ts';
import {
  commitReplacement,
  finishReplacement,
  hasReplacement,
  type ReplacedStore,
  stagingOf,
} from './replacement.ts';
import { createWitness, firstWitness, readWitness, type Witness } from './witness.ts';

const everything = { pagesMs: Number.POSITIVE_INFINITY, monotonicMs: () => 0 };

/**
 * Killed at any moment, it leaves the store that was there or the restored one, which the next program that opens the directory
 * completes. Key files that a directory of the same cluster has stay: those of the backup may be the ones that were replaced
 * because somebody else had them.
 * @param dataDir absolute; made when it is not there
 * @param nowMs wall clock, for names and records
 * @param replaces whether a store that is there may be replaced; its files are kept
 * @throws {StoreError} `damaged`, `unknown_schema`: the backup; `locked`; `conflict`: there is a store
 */
export async function restoreStore(
  dataDir: string,
  backupPath: string,
  nowMs: number,
  { replaces }: { readonly replaces: boolean },
): Promise<ReplacedStore> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const paths = storePaths(dataDir);
  const lock = lockOf(paths);
  try {
    const completed = finishReplacement(paths);
    const backup = openBackup(backupPath);
    try {
      // The same restore once more, because the first one was killed.
      if (completed !== null && isDeepStrictEqual(completed.about, backup.about)) return completed.replaced;
      if (!replaces) refuseStoreThere(paths, backup.about);
      await stage(paths, backup, nowMs).catch((error: unknown) => {
        // A disk that is full has better use for a part of a store.
        if (!hasReplacement(paths)) rmSync(stagingOf(paths), { recursive: true, force: true });
        throw error;
      });
      const done = finishReplacement(paths);
      if (done === null) throw new StoreError('io', `${dataDir} has no restored store to complete`);
      return done.replaced;
    } finally {
      backup.close();
    }
  } finally {
    giveStoreToItsOwner(dataDir);
    lock.release();
  }
}

/** Makes all of the new store beside the other one, and last the record from which on it counts. */
async function stage(paths: StorePaths, backup: OpenedBackup, nowMs: number): Promise<void> {
  const { about } = backup;
  const marked = markerOf(paths);
  const isOwnCluster = marked === null || marked === about.clusterId;
  const before = isOwnCluster ? knownBefore(paths) : null;
  const lost = lostBetween(before, about);
  const staged = storePaths(stagingOf(paths));
  rmSync(staged.dataDir, { recursive: true, force: true });
  mkdirSync(staged.dataDir, { mode: 0o700 });
  await pipeline(backup.pages(), createWriteStream(staged.database, { mode: 0o600, flush: true }));
  writeSynced(staged.sums, backup.sums);
  createWitness(staged.witness, {
    ...firstWitness,
    ...numbersOf(about, before),
    pages: about.pages,
    isOpen: false,
  });
  // Before it is anybody's store: one that does not know that it was restored would give numbers out twice.
  noteRestored(staged.dataDir, {
    how: 'restored',
    takenAtMs: about.takenAtMs,
    ...lost,
    atMs: nowMs,
    ...eventFloor(before, about),
  });
  const files = isOwnCluster ? neededFiles(paths, backup.files) : backup.files;
  for (const { name, content } of files) {
    const path = join(staged.dataDir, name);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeSynced(path, content);
    syncDirectory(dirname(path));
  }
  syncDirectory(staged.dataDir);
  const names = [staged.marker, staged.sums, staged.witness, staged.database].map((path) => basename(path));
  if (before !== null) writeFileDurably(begunPath(paths), `${JSON.stringify(before)}\n`, 0o600);
  const leaves = [
    ...presentFiles(paths).map((path) => basename(path)),
    ...(isOwnCluster ? files.map(({ name }) => name) : keyFiles),
  ].filter((name) => existsSync(join(paths.dataDir, name)));
  const restoredFiles = files.map(({ name }) => name);
  giveStoreToItsOwner(paths.dataDir);
  commitReplacement(paths, {
    about,
    // The database last: without it there is no store.
    takes: [...restoredFiles, ...names],
    leaves,
    keptName: leaves.length === 0 ? null : keptName(nowMs),
    replaced: { lastEventSeq: about.lastEventSeq, ...lost, restoredFiles },
  });
}

/** @throws {StoreError} `conflict` */
function refuseStoreThere(paths: StorePaths, { clusterId }: BackupAbout): void {
  const marked = markerOf(paths);
  const isOther = marked !== null && marked !== clusterId;
  if (!isOther && !existsSync(paths.database)) return;
  const what = isOther
    ? `is of cluster ${marked}, and the backup of cluster ${clusterId}`
    : 'has a store already';
  throw new StoreError(
    'conflict',
    `${paths.dataDir} ${what}. To replace what is there, and keep its files beside it: --force`,
  );
}

/** What of a backup this directory has not got. */
function neededFiles({ dataDir }: StorePaths, files: readonly AttachedFile[]): readonly AttachedFile[] {
  const has = (name: string) => existsSync(join(dataDir, name));
  const hasAuthority = authorityFiles.every(has);
  return files.flatMap((file): readonly AttachedFile[] => {
    const { name, content } = file;
    if (name === secretKeysName && has(name)) {
      const merged = mergedKeys(readFileSync(join(dataDir, name), 'utf8'), content.toString());
      return [{ name, content: Buffer.from(merged) }];
    }
    const isAuthority = authorityFiles.some((each) => each === name);
    const isKept = isAuthority ? hasAuthority : keyFiles.includes(name) && has(name);
    return isKept ? [] : [file];
  });
}

/**
 * Takes a store as it is, though something is missing or damaged, as far as SQLite can read it.
 * @returns null: nothing is wrong with it
 * @throws {StoreError} `damaged`: it cannot be read; `locked`, `missing`
 */
export function acceptStore(dataDir: string, nowMs: number): ReplacedStore | null {
  const paths = storePaths(dataDir);
  const lock = lockOf(paths);
  try {
    finishReplacement(paths);
    if (isWhole(paths)) return null;
    const marked = markerOf(paths);
    const before = knownBefore(paths);
    const keptIn = copyAside(paths, nowMs);
    const database = new DatabaseSync(paths.database, { timeout: 0 });
    let known: ReturnType<typeof adopt>;
    let lost: Lost;
    try {
      configure(database);
      refuseUnreadable(paths, database);
      const found = newestNumbers(database);
      lost = lostBetween(before, found);
      // Before the witness makes it a store that is complete: a second run would find nothing to accept, and note nothing.
      noteAccepted(database, {
        how: 'accepted',
        takenAtMs: null,
        ...lost,
        atMs: nowMs,
        ...eventFloor(before, found),
      });
      known = adopt(paths, database, before?.commits ?? 0);
    } catch (error) {
      database.close();
      // Where not even the schema can be read, SQLite throws instead of answering.
      const failure = asOpenError(error, dataDir, paths.database);
      const isOfSqlite = failure !== error && failure.kind === 'damaged';
      throw isOfSqlite ? unreadable(paths, messageOf(error)) : failure;
    }
    const { lastEventSeq } = known.known;
    closeDatabase({ database, files: known });
    if (marked === null) rmSync(paths.marker, { force: true });
    // Makes what else is missing.
    closeDatabase(openDatabase(dataDir, () => '', everything, { isLocked: true }));
    return { lastEventSeq, ...lost, keptIn, restoredFiles: [] };
  } finally {
    lock.release();
  }
}

/** @throws {StoreError} for what accepting it would not change */
function isWhole(paths: StorePaths): boolean {
  try {
    return inspectStore(paths, everything).kind === 'whole' && markerOf(paths) !== null;
  } catch (error) {
    if (error instanceof StoreError && (error.kind === 'behind' || error.kind === 'damaged')) return false;
    throw error;
  }
}

/** null also for one that cannot be read: the store itself knows its cluster. */
function markerOf({ marker }: StorePaths): string | null {
  try {
    return readMarker(marker);
  } catch (error) {
    if (error instanceof StoreError && error.kind === 'damaged') return null;
    throw error;
  }
}

function refuseUnreadable(paths: StorePaths, database: DatabaseSync): void {
  const answers = database
    .prepare('pragma integrity_check(10)')
    .all()
    .map((row) => String(Object.values(row)[0]));
  if (answers[0] !== 'ok') throw unreadable(paths, answers.join('; '));
  const meta = database.prepare(`select 1 from sqlite_schema where name = 'meta'`).get();
  if (meta === undefined) throw unreadable(paths, 'it has no tables of Muster');
}

function unreadable(paths: StorePaths, why: string): StoreError {
  return new StoreError(
    'damaged',
    `${paths.database} cannot be accepted, because SQLite cannot read all of it (${why.replaceAll('\n', ', ')}). Restore it ` +
      `from a backup: muster restore FILE --force --data ${paths.dataDir}`,
  );
}

function lockOf(paths: StorePaths): ReturnType<typeof lockFile> {
  try {
    return lockFile(paths.lock);
  } catch (error) {
    throw asOpenError(error, paths.dataDir, paths.database);
  }
}

function witnessOf({ witness }: StorePaths): Witness | null {
  const file = openSync(witness, 'r');
  try {
    return readWitness(file);
  } finally {
    closeSync(file);
  }
}

type Numbers = Pick<Witness, 'commits' | 'lastEventSeq' | 'lastSubmitSeq'>;
type Lost = Pick<Restored, 'lostEvents' | 'lostJobs'>;

/** What stores had that were replaced here: a second restore may follow before a coordinator has read the note of the first. */
function begunPath({ dataDir }: StorePaths): string {
  return join(dataDir, restoredName);
}

/** What was acknowledged once, by the witness, and by what an earlier restore has found. null: nobody knows. */
function knownBefore(paths: StorePaths): Numbers | null {
  const earlier = begunOf(paths);
  const witness = existsSync(paths.witness) ? witnessOf(paths) : null;
  if (witness === null) return earlier;
  return {
    commits: Math.max(witness.commits, earlier?.commits ?? 0),
    lastEventSeq: Math.max(witness.lastEventSeq, earlier?.lastEventSeq ?? 0),
    // Numbers of jobs are reused after a restore, so those of an earlier store mean nothing.
    lastSubmitSeq: witness.lastSubmitSeq,
  };
}

function begunOf(paths: StorePaths): Numbers | null {
  const path = begunPath(paths);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Numbers) : null;
}

function numbersOf(about: Numbers, before: Numbers | null): Numbers {
  const { lastEventSeq, lastSubmitSeq } = about;
  return { commits: Math.max(about.commits, before?.commits ?? 0), lastEventSeq, lastSubmitSeq };
}

function lostBetween(before: Numbers | null, now: Omit<Numbers, 'commits'>): Lost {
  if (before === null) return { lostEvents: null, lostJobs: null };
  return {
    lostEvents: Math.max(0, before.lastEventSeq - now.lastEventSeq),
    lostJobs: Math.max(0, before.lastSubmitSeq - now.lastSubmitSeq),
  };
}

/** Who follows the events knows them by their numbers, so that no number may be given out twice. */
function eventFloor(before: Numbers | null, now: Omit<Numbers, 'commits'>): { readonly eventSeqMin: number } {
  const known = before === null ? now.lastEventSeq + 10_000_000 : before.lastEventSeq + 1_000;
  return { eventSeqMin: Math.max(now.lastEventSeq, known) };
}

/** Makes the next coordinator continue with numbers that were never issued. */
function noteRestored(dataDir: string, restored: Restored): void {
  const opened = openDatabase(dataDir, () => '', everything, { isLocked: true });
  opened.database.prepare(upsertMeta.sql).run({ name: restoredMeta, value: JSON.stringify(restored) });
  opened.files.follow();
  opened.files.acknowledgeNow();
  closeDatabase(opened);
}

/** What an earlier run has noted, and no coordinator has read, still counts. */
function noteAccepted(database: DatabaseSync, restored: Restored): void {
  const text = database.prepare(selectMeta.sql).get({ name: restoredMeta })?.['value'];
  const earlier = text ? (JSON.parse(String(text)) as Restored) : restored;
  const most = (a: number | null, b: number | null) => (a === null || b === null ? null : Math.max(a, b));
  const note: Restored = {
    ...restored,
    lostEvents: most(earlier.lostEvents, restored.lostEvents),
    lostJobs: most(earlier.lostJobs, restored.lostJobs),
    eventSeqMin: Math.max(earlier.eventSeqMin, restored.eventSeqMin),
  };
  database.prepare(upsertMeta.sql).run({ name: restoredMeta, value: JSON.stringify(note) });
}

function writeSynced(path: string, content: Buffer): void {
  const file = openSync(path, 'w', 0o600);
  try {
    writeFileSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function presentFiles({ database, wal, witness, sums }: StorePaths): readonly string[] {
  return [database, wal, witness, sums].filter((path) => existsSync(path));
}

/** The database itself stays: it is what is accepted. */
function copyAside(paths: StorePaths, nowMs: number): string {
  const directory = asideFor(paths, nowMs);
  for (const path of presentFiles(paths)) {
    if (path !== paths.database) copyFileSync(path, join(directory, basename(path)));
  }
  syncDirectory(directory);
  return directory;
}

function asideFor({ dataDir }: StorePaths, nowMs: number): string {
  const directory = join(dataDir, keptName(nowMs));
  mkdirSync(directory, { mode: 0o700 });
  return directory;
}

function keptName(nowMs: number): string {
  return `${keptNamePrefix}${new Date(nowMs).toISOString().replace(/[:.]/g, '-')}`;
}
