/** Looks at everything in a store, while no coordinator runs. */
import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { messageOf } from '@muster/common/errors';
import { StoreError, type StoreErrorKind } from '../store.ts';
import { storePaths } from './inspection.ts';
import { type OpenedDatabase, openDatabase } from './open.ts';
import { SqliteStore } from './sqliteStore.ts';

export interface StoreReport {
  readonly findings: readonly StoreFinding[];
  /** null: it could not be opened. */
  readonly contents: { readonly jobs: number; readonly events: number; readonly pages: number } | null;
}

export interface StoreFinding {
  /** `unreadable`: a row; `events`: their numbering; the others as for a coordinator that does not start. */
  readonly kind: StoreErrorKind | 'unreadable' | 'events';
  readonly message: string;
}

const rowsPerRead = 1_000;

/**
 * @param dataDir absolute
 * @throws {StoreError} `locked`: a coordinator is at work on it
 */
export async function checkStore(dataDir: string): Promise<StoreReport> {
  let opened: OpenedDatabase;
  try {
    opened = openWhole(dataDir);
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind === 'locked') throw error;
    return { findings: [{ kind: error.kind, message: error.message }], contents: null };
  }
  const { database } = opened;
  const store = new SqliteStore(opened);
  try {
    const findings = [...integrityFindings(database), ...eventFindings(database)];
    const { jobs, unreadable } = await readJobs(store, database);
    const read = await readEvents(store);
    return {
      findings: [...findings, ...unreadable, ...read.unreadable],
      contents: { jobs, events: read.events, pages: opened.files.pageCount },
    };
  } finally {
    await store.close();
  }
}

/** @throws {StoreError} also `missing`: there is none, and none is made */
export function openExistingStore(dataDir: string): SqliteStore {
  return new SqliteStore(openWhole(dataDir));
}

function openWhole(dataDir: string): OpenedDatabase {
  const { database } = storePaths(dataDir);
  if (!existsSync(database)) throw new StoreError('missing', `there is no store ${database}`);
  return openDatabase(dataDir, () => '', { pagesMs: Number.POSITIVE_INFINITY, monotonicMs: () => 0 });
}

function integrityFindings(database: DatabaseSync): readonly StoreFinding[] {
  return database
    .prepare('pragma integrity_check(100)')
    .all()
    .map((row) => String(Object.values(row)[0]))
    .filter((answer) => answer !== 'ok')
    .map((message) => ({ kind: 'damaged', message: `SQLite: ${message}` }));
}

/** The oldest events of a subject may have been removed; between those that are left there is no gap. */
function eventFindings(database: DatabaseSync): readonly StoreFinding[] {
  const rows = database
    .prepare(
      `select subject, count(*) as events, min(subject_seq) as first, max(subject_seq) as last from events
       group by subject having events <> last - first + 1 limit 100`,
    )
    .all();
  return rows.map(({ subject, events, first, last }) => ({
    kind: 'events',
    message: `${String(subject)} has ${Number(events)} events numbered ${Number(first)} to ${Number(last)}`,
  }));
}

async function readJobs(
  store: SqliteStore,
  database: DatabaseSync,
): Promise<{ readonly jobs: number; readonly unreadable: readonly StoreFinding[] }> {
  const unreadable: StoreFinding[] = [];
  let jobs = 0;
  for (const { id } of database.prepare('select id from jobs').iterate() as Iterable<{ id: string }>) {
    jobs += 1;
    try {
      await store.readJob(id as Parameters<typeof store.readJob>[0]);
    } catch (error) {
      unreadable.push({ kind: 'unreadable', message: `${id}: ${messageOf(error)}` });
    }
  }
  try {
    await store.load();
  } catch (error) {
    unreadable.push({
      kind: 'unreadable',
      message: `state that a coordinator loads at its start: ${messageOf(error)}`,
    });
  }
  return { jobs, unreadable };
}

async function readEvents(
  store: SqliteStore,
): Promise<{ readonly events: number; readonly unreadable: readonly StoreFinding[] }> {
  const unreadable: StoreFinding[] = [];
  let events = 0;
  for (let since = 0; ; ) {
    try {
      const read = await store.readEvents(since, rowsPerRead, null);
      const last = read.at(-1);
      if (last === undefined) return { events, unreadable };
      events += read.length;
      since = last.seq;
    } catch (error) {
      unreadable.push({ kind: 'unreadable', message: `events after ${since}: ${messageOf(error)}` });
      since += rowsPerRead;
    }
  }
}
