/** Puts a backup in the place of a store, and goes on with a store that has lost something. Both while no coordinator runs. */
import {
  closeSync,
  copyFileSync,
  createWriteStream,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pipeline } from 'node:stream/promises';
import { messageOf } from '@muster/common/errors';
import { syncDirectory, writeFileDurably } from '@muster/common/files';
import { type Restored, restoredMeta } from '../restored.ts';
import { selectMeta, upsertMeta } from '../statements/cluster.ts';
import { StoreError } from '../store.ts';
import { type BackupAbout, openBackup } from './backup.ts';
import { inspectStore, keptNamePrefix, type StorePaths, storePaths } from './inspection.ts';
import {
  adopt,
  asOpenError,
  closeDatabase,
  configure,
  lockFile,
  newestNumbers,
  openDatabase,
  readMarker,
} from './open.ts';
import { createWitness, firstWitness, readWitness, type Witness } from './witness.ts';

export interface ReplacedStore {
  /** Newest event of the store as it is now. */
  readonly lastEventSeq: number;
  /** Acknowledged once and not in it. null: nobody knows. */
  readonly lostEvents: number | null;
  readonly lostJobs: number | null;
  /** Where the files that were replaced are kept. null: there were none. */
  readonly keptIn: string | null;
}

const everything = { pagesMs: Number.POSITIVE_INFINITY, monotonicMs: () => 0 };

/**
 * @param dataDir absolute; made when it is not there
 * @param nowMs wall clock, for names and records
 * @throws {StoreError} `damaged`, `unknown_schema`: the backup; `locked`; `conflict`: the directory is another cluster's
 */
export async function restoreStore(
  dataDir: string,
  backupPath: string,
  nowMs: number,
): Promise<ReplacedStore> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const paths = storePaths(dataDir);
  const lock = lockOf(paths);
  try {
    const backup = openBackup(backupPath);
    try {
      const { about } = backup;
      refuseOtherCluster(paths, about);
      const before = knownBefore(paths);
      const lost = lostBetween(before, about);
      const staged = storePaths(join(dataDir, stagingName));
      rmSync(staged.dataDir, { recursive: true, force: true });
      mkdirSync(staged.dataDir, { mode: 0o700 });
      await pipeline(backup.pages(), createWriteStream(staged.database, { mode: 0o600, flush: true }));
      writeSums(staged, backup.sums);
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
      if (before !== null) writeFileDurably(begunPath(paths), `${JSON.stringify(before)}\n`, 0o600);
      const keptIn = moveAside(paths, nowMs);
      writeFileDurably(paths.marker, `${JSON.stringify({ clusterId: about.clusterId })}\n`, 0o600);
      renameSync(staged.sums, paths.sums);
      renameSync(staged.witness, paths.witness);
      syncDirectory(dataDir);
      // Last of all: without it there is no store, and the restore has to be done again.
      renameSync(staged.database, paths.database);
      syncDirectory(dataDir);
      rmSync(begunPath(paths), { force: true });
      rmSync(staged.dataDir, { recursive: true, force: true });
      return { lastEventSeq: about.lastEventSeq, ...lost, keptIn };
    } finally {
      backup.close();
    }
  } finally {
    lock.release();
  }
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
    return { lastEventSeq, ...lost, keptIn };
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
      `from a backup: muster store restore FILE --data ${paths.dataDir}`,
  );
}

function lockOf(paths: StorePaths): ReturnType<typeof lockFile> {
  try {
    return lockFile(paths.lock);
  } catch (error) {
    throw asOpenError(error, paths.dataDir, paths.database);
  }
}

function refuseOtherCluster(paths: StorePaths, { clusterId }: BackupAbout): void {
  const marked = markerOf(paths);
  if (marked === null || marked === clusterId) return;
  throw new StoreError(
    'conflict',
    `${paths.dataDir} belongs to cluster ${marked}, and the backup is of cluster ${clusterId}`,
  );
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

/** The store that takes the place of the other one, until it does. */
const stagingName = 'restoring';

/** What the store had, while a restore that may be cut off has moved it aside. */
function begunPath({ dataDir }: StorePaths): string {
  return join(dataDir, 'muster.restoring');
}

/** What was acknowledged once, by the witness, and by what a restore that was cut off has found. null: nobody knows. */
function knownBefore(paths: StorePaths): Numbers | null {
  const witnesses = [existsSync(paths.witness) ? witnessOf(paths) : null, begunOf(paths)];
  const known = witnesses.filter((each) => each !== null);
  if (known.length === 0) return null;
  return {
    commits: Math.max(...known.map(({ commits }) => commits)),
    lastEventSeq: Math.max(...known.map(({ lastEventSeq }) => lastEventSeq)),
    lastSubmitSeq: Math.max(...known.map(({ lastSubmitSeq }) => lastSubmitSeq)),
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

/** The next coordinator goes on from here with numbers that have never been given out. */
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

function writeSums({ sums }: StorePaths, content: Buffer): void {
  const file = openSync(sums, 'w', 0o600);
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

function moveAside(paths: StorePaths, nowMs: number): string | null {
  const files = presentFiles(paths);
  if (files.length === 0) return null;
  const directory = asideFor(paths, nowMs);
  for (const path of files) renameSync(path, join(directory, basename(path)));
  syncDirectory(directory);
  return directory;
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
  const directory = join(dataDir, `${keptNamePrefix}${new Date(nowMs).toISOString().replace(/[:.]/g, '-')}`);
  mkdirSync(directory, { mode: 0o700 });
  return directory;
}
