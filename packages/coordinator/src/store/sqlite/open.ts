/** Opens, checks and migrates the database file; each way in which this can fail has an error message of its own. */
import { closeSync, ftruncateSync, openSync, readFileSync, statSync, truncateSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { systemClock } from '@muster/common/clock';
import { messageOf } from '@muster/common/errors';
import { writeFileDurably } from '@muster/common/files';
import { migrationsFrom, schemaVersion } from '../schema.ts';
import { selectPositions } from '../statements/cluster.ts';
import { StoreError, type StoreErrorKind } from '../store.ts';
import {
  damaged,
  type Inspection,
  type InspectionLimits,
  inspectStore,
  type StorePaths,
  storePaths,
} from './inspection.ts';
import { emptyKeptLog, keepLog, takeKeptLog } from './keptLog.ts';
import { type DirectoryLock, lockFile } from './lockFile.ts';
import { writeAllPageSums } from './pageSums.ts';
import { finishReplacement } from './replacement.ts';
import { StoreFiles } from './storeFiles.ts';
import { createWitness, firstWitness, readWitness, WitnessFile } from './witness.ts';

/** SQLite result codes (https://www.sqlite.org/rescode.html); extended codes keep the primary one in the low byte. */
const sqliteCodes = {
  busy: 5,
  locked: 6,
  readOnly: 8,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  constraint: 19,
  notADatabase: 26,
};
/** Extended. SQLite falls back to reading a file that it may not write, and then fails to take the exclusive lock. */
const ioErrorLock = 3850;

/** Pages are compared with their sums for this many milliseconds before the store is served, and the rest after that. */
const startCheckMs = 500;

export interface OpenedDatabase {
  readonly database: DatabaseSync;
  readonly clusterId: string;
  readonly files: StoreFiles;
  /** The first page that has not been compared with its sum. null: all were. */
  readonly nextPage: number | null;
  readonly lock: DirectoryLock;
}

/** A store of an earlier version is about to get the form that this program writes; the numbers are those of `schema.ts`. */
export interface Upgrade {
  readonly fromVersion: number;
  readonly toVersion: number;
}

/**
 * `cluster.json`, written once, shows that there is a store; `muster.db` and its log hold it; `muster.witness` and
 * `muster.sums` show whether it is complete. Where a store is gone that once was there, no empty one is made in its place.
 * @param limits how long pages are looked at before this returns
 * @param isLocked the caller has locked the directory, and keeps it locked
 * @param onUpgrade called before the first change, which may take minutes for a large store; not for a new one
 */
export function openDatabase(
  dataDir: string,
  newClusterId: () => string,
  limits: InspectionLimits = { pagesMs: startCheckMs, monotonicMs: () => systemClock.monotonicMs() },
  {
    isLocked = false,
    onUpgrade = () => {},
  }: { readonly isLocked?: boolean; readonly onUpgrade?: (upgrade: Upgrade) => void } = {},
): OpenedDatabase {
  const paths = storePaths(dataDir);
  let lock: DirectoryLock | null = null;
  let opened: { readonly database: DatabaseSync; readonly files: StoreFiles | null } | null = null;
  try {
    lock = isLocked ? { release: () => {} } : lockFile(paths.lock);
    finishReplacement(paths);
    const marked = readMarker(paths.marker);
    const inspection = inspectStore(paths, limits);
    const isEmpty = inspection.kind !== 'whole' || inspection.schema === 0;
    if (isEmpty && marked !== null) throw damaged(paths, 'it is empty');
    if (inspection.kind === 'whole') markOpen(paths, inspection);
    takeKeptLog(paths);
    const database = new DatabaseSync(paths.database, { timeout: 0 });
    opened = { database, files: null };
    configure(database);
    const files = inspection.kind === 'whole' ? goOn(paths, database, inspection) : adopt(paths, database);
    opened = { database, files };
    migrate(database, files, onUpgrade);
    const clusterId = readOrMakeClusterId(database, files, marked, newClusterId);
    if (marked === null) writeFileDurably(paths.marker, `${JSON.stringify({ clusterId })}\n`, 0o600);
    return {
      database,
      clusterId,
      files,
      nextPage: inspection.kind === 'whole' ? inspection.nextPage : null,
      lock,
    };
  } catch (error) {
    if (opened !== null) closeDatabase(opened);
    lock?.release();
    throw asOpenError(error, dataDir, paths.database);
  }
}

/** In this order: SQLite carries the log over when it closes, and the sums have to be there before. */
export function closeDatabase({
  database,
  files,
}: {
  readonly database: DatabaseSync;
  readonly files: StoreFiles | null;
}): void {
  if (files?.closed === true) return;
  try {
    files?.prepareClose();
    if (files?.keepsLog === true) keepLog(files.paths);
  } finally {
    database.close();
    files?.close();
    if (files?.keepsLog === true) emptyKeptLog(files.paths);
  }
}

type Whole = Extract<Inspection, { readonly kind: 'whole' }>;

/** From here on the store may contain commits that were in progress when this program was killed. */
function markOpen({ witness: path, database }: StorePaths, { witness, wal, pageBytes }: Whole): void {
  const file = openSync(path, 'r+');
  try {
    const bytes = witness.pages * pageBytes;
    if (wal === null && statSync(database).size > bytes) truncateSync(database, bytes);
    const record = new WitnessFile(file, witness);
    // A log that was carried over and is gone begins with salts that nobody knows.
    const position = wal === null ? { wal: null, covered: null } : { wal: wal.position };
    record.change({ ...position, isOpen: true });
    record.writeNow();
  } finally {
    closeSync(file);
  }
}

function goOn(paths: StorePaths, database: DatabaseSync, { wal, pageBytes }: Whole): StoreFiles {
  const file = openSync(paths.witness, 'r');
  const witness = readWitness(file);
  closeSync(file);
  if (witness === null) throw damaged(paths, `${paths.witness} cannot be read`);
  const databasePages = wal?.databasePages ?? witness.pages;
  const uncarried = wal?.sums ?? new Map<number, number>();
  const databaseFile = openSync(paths.database, 'r+');
  const files = new StoreFiles({
    paths,
    database,
    databaseFile,
    witness,
    pageBytes,
    uncarried,
    databasePages,
  });
  // What SQLite has found in the log, and what was found there before it looked.
  const { log } = database.prepare('pragma wal_checkpoint(noop)').get() ?? {};
  if (wal !== null && log !== wal.position.frames) {
    files.close();
    throw damaged(
      paths,
      `SQLite reads ${Number(log)} frames of the log, and there are ${wal.position.frames}`,
    );
  }
  files.carryOver();
  return files;
}

/** A new store, or a restored one: its witness and its sums are made of what is there. */
export function adopt(paths: StorePaths, database: DatabaseSync, commits = 0): StoreFiles {
  checkIntegrity(database, paths.database);
  database.exec('pragma wal_checkpoint(truncate)');
  const pageBytes = Number(Object.values(database.prepare('pragma page_size').get() ?? {})[0]);
  // Open for as long as SQLite is: closing it drops the locks that the process has on that file.
  const databaseFile = openSync(paths.database, 'r+');
  ftruncateSync(
    databaseFile,
    Number(database.prepare('pragma page_count').get()?.['page_count']) * pageBytes,
  );
  const sums = openSync(paths.sums, 'w+', 0o600);
  const databasePages = writeAllPageSums({ database: databaseFile, sums, pageBytes });
  closeSync(sums);
  const witness = { ...firstWitness, ...newestNumbers(database), commits, pages: databasePages };
  createWitness(paths.witness, witness);
  return new StoreFiles({
    paths,
    database,
    databaseFile,
    witness,
    pageBytes,
    databasePages,
    uncarried: new Map(),
  });
}

/** Of the newest event and job in it; 0: it has none. */
export function newestNumbers(database: DatabaseSync): {
  readonly lastEventSeq: number;
  readonly lastSubmitSeq: number;
} {
  const isEmpty = database.prepare(`select 1 from sqlite_schema where name = 'events'`).get() === undefined;
  if (isEmpty) return { lastEventSeq: 0, lastSubmitSeq: 0 };
  const { submit_seq, event_seq } = database.prepare(selectPositions.sql).get() ?? {};
  return { lastEventSeq: Number(event_seq), lastSubmitSeq: Number(submit_seq) };
}

/** @returns the id of the cluster that the directory belongs to, or null for a directory without a store */
export function readMarker(path: string): string | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    const kind = code === 'EACCES' || code === 'EPERM' ? 'no_permission' : 'io';
    throw new StoreError(kind, `${path} cannot be read (${messageOf(error)}); check owner and mode.`, {
      cause: error,
    });
  }
  const clusterId = clusterIdIn(text);
  if (clusterId === null) throw new StoreError('damaged', `${path} is damaged. Restore it from a backup.`);
  return clusterId;
}

