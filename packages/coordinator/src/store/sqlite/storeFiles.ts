/** Keeps the witness and the page sums of an opened store in step with what SQLite writes. */
import { closeSync, fstatSync, ftruncateSync, openSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { messageOf } from '@muster/common/errors';
import { StoreError } from '../store.ts';
import { damaged, pagesText, type StorePaths } from './inspection.ts';
import { comparePages, comparePagesLater, sliceBytes, writePageSums } from './pageSums.ts';
import { readNextCommit, samePosition } from './walFile.ts';
import { type Witness, WitnessFile } from './witness.ts';

/** Frames of the log after which it is carried over into the database; SQLite's own default. */
const carryOverFrames = 1_000;
const recentPagesMax = 64;

export interface StoreFilesParts {
  readonly paths: StorePaths;
  readonly database: DatabaseSync;
  /** Open for as long as SQLite is: closing it drops the locks that the process has on that file. Written behind its end only. */
  readonly databaseFile: number;
  readonly witness: Witness;
  readonly pageBytes: number;
  /** Of pages that are in the log and not yet in the database. */
  readonly uncarried: ReadonlyMap<number, number>;
  readonly databasePages: number;
}

export class StoreFiles {
  readonly paths: StorePaths;
  readonly pageBytes: number;
  private readonly database: DatabaseSync;
  private readonly witness: WitnessFile;
  private readonly files: { readonly database: number; readonly witness: number; readonly sums: number };
  private walFile: number | null = null;
  private readonly compared = Buffer.allocUnsafe(sliceBytes);
  private readonly uncarried: Map<number, number>;
  private databasePages: number;
  /** While the database is copied, it must not change. */
  private holds = new Set<object>();
  /** True if the blocks of the log are kept for the next start. */
  keepsLog = false;
  private isClosed = false;
  /** Its salts are not on disk in the witness. */
  private isFreshLog = false;

  constructor({
    paths,
    database,
    databaseFile,
    witness,
    pageBytes,
    uncarried,
    databasePages,
  }: StoreFilesParts) {
    this.paths = paths;
    this.database = database;
    this.pageBytes = pageBytes;
    this.uncarried = new Map(uncarried);
    this.databasePages = databasePages;
    this.files = {
      database: databaseFile,
      witness: openSync(paths.witness, 'r+'),
      sums: openSync(paths.sums, 'r+'),
    };
    this.witness = new WitnessFile(this.files.witness, witness);
  }

  get known(): Witness {
    return this.witness.value;
  }

  /** It is being closed: what was held is held no more. */
  get closed(): boolean {
    return this.isClosed;
  }

  get databaseFile(): number {
    return this.files.database;
  }

  get sumsFile(): number {
    return this.files.sums;
  }

  get pageCount(): number {
    return this.databasePages;
  }

  /**
   * To be called after each commit of SQLite, before anything else is written.
   * @throws {StoreError} `io`; `damaged`: the commit has changed a page that was not as it was written
   */
  follow(newest: { readonly eventSeq?: number; readonly submitSeq?: number } = {}): void {
    const { value } = this.witness;
    this.walFile ??= openSync(this.paths.wal, 'r');
    const next = readNextCommit(this.walFile, value.wal);
    if (next === null) return;
    const isNewLog = value.wal !== null && value.wal.salts !== next.position.salts;
    if (isNewLog && !samePosition(value.wal, value.covered))
      throw new StoreError('io', `${this.paths.wal} was restarted before its page checksums were written`);
    this.requireWhole(next.sums.keys());
    for (const [page, sum] of next.sums) this.uncarried.set(page, sum);
    this.databasePages = next.databasePages ?? this.databasePages;
    this.isFreshLog ||= value.wal === null;
    this.witness.change({
      wal: next.position,
      commits: value.commits + 1,
      lastEventSeq: Math.max(value.lastEventSeq, newest.eventSeq ?? 0),
      lastSubmitSeq: Math.max(value.lastSubmitSeq, newest.submitSeq ?? 0),
    });
  }

  /**
   * SQLite has built new versions of these pages from those in the database. Damage that it took over would have a valid sum
   * from here on, and never be seen again. The versions in the log were made by this program since it compared them.
   */
  private requireWhole(pages: Iterable<number>): void {
    const wrong = [...pages].filter((page) => this.isAltered(page));
    if (wrong.length === 0) return;
    const damage = pagesText(wrong);
    this.recordDamage(damage);
    throw damaged(this.paths, damage);
  }

  /** Whether the database has another page than was written there. What the log has in its place is not looked at. */
  private isAltered(page: number): boolean {
    if (page > this.witness.value.pages || this.uncarried.has(page)) return false;
    return comparePages({ ...this.files, pageBytes: this.pageBytes }, page, page).differing.length > 0;
  }

  /** When this returns, everything that was followed may be acknowledged. @throws {StoreError} `io` */
  acknowledge(): void {
    try {
      // After a power cut, a fresh log that is not noted on disk could not be distinguished from one that somebody put there.
      if (this.isFreshLog) this.witness.writeNow();
      else this.witness.note();
      this.isFreshLog = false;
    } catch (error) {
      throw witnessFailed(error);
    }
    const { wal, covered } = this.witness.value;
    const done = covered !== null && covered.salts === wal?.salts ? covered.frames : 0;
    if (wal !== null && wal.frames - done >= carryOverFrames) this.carryOver();
  }

  /** The same, and on disk. */
  acknowledgeNow(): void {
    try {
      this.witness.writeNow();
    } catch (error) {
      throw witnessFailed(error);
    }
  }

  /**
   * Carries the log over into the database. On a full disk it stays in the log: another time will do.
   * @returns whether the log holds nothing any longer that the database does not
   */
  carryOver(): boolean {
    if (this.holds.size > 0) return false;
    if (this.uncarried.size === 0 && samePosition(this.witness.value.wal, this.witness.value.covered))
      return true;
    try {
      writePageSums(this.files.sums, this.uncarried);
      const pages = [...this.uncarried.keys()];
      const every = Math.max(1, Math.ceil(pages.length / recentPagesMax));
      this.witness.change({
        covered: this.witness.value.wal,
        pages: this.databasePages,
        recentPages:
          pages.length === 0
            ? this.witness.value.recentPages
            : pages.filter((_, index) => index % every === 0),
      });
      this.witness.writeNow();
      const { busy, log, checkpointed } = this.database.prepare('pragma wal_checkpoint(passive)').get() ?? {};
      if (busy !== 0 || log !== checkpointed) return false;
      this.uncarried.clear();
      return true;
    } catch (error) {
      if (isDiskFull(error)) return false;
      throw new StoreError('io', `the log could not be carried over: ${messageOf(error)}`, { cause: error });
    }
  }

  /** The database does not change and the log only grows until `letGo` runs, or until the log has no room on a full disk. */
  hold(): { readonly isHeld: () => boolean; readonly letGo: () => void } {
    const hold = {};
    this.holds.add(hold);
    return { isHeld: () => this.holds.has(hold), letGo: () => void this.holds.delete(hold) };
  }

  /**
   * Carries the log over even while a backup is copied, which then fails: on a full disk commits are worth more.
   * @returns whether a commit may be tried again
   */
  makeRoomInLog(): boolean {
    this.holds.clear();
    return this.uncarried.size > 0 && this.carryOver();
  }

  /**
   * Compares a stretch of pages with their sums, beside other work; one stretch at a time.
   * @param first from 1
   * @returns what is damaged, and the page to continue with; null: the end was reached
   */
  async compare(first: number): Promise<{ readonly damage: string | null; readonly next: number | null }> {
    const files = { ...this.files, pageBytes: this.pageBytes };
    const last = this.witness.value.pages;
    if (first > last) return { damage: null, next: null };
    const { differing, next } = await comparePagesLater(files, first, last, this.compared);
    // It may have been carried over while it was read. Nothing can be while it is read again.
    const wrong = differing.filter((page) => this.isAltered(page));
    return { damage: wrong.length === 0 ? null : pagesText(wrong), next: next > last ? null : next };
  }

  /** The next start will refuse the store for it. */
  recordDamage(damage: string): void {
    this.witness.change({ damage });
    this.acknowledgeNow();
  }

  /** Before SQLite closes, which would carry the log over without sums. */
  prepareClose(): void {
    this.isClosed = true;
    this.holds.clear();
    if (this.carryOver()) {
      trimDatabase(this.files.database, this.witness.value.pages * this.pageBytes);
      this.witness.change({ isOpen: false });
      this.acknowledgeNow();
    }
  }

  /** After SQLite has closed. */
  close(): void {
    this.witness.close();
    for (const file of [...Object.values(this.files), ...(this.walFile === null ? [] : [this.walFile])])
      closeSync(file);
  }
}

/**
 * Takes away the space for later pages behind the end of the database. Without a log, SQLite takes the length of the file for the size
 * of the database, and the pages of that space have no sums.
 */
function trimDatabase(file: number, bytes: number): void {
  if (fstatSync(file).size > bytes) ftruncateSync(file, bytes);
}

function witnessFailed(error: unknown): StoreError {
  return new StoreError('io', `what was committed could not be witnessed: ${messageOf(error)}`, {
    cause: error,
  });
}

/** True if the disk, or the quota of the user, has no room. */
export function isDiskFull(error: unknown): boolean {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  return code === 'ENOSPC' || code === 'EDQUOT' || (typeof errcode === 'number' && (errcode & 0xff) === 13);
}
