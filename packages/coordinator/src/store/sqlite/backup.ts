/**
 * A backup is one file: the pages of the database, their sums, the key files, and a record of what it is. It is taken while the
 * store is at work: the database file changes only when the log is carried over, and that waits until the copy is made. So the
 * copy is the store as it was when the copying began, and every page of it is compared with its sum on the way.
 */
import { closeSync, createReadStream, fstatSync, openSync, read, readSync } from 'node:fs';
import { promisify } from 'node:util';
import { refuseUnknownSchema, schemaVersion } from '../schema.ts';
import { StoreError } from '../store.ts';
import { type Attached, type AttachedFile, attachedOf, isAttachedName } from './attached.ts';
import { pagesText } from './inspection.ts';
import { comparePages, sumBytes } from './pageSums.ts';
import type { StoreFiles } from './storeFiles.ts';
import { recordBytes, recordIn, recordOf } from './witness.ts';

const format = 'muster-backup-2';

export interface BackupAbout {
  readonly format: typeof format;
  readonly clusterId: string;
  /** Version of the stored form. */
  readonly schema: number;
  readonly pages: number;
  readonly pageBytes: number;
  /** Since the store was made. */
  readonly commits: number;
  readonly lastEventSeq: number;
  readonly lastSubmitSeq: number;
  /** Wall clock. */
  readonly takenAtMs: number;
  /** Key files and settings; empty where it was taken without. */
  readonly files: readonly Attached[];
}

const pagesPerPiece = 64;
/** The reader of the pieces has so long for each: the log grows meanwhile, and would fill the disk for one that was stopped. */
export const pieceTakenMs = 60_000;
const readLater = promisify(read);

interface BackupParts extends Pick<BackupAbout, 'clusterId' | 'takenAtMs'> {
  /** Read at the moment whose state is copied. */
  readonly readFiles: () => readonly AttachedFile[];
}

/**
 * The content of a backup, in pieces of a quarter of a megabyte. Nothing waits for their reader; the log grows until
 * the last one was taken.
 * @throws {StoreError} `damaged`: a page is not as it was written; `full`: the disk leaves no room to begin; `io`: a piece was not
 *   taken in time, or the store was closed
 */
export async function* backupPieces(
  files: StoreFiles,
  { clusterId, takenAtMs, readFiles }: BackupParts,
): AsyncGenerator<Buffer> {
  if (!files.carryOver()) {
    throw new StoreError(
      'full',
      'the log could not be carried over: the disk is full, or another backup is being taken',
    );
  }
  const { isHeld, letGo } = files.hold();
  let isLate = false;
  const late = setTimeout(() => {
    isLate = true;
    letGo();
  }, pieceTakenMs).unref();
  /** The copy is of one moment as long as nothing was carried over since it was begun. */
  const requireHeld = () => {
    if (files.closed) throw new StoreError('io', 'the store was closed before the backup was complete');
    if (isLate)
      throw new StoreError('io', `a part of the backup was not taken within ${pieceTakenMs / 1_000} s`);
    if (!isHeld())
      throw new StoreError('full', 'the disk is full: the backup was given up, so that commits continue');
    late.refresh();
  };
  try {
    const { pages, commits, lastEventSeq, lastSubmitSeq } = files.known;
    const attached = readFiles();
    const { pageBytes, databaseFile, sumsFile } = files;
    for (let first = 1; first <= pages; first += pagesPerPiece) {
      const last = Math.min(pages, first + pagesPerPiece - 1);
      const piece = Buffer.allocUnsafe((last - first + 1) * pageBytes);
      await readLater(databaseFile, piece, 0, piece.length, (first - 1) * pageBytes);
      requireHeld();
      const { differing } = comparePages({ database: databaseFile, sums: sumsFile, pageBytes }, first, last);
      if (differing.length > 0) throw new StoreError('damaged', pagesText(differing));
      yield piece;
    }
    requireHeld();
    const sums = Buffer.alloc(pages * sumBytes);
    readSync(sumsFile, sums, 0, sums.length, 0);
    yield sums;
    for (const { content } of attached) yield content;
    yield recordOf({
      format,
      clusterId,
      schema: schemaVersion,
      pages,
      pageBytes,
      commits,
      lastEventSeq,
      lastSubmitSeq,
      takenAtMs,
      files: attached.map(attachedOf),
    } satisfies BackupAbout);
  } finally {
    clearTimeout(late);
    letGo();
  }
}

export interface OpenedBackup {
  readonly about: BackupAbout;
  /** The database in it, from its first byte on. */
  pages(): AsyncIterable<Buffer>;
  readonly sums: Buffer;
  readonly files: readonly AttachedFile[];
  close(): void;
}

/**
 * Opens a backup and compares all of it with its sums.
 * @throws {StoreError} `damaged`: it is none, or not whole; `unknown_schema`
 */
export function openBackup(path: string): OpenedBackup {
  const file = openSync(path, 'r');
  try {
    const about = aboutOf(file, path);
    const { pages, pageBytes } = about;
    const sumsOffset = pages * pageBytes;
    for (let first = 1; first <= pages; ) {
      const { differing, next } = comparePages(
        { database: file, sums: file, sumsOffset, pageBytes },
        first,
        pages,
      );
      if (differing.length > 0) throw damagedBackup(path, pagesText(differing));
      first = next;
    }
    const sums = Buffer.alloc(pages * sumBytes);
    readSync(file, sums, 0, sums.length, sumsOffset);
    return {
      about,
      sums,
      files: attachedIn(file, path, about),
      pages: () => createReadStream(path, { end: sumsOffset - 1, highWaterMark: 1024 * 1024 }),
      close: () => closeSync(file),
    };
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

function attachedIn(file: number, path: string, about: BackupAbout): readonly AttachedFile[] {
  let offset = databaseBytes(about);
  return about.files.map((each) => {
    const { name, bytes, sha256 } = each;
    const content = Buffer.alloc(bytes);
    readSync(file, content, 0, bytes, offset);
    offset += bytes;
    if (!isAttachedName(name) || attachedOf({ name, content }).sha256 !== sha256)
      throw damagedBackup(path, `${name} in it was altered`);
    return { name, content };
  });
}

/** With their sums. */
function databaseBytes({ pages, pageBytes }: BackupAbout): number {
  return pages * (pageBytes + sumBytes);
}

function aboutOf(file: number, path: string): BackupAbout {
  const { size } = fstatSync(file);
  const block = Buffer.alloc(recordBytes);
  if (size > recordBytes) readSync(file, block, 0, recordBytes, size - recordBytes);
  const about = recordIn(block) as BackupAbout | null;
  if (typeof about?.format !== 'string')
    throw damagedBackup(path, 'it does not end with the record of a backup; it may be truncated');
  const form: string = about.format;
  if (form !== format)
    throw new StoreError(
      'unknown_schema',
      `${path} has the form ${form}, and this version reads ${format}: restore it with the version that wrote it`,
    );
  const filesBytes = about.files.reduce((sum, { bytes }) => sum + bytes, 0);
  if (size !== databaseBytes(about) + filesBytes + recordBytes)
    throw damagedBackup(path, `it has ${size} bytes, which is not the size in its record`);
  refuseUnknownSchema(path, about.schema);
  return about;
}

function damagedBackup(path: string, what: string): StoreError {
  return new StoreError('damaged', `${path} is not a complete backup of Muster: ${what}`);
}
