/** Opens, checks and migrates the database file; every way this can go wrong has its own sentence. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { messageOf } from '@muster/common/errors';
import { writeFileDurably } from '@muster/common/files';
import { migrations } from '../migrations/index.ts';
import { StoreError } from '../store.ts';

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

/**
 * A store lives in two files: `cluster.json`, written once, says that there is one; `muster.db` holds it. A data
 * directory with the first and without the second has lost its store, and an empty one must not take its place.
 */
export function openDatabase(
  dataDir: string,
  newClusterId: () => string,
): { database: DatabaseSync; clusterId: string } {
  const databasePath = join(dataDir, 'muster.db');
  const markerPath = join(dataDir, 'cluster.json');
  const marked = readMarker(markerPath);
  if (marked !== null && !existsSync(databasePath)) {
    throw new StoreError(
      'missing',
      `${dataDir} belongs to cluster ${marked}, but its store ${databasePath} is gone. Restore it from a ` +
        'backup, or use another data directory for a new cluster.',
    );
  }
  let database: DatabaseSync | null = null;
  try {
    database = new DatabaseSync(databasePath, { timeout: 0 });
    configure(database);
    checkIntegrity(database, databasePath);
    migrate(database, databasePath, marked !== null);
    const clusterId = readOrMakeClusterId(database, marked, newClusterId);
    if (marked === null) writeFileDurably(markerPath, `${JSON.stringify({ clusterId })}\n`, 0o600);
    return { database, clusterId };
  } catch (error) {
    database?.close();
    throw asOpenError(error, dataDir, databasePath);
  }
}

/** @returns the id of the cluster that the directory belongs to, or null for a directory without a store */
function readMarker(path: string): string | null {
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
function configure(database: DatabaseSync): void {
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
  // Takes the exclusive lock now rather than at the first write.
  database.exec('begin exclusive; commit');
}

function checkIntegrity(database: DatabaseSync, path: string): void {
  const answer = Object.values(database.prepare('pragma quick_check(1)').get() ?? {})[0];
  if (answer !== 'ok') {
    throw new StoreError('damaged', `${path} is damaged (${String(answer)}). Restore it from a backup.`);
  }
}

/** @param isExpected there was a store here: a file that holds none, such as one cut to nothing, must not become one */
function migrate(database: DatabaseSync, path: string, isExpected: boolean): void {
  const version = Number(Object.values(database.prepare('pragma user_version').get() ?? {})[0]);
  if (version === 0 && isExpected) {
    throw new StoreError('damaged', `${path} is damaged (it is empty). Restore it from a backup.`);
  }
  if (version > migrations.length) {
    throw new StoreError(
      'newer_schema',
      `${path} was written by a newer Muster (schema ${version}; this one knows up to ${migrations.length}). ` +
        'Upgrade Muster, or use another data directory.',
    );
  }
  migrations.slice(version).forEach((sql, index) => {
    database.exec(`begin exclusive; ${sql}; pragma user_version = ${version + index + 1}; commit`);
  });
}

function readOrMakeClusterId(
  database: DatabaseSync,
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
  const kind = code === sqliteCodes.full ? 'full' : code === sqliteCodes.constraint ? 'conflict' : 'io';
  return new StoreError(kind, `the store could not be written: ${messageOf(error)}`, { cause: error });
}

function asOpenError(error: unknown, dataDir: string, path: string): StoreError {
  if (error instanceof StoreError) return error;
  const options = { cause: error };
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
