/** The file of a job's rows: a head, then frames (rowFormat.ts). */
import { type FileHandle, open } from 'node:fs/promises';
import { type Frame, readFrame } from './rowFormat.ts';

const magic = 'MUSTROWS';
/** Since 2 a row may name other metrics that are not finite, and a frame may count what was omitted. */
const version = 2;
const versionMin = 1;
/** Where the version lies, four bytes. */
const versionAt = 8;
/** Magic, version, and what thinning has taken. */
export const headBytes = 16;
/** Read at once: some milliseconds of work, after which everybody else has the event loop. */
const pieceBytes = 256 * 1024;

export interface Head {
  readonly isThinned: boolean;
  /** An older release has begun the file. */
  readonly isOlder: boolean;
}

export function encodeHead(isThinned: boolean): Buffer {
  const head = Buffer.alloc(headBytes);
  head.write(magic, 'latin1');
  head.writeUInt32LE(version, versionAt);
  head.writeUInt32LE(isThinned ? 1 : 0, 12);
  return head;
}

/** null: this is none of our files, or of a later version. */
export function decodeHead(bytes: Buffer): Head | null {
  if (bytes.length < headBytes || bytes.toString('latin1', 0, 8) !== magic) return null;
  const found = bytes.readUInt32LE(versionAt);
  if (found < versionMin || found > version) return null;
  return { isThinned: bytes.readUInt32LE(12) !== 0, isOlder: found < version };
}

/** Marks a file of an older version as one of this version. Everything in it reads the same. */
export async function renewHead(file: FileHandle): Promise<void> {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(version);
  await file.write(bytes, 0, bytes.length, versionAt);
}

export async function readHead(file: FileHandle): Promise<Head | null> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, 0);
  return decodeHead(buffer.subarray(0, bytesRead));
}

/**
 * Reads the frames in their order, a piece at a time.
 * @param size bytes of the file; what lies behind is left alone
 * @param afterPiece awaited after the frames of each piece
 * @returns bytes up to the end of the last whole frame. Less than `size`: what follows was cut short or damaged
 */
export async function readFrames(
  file: FileHandle,
  size: number,
  onFrame: (frame: Frame) => void,
  afterPiece?: () => Promise<void>,
): Promise<number> {
  let buffer = Buffer.alloc(0);
  let good = headBytes;
  for (let position = headBytes; position < size; ) {
    const piece = Buffer.allocUnsafe(Math.min(pieceBytes, size - position));
    const { bytesRead } = await file.read(piece, 0, piece.length, position);
    if (bytesRead === 0) return good;
    position += bytesRead;
    buffer = Buffer.concat([buffer, piece.subarray(0, bytesRead)]);
    let start = 0;
    for (;;) {
      const read = readFrame(buffer, start);
      if (read === 'damaged') return good;
      if (read === 'more') break;
      onFrame(read.frame);
      good += read.end - start;
      start = read.end;
    }
    buffer = buffer.subarray(start);
    await afterPiece?.();
  }
  return good;
}

/** @returns null when there is no such file */
export async function openIfThere(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
