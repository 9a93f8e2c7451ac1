/** The file of a job's rows: a head, then frames (rowFormat.ts). */
import { type FileHandle, open } from 'node:fs/promises';
import { type Frame, readFrame } from './rowFormat.ts';

const magic = 'MUSTROWS';
const version = 1;
/** Magic, version, and what thinning has taken. */
export const headBytes = 16;
/** Read at once: some milliseconds of work, after which everybody else has the event loop. */
const pieceBytes = 256 * 1024;

export function encodeHead(isThinned: boolean): Buffer {
  const head = Buffer.alloc(headBytes);
  head.write(magic, 'latin1');
  head.writeUInt32LE(version, 8);
  head.writeUInt32LE(isThinned ? 1 : 0, 12);
  return head;
}

/** null: this is none of our files, or of a later version. */
export function decodeHead(bytes: Buffer): { readonly isThinned: boolean } | null {
  if (bytes.length < headBytes || bytes.toString('latin1', 0, 8) !== magic) return null;
  return bytes.readUInt32LE(8) === version ? { isThinned: bytes.readUInt32LE(12) !== 0 } : null;
}

export async function readHead(file: FileHandle): Promise<{ readonly isThinned: boolean } | null> {
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
