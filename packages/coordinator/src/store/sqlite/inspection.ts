/**
 * Looks at the files of a store before SQLite does. SQLite would take a damaged log for a short one, carry what is left of
 * it over into the database, and delete it: what was lost could then neither be reported nor be examined.
 */
import { closeSync, existsSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { refuseUnknownSchema } from '../schema.ts';
import { StoreError } from '../store.ts';
import { comparePages, type PageFiles } from './pageSums.ts';
import { type CommittedWal, readCommittedWal, samePosition, type WalPosition } from './walFile.ts';
import { readWitness, type Witness } from './witness.ts';

export interface StorePaths {
  readonly dataDir: string;
  readonly database: string;
  readonly wal: string;
  /** Blocks of the log while no coordinator runs: see `keptLog.ts`. */
  readonly keptLog: string;
  readonly witness: string;
  readonly sums: string;
  readonly lock: string;
  /** Written once: shows that there is a store here, and of which cluster. */
  readonly marker: string;
}

/** Of directories in the data directory that keep the files which `restore` and `store accept` replaced. */
export const keptNamePrefix = 'replaced-';

/** What stores had that were replaced here: see `restoreStore.ts`. */
export const restoredName = 'muster.restored';

export function storePaths(dataDir: string): StorePaths {
  return {
    dataDir,
    database: join(dataDir, 'muster.db'),
    wal: join(dataDir, 'muster.db-wal'),
    keptLog: join(dataDir, 'muster.db-space'),
    witness: join(dataDir, 'muster.witness'),
    sums: join(dataDir, 'muster.sums'),
    lock: join(dataDir, 'muster.lock'),
    marker: join(dataDir, 'cluster.json'),
  };
}

export type Inspection =
  | { readonly kind: 'none' }
  /** Cut off while it was made. */
  | { readonly kind: 'empty' }
  | {
      readonly kind: 'whole';
      readonly schema: number;
      readonly witness: Witness;
      /** What is committed and not yet carried over. */
      readonly wal: CommittedWal | null;
      readonly pageBytes: number;
      /** The first page that there was no time to look at. null: all were. */
      readonly nextPage: number | null;
    };

/** Commits of a fresh log that a killed program can have made before its witness knew: one at a time. */
const unnotedMax = 1;

export interface InspectionLimits {
  /** How long pages are looked at; at least one megabyte is. Infinity: until all were. */
  readonly pagesMs: number;
  readonly monotonicMs: () => number;
}

/** @throws {StoreError} `missing`, `behind`, `damaged`, `unknown_schema` */
export function inspectStore(paths: StorePaths, limits: InspectionLimits): Inspection {
  if (!existsSync(paths.database)) {
    refuseRemains(paths);
    return { kind: 'none' };
  }
  const files = new OpenedFiles();
  try {
    return inspectFiles(paths, files, limits);
  } finally {
    files.close();
  }
}

/** What else is in a data directory with a past, in the order of its making. A database that is not there was removed. */
function refuseRemains({ dataDir, database }: StorePaths): void {
  const names = new Set(readdirSync(dataDir));
  const remains = [
    'muster.db-wal',
    'muster.witness',
    'cluster.json',
    'admin.token',
    'logs',
    'tls',
    'connection.json',
    'restoring',
  ];
  const found = remains.find((name) => names.has(name));
  if (found === undefined) return;
  throw new StoreError(
    'missing',
    `${dataDir} has been used before (${found} is there), but its store ${database} is gone. Restore it from a backup ` +
      `(muster restore FILE --data ${dataDir}), or use another data directory for a new cluster.`,
  );
}

function inspectFiles(paths: StorePaths, files: OpenedFiles, limits: InspectionLimits): Inspection {
  const database = files.open(paths.database);
  const walFile = existsSync(paths.wal) ? files.open(paths.wal) : null;
  const wal = walFile === null ? null : readCommittedWal(walFile);
  const header = wal?.firstPage ?? readHeaderOf(database);
  const schema = pageBytesIn(header) === null ? 0 : header.readUInt32BE(60);
  const isWitnessed = existsSync(paths.witness);
  const witness = isWitnessed ? readWitness(files.open(paths.witness)) : null;
  const pageBytes = pageBytesIn(readHeaderOf(database));
  const sums = existsSync(paths.sums) ? files.open(paths.sums) : null;
  // Before anything else: a newer version may keep its witness and its sums in a form that is not known here.
  refuseUnknownSchema(paths.database, schema);
  if (!isWitnessed) {
    if (schema === 0) return { kind: 'empty' };
    throw damaged(paths, `${paths.witness} is missing, which records what was acknowledged`);
  }
  if (witness === null) throw damaged(paths, `${paths.witness} cannot be read`);
  if (witness.damage !== null) throw damaged(paths, witness.damage);
  if (sums === null) throw damaged(paths, `${paths.sums} is missing, which holds the checksums of its pages`);
  refuseLostCommits(paths, witness, wal);
  if (pageBytes === null) throw damaged(paths, 'the header of the database cannot be read');
  const pageFiles = { database, sums, pageBytes };
  const nextPage = comparePagesInTime(paths, pageFiles, { witness, wal }, limits);
  return { kind: 'whole', schema, witness, wal, pageBytes, nextPage };
}

/** @throws {StoreError} `behind`: something that was acknowledged is not there; `damaged`: something else is */
function refuseLostCommits(paths: StorePaths, witness: Witness, wal: CommittedWal | null): void {
  if (witness.wal !== null && wal?.position.salts === witness.wal.salts) {
    if (wal.commits.some((each) => samePosition(each, witness.wal))) return;
    throw behind(paths, 'the write-ahead log ends before the last acknowledged commit', witness);
  }
  if (!samePosition(witness.wal, witness.covered)) {
    const what =
      wal === null
        ? 'the write-ahead log with the last acknowledged commits is gone or unreadable'
        : 'the write-ahead log does not belong to the last acknowledged commits';
    throw behind(paths, what, witness);
  }
  if (wal === null) return;
  // All that was acknowledged is in the database. A log that was begun after that may be there: what the witness had not
  // noted when the power failed. SQLite counts its salt up; where it had none to count up from, the witness was given the
  // first commit at once. Any other log would take the database back.
  const isNext =
    witness.wal === null ? wal.commits.length <= unnotedMax : saltOf(wal.position) === saltAfter(witness.wal);
  if (witness.isOpen && isNext) return;
  throw damaged(paths, `${paths.wal} does not belong to the last run of this store`);
}

function saltOf({ salts }: WalPosition): number {
  return Number.parseInt(salts.slice(0, 8), 16);
}

function saltAfter(position: WalPosition): number {
  return (saltOf(position) + 1) >>> 0;
}

/** @returns the first page that was not looked at */
function comparePagesInTime(
  paths: StorePaths,
  files: PageFiles,
  { witness, wal }: { readonly witness: Witness; readonly wal: CommittedWal | null },
  { pagesMs, monotonicMs }: InspectionLimits,
): number | null {
  const last = Math.min(witness.pages, wal?.databasePages ?? witness.pages);
  for (const page of witness.recentPages)
    if (page <= last) refuseDamagedPages(paths, files, { wal, first: page, last: page });
  const startedMs = monotonicMs();
  for (let first = 1; first <= last; ) {
    first = refuseDamagedPages(paths, files, { wal, first, last });
    if (monotonicMs() - startedMs >= pagesMs && first <= last) return first;
  }
  return null;
}

/** @returns the page to continue with */
function refuseDamagedPages(
  paths: StorePaths,
  files: PageFiles,
  { wal, first, last }: { readonly wal: CommittedWal | null; readonly first: number; readonly last: number },
): number {
  const { differing, next } = comparePages(files, first, last);
  // What is in the log as well is read from there.
  const wrong = differing.filter((page) => wal?.sums.has(page) !== true);
  if (wrong.length > 0) throw damaged(paths, pagesText(wrong));
  return next;
}

export function pagesText(pages: readonly number[]): string {
  const named = pages.slice(0, 8).join(', ');
  const more = pages.length > 8 ? ` and ${pages.length - 8} more` : '';
  return pages.length === 1
    ? `page ${named} of the database was altered`
    : `pages ${named}${more} of the database were altered`;
}

const remedy = (dataDir: string) =>
  `Examine it with \`muster store check --data ${dataDir}\`; then restore a backup (muster restore FILE --force ` +
  `--data ${dataDir}), or continue with what is left (muster store accept --data ${dataDir}).`;

export function damaged({ dataDir, database }: StorePaths, what: string): StoreError {
  return new StoreError('damaged', `the store ${database} is damaged: ${what}. ${remedy(dataDir)}`);
}

function behind({ dataDir, database }: StorePaths, what: string, witness: Witness): StoreError {
  return new StoreError(
    'behind',
    `the store ${database} has lost acknowledged commits: ${what} (there were ${witness.commits}, up to event ` +
      `${witness.lastEventSeq}). ${remedy(dataDir)}`,
  );
}

function readHeaderOf(file: number): Buffer {
  const header = Buffer.alloc(100);
  return header.subarray(0, readSync(file, header, 0, header.length, 0));
}

/** @returns null: this is no SQLite database */
export function pageBytesIn(header: Buffer): number | null {
  if (header.length < 100 || header.toString('latin1', 0, 16) !== 'SQLite format 3\0') return null;
  const bytes = header.readUInt16BE(16);
  return bytes === 1 ? 65_536 : bytes;
}

class OpenedFiles {
  private readonly files: number[] = [];

  open(path: string): number {
    const file = openSync(path, 'r');
    this.files.push(file);
    return file;
  }

  close(): void {
    for (const file of this.files) closeSync(file);
  }
}
