/**
 * What the store must be able to show, kept in a small file beside it. Each commit is noted there before it is acknowledged,
 * so a store that shows less has lost something.
 *
 * The note itself is not waited for: however this program ends, the kernel still writes it. Within a second it is on disk
 * as well, in one of two slots that are written in turn. So a power cut can leave a witness that is a second older than the
 * store, or a note that was cut off; both ask for less than there is, and never for more. Waiting for each note would make
 * every commit cost twice as much (docs/decisions/store-integrity.md).
 */
import { fdatasync, fdatasyncSync, readSync, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';
import { messageOf } from '@muster/common/errors';
import { writeFileDurably } from '@muster/common/files';
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
  /** Numbers of the newest event and the newest job that were acknowledged: what is missing is known by them. */
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

/** Of these, the first two are on disk when that is claimed; the last one holds the newest note. */
const slots = 3;
/** From a note until it is on disk, by our own doing. */
const syncAfterMs = 1_000;

/** Makes the file with its first record in it, or replaces the one that is there. */
export function createWitness(path: string, witness: Witness): void {
  writeFileDurably(path, recordOf(witness).toString().repeat(slots), 0o600);
}

/**
 * @param file descriptor
 * @returns the newest intact record; null: there is none
 */
export function readWitness(file: number): Witness | null {
  let newest: Witness | null = null;
  for (let slot = 0; slot < slots; slot += 1) {
    const witness = readSlot(file, slot);
    if (witness !== null && (newest === null || witness.serial > newest.serial)) newest = witness;
  }
  return newest;
}

function readSlot(file: number, slot: number): Witness | null {
  const bytes = Buffer.alloc(recordBytes);
  readSync(file, bytes, 0, recordBytes, slot * recordBytes);
  return recordIn(bytes) as Witness | null;
}

const sync = promisify(fdatasync);

/** Keeps the file. */
export class WitnessFile {
  private readonly file: number;
  private current: Witness;
  private timer: NodeJS.Timeout | null = null;
  private syncing: Promise<void> | null = null;
  private failure: Error | null = null;
  /** Of the two that are synced, the one that may be lost: the other one is newer. */
  private olderSlot: number;

  /** @param file descriptor, open for writing; its opener closes it */
  constructor(file: number, current: Witness) {
    this.file = file;
    this.current = current;
    this.olderSlot = (readSlot(file, 0)?.serial ?? 0) <= (readSlot(file, 1)?.serial ?? 0) ? 0 : 1;
  }

  get value(): Witness {
    return this.current;
  }

  /** In memory: the next record that is written contains it. */
  change(change: Partial<Omit<Witness, 'serial' | 'version'>>): void {
    this.current = { ...this.current, ...change, serial: this.current.serial + 1 };
  }

  /** What is known now outlives this process when this returns, and a power cut a second later. */
  note(): void {
    if (this.failure !== null) throw this.failure;
    this.put(this.current, slots - 1);
    this.timer ??= setTimeout(() => this.syncLater(), syncAfterMs).unref();
  }

  /** On disk when this returns. */
  writeNow(): void {
    // The slot that was written last must be on disk before the other one is overwritten.
    if (this.syncing !== null) fdatasyncSync(this.file);
    this.put(this.current, this.olderSlot);
    fdatasyncSync(this.file);
    this.olderSlot = 1 - this.olderSlot;
  }

  /** Nothing is written any longer when this returns. */
  close(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  private syncLater(): void {
    // One at a time: the other slot is written only when the disk has this one.
    if (this.syncing !== null) {
      this.timer = setTimeout(() => this.syncLater(), syncAfterMs).unref();
      return;
    }
    this.timer = null;
    try {
      this.put(this.current, this.olderSlot);
      this.olderSlot = 1 - this.olderSlot;
    } catch (error) {
      this.failure = failureOf(error);
      return;
    }
    this.syncing = sync(this.file)
      .catch((error: unknown) => {
        this.failure = failureOf(error);
      })
      .finally(() => {
        this.syncing = null;
      });
  }

  private put(witness: Witness, slot: number): void {
    const offset = slot * recordBytes;
    if (writeSync(this.file, recordOf(witness), 0, recordBytes, offset) !== recordBytes)
      throw new Error('a record of the witness was written in part');
  }
}

function failureOf(error: unknown): Error {
  return new Error(`the witness could not be synced: ${messageOf(error)}`, { cause: error });
}

/** A page of memory and of most disks: a block that is written never touches the one beside it. */
export const recordBytes = 4_096;

export function recordOf(value: unknown): Buffer {
  const body = JSON.stringify(value);
  const text = Buffer.from(`${crc32(body).toString(16).padStart(8, '0')} ${body}\n`);
  if (text.length > recordBytes) throw new Error(`a record of ${text.length} bytes is too long`);
  return Buffer.concat([text, Buffer.alloc(recordBytes - text.length, ' ')]);
}

/** @returns null: it does not contain an intact record */
export function recordIn(block: Buffer): unknown {
  const body = block.toString('utf8', 9).trimEnd();
  if (body === '' || block.toString('latin1', 0, 8) !== crc32(body).toString(16).padStart(8, '0'))
    return null;
  return JSON.parse(body);
}
