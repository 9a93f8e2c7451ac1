/**
 * What the store must be able to show, kept in a small file beside it. It is on disk before a commit is acknowledged, so a
 * store that shows less has lost something. Two slots are written in turn: one that was cut off by a crash leaves the
 * other, which is one commit older and asks for less.
 */
import { fdatasync, fdatasyncSync, readSync, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import { writeFileDurably } from '@muster/common/files';
import { recordBytes, recordIn, recordOf } from './record.ts';
import type { WalPosition } from './walFile.ts';

export interface Witness {
  /** Form of this record. */
  readonly version: 1;
  /** Grows by one with every record. */
  readonly serial: number;
  /** A program is at work on the store, or was killed while it was. */
  readonly isOpen: boolean;
  /** Where the write-ahead log ended after the last acknowledged commit. null: nothing was in it. */
  readonly wal: WalPosition | null;
  /** Up to there the log has been carried over into the database, and the page sums know of it. */
  readonly covered: WalPosition | null;
  /** Pages of the database that have sums. */
  readonly pages: number;
  /** Some of the pages that were carried over last: a database that is older than its sums differs in them. */
  readonly recentPages: readonly number[];
  /** Commits since the store was made. */
  readonly commits: number;
  /** Numbers of the newest event and the newest job that were acknowledged: what is missing can be told by them. */
  readonly lastEventSeq: number;
  readonly lastSubmitSeq: number;
  /** What was found to be damaged while the store was at work. null: nothing. */
  readonly damage: string | null;
}

/** Of a store whose database has all of it. */
export const firstWitness: Witness = {
  version: 1,
  serial: 1,
  isOpen: true,
  wal: null,
  covered: null,
  pages: 0,
  recentPages: [],
  commits: 0,
  lastEventSeq: 0,
  lastSubmitSeq: 0,
  damage: null,
};

const slots = 2;

/** Makes the file with its first record in it, or replaces the one that is there. */
export function createWitness(path: string, witness: Witness): void {
  writeFileDurably(path, recordOf(witness).toString().repeat(slots), 0o600);
}

/**
 * @param file descriptor
 * @returns the newest record; null: there is none that is whole
 */
export function readWitness(file: number): Witness | null {
  let newest: Witness | null = null;
  for (let slot = 0; slot < slots; slot += 1) {
    const bytes = Buffer.alloc(recordBytes);
    readSync(file, bytes, 0, recordBytes, slot * recordBytes);
    const witness = recordIn(bytes) as Witness | null;
    if (witness !== null && (newest === null || witness.serial > newest.serial)) newest = witness;
  }
  return newest;
}

const sync = promisify(fdatasync);

/** Keeps the file. Those who wait at the same time share one wait for the disk. */
export class WitnessFile {
  private readonly file: number;
  private current: Witness;
  private syncing: Promise<void> | null = null;
  /** The record that is on disk for certain, and the one that is on its way there. */
  private durable: Witness;

  /** @param file descriptor, open for writing; whoever opened it closes it */
  constructor(file: number, current: Witness) {
    this.file = file;
    this.current = current;
    this.durable = current;
  }

  get value(): Witness {
    return this.current;
  }

  /** In memory: what is written next says this too. */
  change(change: Partial<Omit<Witness, 'serial' | 'version'>>): void {
    this.current = { ...this.current, ...change, serial: this.current.serial + 1 };
  }

  /** Resolves once what is known now is on disk. */
  async write(): Promise<void> {
    const wanted = this.current.serial;
    while (this.durable.serial < wanted) {
      // One at a time: a slot is not written before the one before it is on disk.
      this.syncing ??= this.writeOnce().finally(() => {
        this.syncing = null;
      });
      await this.syncing;
    }
  }

  private async writeOnce(): Promise<void> {
    const { current } = this;
    this.put(current);
    await sync(this.file);
    this.durable = newerOf(this.durable, current);
  }

  /** The same without letting anything else happen meanwhile. */
  writeNow(): void {
    // What is on its way has to be there before the other slot is touched.
    if (this.syncing !== null) fdatasyncSync(this.file);
    const { current } = this;
    this.put(current);
    fdatasyncSync(this.file);
    this.durable = newerOf(this.durable, current);
  }

  private put(witness: Witness): void {
    const offset = (witness.serial % slots) * recordBytes;
    if (writeSync(this.file, recordOf(witness), 0, recordBytes, offset) !== recordBytes)
      throw new Error('a record of the witness was written in part');
  }
}

const newerOf = (a: Witness, b: Witness): Witness => (a.serial > b.serial ? a : b);
