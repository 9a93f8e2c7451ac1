/**
 * Space on the disk that belongs to the store alone. A file that is removed when the disk is full frees blocks for every program on
 * that disk, and a program that writes in a loop takes them first. Blocks that the store's own files hold cannot be taken:
 * - The write-ahead log has its full length from the start. SQLite writes it again from its beginning and never shortens it.
 * - The database and the page sums are longer than what they contain, by a megabyte of zeros that the next rows overwrite.
 * - Filler rows in the table `own_space` hold a megabyte each. On a full disk one is deleted, and new rows get its pages.
 * A commit starts only if the pages that it may need are there. So the log can always be carried over, and is free again.
 *
 * File systems that never overwrite a block (btrfs, ZFS) take new blocks anyway; there, only a disk or a quota of its own
 * protects the store (docs/operations.md).
 */
import { closeSync, fstatSync, openSync, writeSync } from 'node:fs';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { StoreError } from '../store.ts';
import { logBytes } from './keptLog.ts';
import { isDiskFull, type StoreFiles } from './storeFiles.ts';

const mebibyte = 1024 * 1024;
const zeros = Buffer.alloc(mebibyte);

/** Size of a filler row with what SQLite adds, bytes. */
export const fillerBytes = mebibyte;

/**
 * Pages that must be ready before a commit starts: a turn of the loop changes 200 rows and writes as many events. With fewer, commits
 * are refused, and the rest is for the next start of the coordinator, which stores its term.
 */
const pagesPerCommit = 256;

export interface OwnSpaceParts {
  readonly database: DatabaseSync;
  readonly files: StoreFiles;
  /** Commits what `write` does, without looking at this space. @throws {StoreError} */
  readonly commit: (write: () => void) => void;
  /** Number of filler rows to hold. */
  readonly fillers: number;
}

export class OwnSpace {
  private readonly parts: OwnSpaceParts;
  private readonly freePagesOf: StatementSync;
  /** Numbers of the filler rows that are there. */
  private readonly fillers: Set<number>;

  constructor(parts: OwnSpaceParts) {
    this.parts = parts;
    const { database } = parts;
    this.freePagesOf = database.prepare('pragma freelist_count');
    const found = database.prepare('select number from own_space').all();
    this.fillers = new Set(found.map(({ number }) => Number(number)));
    this.extendLog();
    this.extendDatabase(pagesPerCommit);
  }

  /** Bytes that commits can still take when the disk is full. */
  get heldBytes(): number {
    return this.fillers.size * fillerBytes;
  }

  /** Bytes held when nothing has been taken from this space. */
  get fullBytes(): number {
    return this.parts.fillers * fillerBytes;
  }

  get isWhole(): boolean {
    return this.fillers.size >= this.parts.fillers;
  }

  /**
   * Makes sure that the next commit finds its pages. On a full disk it deletes filler rows for them.
   * @throws {StoreError} `full` when nothing is left
   */
  prepareCommit(): void {
    if (!this.isSizeKnown()) return;
    if (this.readyPages() >= pagesPerCommit) return;
    this.extendDatabase(pagesPerCommit);
    for (const filler of this.fillers) {
      if (this.readyPages() >= pagesPerCommit) return;
      this.parts.commit(() => this.deleteFiller(filler));
      this.fillers.delete(filler);
    }
    if (this.readyPages() < pagesPerCommit) throw this.usedUp();
  }

  /** Gets blocks for the pages that a commit has added, before another program takes them. */
  afterCommit(): void {
    if (this.aheadPages() < pagesPerCommit / 2) this.extendDatabase(pagesPerCommit);
  }

  /**
   * Adds one filler row, unless all are there or the disk has no room for it.
   * @throws {StoreError}
   */
  addFiller(): void {
    if (this.isWhole) return;
    this.extendLog();
    const pages = 2 * Math.ceil(fillerBytes / this.parts.files.pageBytes);
    if (!this.extendDatabase(pages)) return;
    let number = 0;
    while (this.fillers.has(number)) number += 1;
    const insert = this.parts.database.prepare('insert into own_space values (?, zeroblob(?))');
    this.parts.commit(() => insert.run(number, fillerBytes));
    this.fillers.add(number);
  }

  /** The error of a commit for which there is no space. */
  usedUp(cause?: unknown): StoreError {
    const { dataDir } = this.parts.files.paths;
    return new StoreError(
      'full',
      `the disk of ${dataDir} is full, and the ${this.fullBytes} bytes that the store keeps there for itself are used up: free ` +
        `at least ${this.fullBytes} bytes; no restart is needed`,
      { cause },
    );
  }

  private deleteFiller(number: number): void {
    this.parts.database.prepare('delete from own_space where number = ?').run(number);
  }

  /** Pages that have blocks on the disk and no content. */
  private readyPages(): number {
    const { freelist_count } = this.freePagesOf.get() ?? {};
    return Number(freelist_count) + this.aheadPages();
  }

  /** Pages behind the end of the database, in its file. Negative while a large commit is only in the log. */
  private aheadPages(): number {
    const { databaseFile, pageBytes, pageCount } = this.parts.files;
    return Math.floor(fstatSync(databaseFile).size / pageBytes) - pageCount;
  }

  /**
   * True once the log has a commit. Before that, SQLite takes the length of the file for the size of the database, and the pages of this
   * space would become a part of it that has no sums.
   */
  private isSizeKnown(): boolean {
    return this.parts.files.known.wal !== null;
  }

  /** @returns whether there are as many pages behind the end of the database now */
  private extendDatabase(pages: number): boolean {
    if (!this.isSizeKnown()) return false;
    const { databaseFile, sumsFile, pageBytes, pageCount } = this.parts.files;
    const until = pageCount + pages;
    // A block of the sums is enough for a thousand pages.
    const sums = Math.ceil((until * 4) / pageBytes) * pageBytes;
    return extend(sumsFile, sums) && extend(databaseFile, until * pageBytes);
  }

  private extendLog(): void {
    const file = openSync(this.parts.files.paths.wal, 'r+');
    try {
      extend(file, logBytes);
    } finally {
      closeSync(file);
    }
  }
}

/**
 * Writes zeros behind the end of a file. A file that is only made longer would have a hole there, and no blocks.
 * @returns false when the disk is full
 */
function extend(file: number, until: number): boolean {
  let { size } = fstatSync(file);
  try {
    while (size < until) size += writeSync(file, zeros, 0, Math.min(zeros.length, until - size), size);
    return true;
  } catch (error) {
    if (isDiskFull(error)) return false;
    throw error;
  }
}