function clusterIdIn(text: string): string | null {
  try {
    const value = JSON.parse(text) as { clusterId?: unknown } | null;
    return typeof value?.clusterId === 'string' ? value.clusterId : null;
  } catch {
    return null;
  }
}

/** Reads every setting back: a pragma that was not taken is silent otherwise, and these are what durability rests on. */
export function configure(database: DatabaseSync): void {
  database.exec('pragma locking_mode = exclusive');
  const settings: readonly (readonly [name: string, value: string, expected: unknown])[] = [
    ['journal_mode', 'wal', 'wal'],
    ['synchronous', 'full', 2],
    ['foreign_keys', 'on', 1],
  ];
  for (const [name, value, expected] of settings) {
    database.exec(`pragma ${name} = ${value}`);
    const actual = Object.values(database.prepare(`pragma ${name}`).get() ?? {})[0];
    if (actual !== expected)
      throw new StoreError('io', `SQLite did not take ${name} = ${value} (it says ${String(actual)})`);
  }
  // The log is carried over by storeFiles.ts alone, which writes the sums of its pages first.
  database.exec('pragma wal_autocheckpoint = 0; pragma cell_size_check = on');
  // Takes the exclusive lock now rather than at the first write.
  database.exec('begin exclusive; commit');
}

function checkIntegrity(database: DatabaseSync, path: string): void {
  const answer = Object.values(database.prepare('pragma quick_check(1)').get() ?? {})[0];
  if (answer !== 'ok') {
    throw new StoreError('damaged', `${path} is damaged (${String(answer)}). Restore it from a backup.`);
  }
}

