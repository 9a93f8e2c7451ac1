/**
 * SQLite's write-ahead log, read from outside (https://www.sqlite.org/fileformat2.html#walformat). Every frame carries a
 * checksum over all frames before it, so that a position in the log, with its checksum, names everything that was
 * committed up to there. SQLite itself ends at the first frame that does not fit and takes that for the end of the log.
 */
import { readSync } from 'node:fs';
import { crc32 } from 'node:zlib';

/** A place after a commit. */
export interface WalPosition {
  /** Both salts, hexadecimal: they differ each time that the log restarts. */
  readonly salts: string;
  readonly frames: number;
  /** Checksum of the last frame, hexadecimal. */
  readonly sum: string;
}

/** Of the newest version of each page in a stretch of the log. */
export interface WalPages {
  /** CRC-32 by page number. */
  readonly sums: ReadonlyMap<number, number>;
  /** Size of the database after the last commit. null: there was none. */
  readonly databasePages: number | null;
}

export interface CommittedWal extends WalPages {
  /** After the last commit. */
  readonly position: WalPosition;
  /** After each commit. */
  readonly commits: readonly WalPosition[];
  /** The first page as it was committed last; null: it is not in the log. */
  readonly firstPage: Buffer | null;
}

const headerBytes = 32;
const frameHeaderBytes = 24;
const magicBigEndian = 0x377f0683;
const magicLittleEndian = 0x377f0682;
const chunkBytes = 1024 * 1024;
/** A usual commit; what lies behind it in the file is of an earlier run of the log, and nobody's concern. */
const firstFrames = 16;
/** Read into again and again: a commit is followed in microseconds, and a megabyte of fresh memory costs more than that. */
const chunk = Buffer.allocUnsafe(chunkBytes);

export const samePosition = (a: WalPosition | null, b: WalPosition | null): boolean =>
  a === b || (a !== null && b !== null && a.salts === b.salts && a.frames === b.frames && a.sum === b.sum);

/**
 * Everything that SQLite will find committed in the log.
 * @param file descriptor of the log
 * @returns null: nothing; the log is empty, or SQLite does not take it for one
 */
export function readCommittedWal(file: number): CommittedWal | null {
  const header = readHeader(file);
  if (header === null) return null;
  let sums = wordSums(header.bytes.subarray(0, 24), header.isBigEndian, [0, 0]);
  if (sums[0] !== header.bytes.readUInt32BE(24) || sums[1] !== header.bytes.readUInt32BE(28)) return null;
  const commits: WalPosition[] = [];
  const pages = new Map<number, number>();
  const pending = new Map<number, number>();
  let databasePages: number | null = null;
  let firstPage: Buffer | null = null;
  let pendingFirstPage: Buffer | null = null;
  for (const frame of framesFrom(file, header, 0)) {
    sums = wordSums(frame.header.subarray(0, 8), header.isBigEndian, sums);
    sums = wordSums(frame.page, header.isBigEndian, sums);
    if (sums[0] !== frame.header.readUInt32BE(16) || sums[1] !== frame.header.readUInt32BE(20)) break;
    pending.set(frame.pageNumber, crc32(frame.page));
    if (frame.pageNumber === 1) pendingFirstPage = Buffer.from(frame.page);
    if (frame.databasePages === 0) continue;
    for (const [page, sum] of pending) pages.set(page, sum);
    pending.clear();
    firstPage = pendingFirstPage ?? firstPage;
    databasePages = frame.databasePages;
    commits.push(positionAfter(header, frame));
  }
  const position = commits.at(-1);
  return position === undefined ? null : { position, commits, sums: pages, databasePages, firstPage };
}

/**
 * What the transaction that has just been committed has appended.
 * @param known where the log ended before; null: nothing is known of it
 * @returns null: it has written nothing
 */
export function readNextCommit(
  file: number,
  known: WalPosition | null,
): (WalPages & { readonly position: WalPosition }) | null {
  const header = readHeader(file);
  if (header === null) return null;
  const pages = new Map<number, number>();
  const first = known?.salts === header.salts ? known.frames : 0;
  for (const frame of framesFrom(file, header, first)) {
    pages.set(frame.pageNumber, crc32(frame.page));
    if (frame.databasePages === 0) continue;
    return { position: positionAfter(header, frame), sums: pages, databasePages: frame.databasePages };
  }
  return null;
}

interface WalHeader {
  readonly bytes: Buffer;
  readonly salts: string;
  readonly isBigEndian: boolean;
  readonly pageBytes: number;
}

function readHeader(file: number): WalHeader | null {
  const bytes = Buffer.alloc(headerBytes);
  if (readSync(file, bytes, 0, headerBytes, 0) !== headerBytes) return null;
  const magic = bytes.readUInt32BE(0);
  if (magic !== magicBigEndian && magic !== magicLittleEndian) return null;
  const pageBytes = bytes.readUInt32BE(8);
  // SQLite takes powers of two from 512 to 65536 and nothing else.
  if (pageBytes < 512 || pageBytes > 65_536 || (pageBytes & (pageBytes - 1)) !== 0) return null;
  return {
    bytes,
    salts: bytes.toString('hex', 16, 24),
    isBigEndian: magic === magicBigEndian,
    pageBytes,
  };
}

interface Frame {
  readonly number: number;
  readonly header: Buffer;
  readonly page: Buffer;
  readonly pageNumber: number;
  /** 0: the transaction continues in the next frame. */
  readonly databasePages: number;
}

/** Frames of this run of the log; behind them there may be some of an earlier one. Each is gone when the next is asked for. */
function* framesFrom(file: number, { salts, pageBytes }: WalHeader, first: number): Generator<Frame> {
  const frameBytes = frameHeaderBytes + pageBytes;
  const framesMax = Math.floor(chunkBytes / frameBytes);
  let number = first;
  for (let wanted = Math.min(firstFrames, framesMax); ; wanted = Math.min(2 * wanted, framesMax)) {
    const got = readSync(file, chunk, 0, wanted * frameBytes, headerBytes + number * frameBytes);
    const count = Math.floor(got / frameBytes);
    for (let index = 0; index < count; index += 1) {
      const bytes = chunk.subarray(index * frameBytes, (index + 1) * frameBytes);
      if (bytes.toString('hex', 8, 16) !== salts) return;
      number += 1;
      yield {
        number,
        header: bytes.subarray(0, frameHeaderBytes),
        page: bytes.subarray(frameHeaderBytes),
        pageNumber: bytes.readUInt32BE(0),
        databasePages: bytes.readUInt32BE(4),
      };
    }
    if (count < wanted) return;
  }
}

function positionAfter({ salts }: WalHeader, { number, header }: Frame): WalPosition {
  return { salts, frames: number, sum: header.toString('hex', 16, 24) };
}

/** SQLite's checksum: two sums over pairs of 32-bit words, each of which takes the other one in. */
function wordSums(
  bytes: Buffer,
  isBigEndian: boolean,
  [first, second]: readonly [number, number],
): readonly [number, number] {
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let a = first;
  let b = second;
  for (let offset = 0; offset < bytes.length; offset += 8) {
    a = (a + words.getUint32(offset, !isBigEndian) + b) >>> 0;
    b = (b + words.getUint32(offset + 4, !isBigEndian) + a) >>> 0;
  }
  return [a, b];
}