function migrate(database: DatabaseSync, files: StoreFiles, onUpgrade: (upgrade: Upgrade) => void): void {
  const version = Number(Object.values(database.prepare('pragma user_version').get() ?? {})[0]);
  if (version > 0 && version < schemaVersion) onUpgrade({ fromVersion: version, toVersion: schemaVersion });
  for (const step of migrationsFrom(version)) {
    applyStep(database, step);
    files.follow();
    files.acknowledgeNow();
  }
}

/** In one transaction. The step is executed alone, because a comment at its end would hide what follows it in the same text. */
export function applyStep(
  database: DatabaseSync,
  { sql, version }: { readonly sql: string; readonly version: number },
): void {
  database.exec('begin exclusive');
  database.exec(sql);
  database.exec(`pragma user_version = ${version}; commit`);
}

function readOrMakeClusterId(
  database: DatabaseSync,
  files: StoreFiles,
  expected: string | null,
  newClusterId: () => string,
): string {
  const row = database.prepare(`select value from meta where name = 'cluster_id'`).get();
  const stored = row === undefined ? null : String(row['value']);
  if (stored !== null && expected !== null && stored !== expected) {
    throw new StoreError(
      'damaged',
      `the store is of cluster ${stored}, its directory of cluster ${expected}`,
    );
  }
  if (stored !== null) return stored;
  const clusterId = expected ?? newClusterId();
  database.prepare(`insert into meta (name, value) values ('cluster_id', ?)`).run(clusterId);
  files.follow();
  files.acknowledgeNow();
  return clusterId;
}

function sqliteCode(error: unknown): number | null {
  const code = (error as { errcode?: unknown }).errcode;
  return typeof code === 'number' ? code & 0xff : null;
}

/** What went wrong while running. */
export function asStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const code = sqliteCode(error);
  const kind = kindsWhileRunning.get(code) ?? 'io';
  return new StoreError(kind, `the store could not be written: ${messageOf(error)}`, { cause: error });
}

const kindsWhileRunning: ReadonlyMap<number | null, StoreErrorKind> = new Map([
  [sqliteCodes.full, 'full'],
  [sqliteCodes.constraint, 'conflict'],
  [sqliteCodes.corrupt, 'damaged'],
  [sqliteCodes.notADatabase, 'damaged'],
]);

export function asOpenError(error: unknown, dataDir: string, path: string): StoreError {
  if (error instanceof StoreError) return error;
  const options = { cause: error };
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
    return new StoreError(
      'no_permission',
      `${path} cannot be opened for writing; check owner and mode.`,
      options,
    );
  }
  if ((error as { errcode?: unknown }).errcode === ioErrorLock) {
    return new StoreError(
      'no_permission',
      `${path} cannot be locked for writing; check owner and mode, and that it is on a local disk.`,
      options,
    );
  }
  switch (sqliteCode(error)) {
    case sqliteCodes.busy:
    case sqliteCodes.locked:
      return new StoreError(
        'locked',
        `another coordinator is using ${dataDir}. Stop it, or use another --data.`,
        options,
      );
    case sqliteCodes.corrupt:
    case sqliteCodes.notADatabase:
      return new StoreError(
        'damaged',
        `${path} is damaged (${messageOf(error)}). Restore it from a backup.`,
        options,
      );
    case sqliteCodes.readOnly:
    case sqliteCodes.cannotOpen:
      if (isAbsent(dataDir)) return new StoreError('io', `${dataDir} is no directory`, options);
      return new StoreError(
        'no_permission',
        `${path} cannot be opened for writing; check owner and mode.`,
        options,
      );
    case sqliteCodes.full:
      return new StoreError('full', `no space left for ${path}; free some and start again.`, options);
    default:
      return new StoreError('io', `${path} cannot be opened: ${messageOf(error)}`, options);
  }
}

/** Nothing has this path. One that may not be looked at counts as there. */
function isAbsent(path: string): boolean {
  try {
    statSync(path);
    return false;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ENOTDIR';
  }
}
