/**
 * The file in which readings survive a restart: a head, then frames, each with its length and checksum, then a frame that says that
 * nothing follows. What is damaged ends the reading, and all before it counts. Times are by the wall clock, for no other clock survives
 * a restart.
 */
import { crc32 } from 'node:zlib';

const magic = 'MUSTTELE';
const version = 1;
export const snapshotHeadBytes = 20;
const frameHeadBytes = 10;
/** A larger one is damage: the rows of six hours of one node are some 20 KiB. */
const bodyBytesMax = 1024 * 1024;

/** What a frame is about, and numbers: its meaning is the affair of whoever wrote it. */
export interface SnapshotFrame {
  readonly about: Readonly<Record<string, unknown>>;
  readonly numbers: Float64Array | Float32Array;
}

export function encodeSnapshotHead(writtenAtMs: number): Buffer {
  const head = Buffer.alloc(snapshotHeadBytes);
  head.write(magic, 'latin1');
  head.writeUInt32LE(version, 8);
  head.writeDoubleLE(writtenAtMs, 12);
  return head;
}

/** @returns when it was written; null: this is none of our files, or of a later version */
export function decodeSnapshotHead(bytes: Buffer): number | null {
  if (bytes.length < snapshotHeadBytes || bytes.toString('latin1', 0, 8) !== magic) return null;
  if (bytes.readUInt32LE(8) !== version) return null;
  const writtenAtMs = bytes.readDoubleLE(12);
  return Number.isFinite(writtenAtMs) ? writtenAtMs : null;
}

export function encodeSnapshotFrame({ about, numbers }: SnapshotFrame): Buffer {
  const text = Buffer.from(JSON.stringify({ ...about, wide: numbers instanceof Float64Array }));
  const body = Buffer.concat([text, Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength)]);
  const head = Buffer.alloc(frameHeadBytes);
  head.writeUInt32LE(body.length, 0);
  head.writeUInt16LE(text.length, 4);
  head.writeUInt32LE(crc32(body), 6);
  return Buffer.concat([head, body]);
}

/** @returns 'damaged' also for a frame that the file ends in the middle of; `end` is where the next one begins */
export function decodeSnapshotFrame(
  bytes: Buffer,
  start: number,
): { readonly frame: SnapshotFrame; readonly end: number } | 'damaged' {
  if (bytes.length < start + frameHeadBytes) return 'damaged';
  const length = bytes.readUInt32LE(start);
  const textLength = bytes.readUInt16LE(start + 4);
  const bodyStart = start + frameHeadBytes;
  const end = bodyStart + length;
  if (length > bodyBytesMax || textLength > length || end > bytes.length) return 'damaged';
  if (crc32(bytes.subarray(bodyStart, end)) !== bytes.readUInt32LE(start + 6)) return 'damaged';
  try {
    const text = bytes.toString('utf8', bodyStart, bodyStart + textLength);
    const { wide, ...about } = JSON.parse(text) as Record<string, unknown>;
    // Numbers need not be aligned in the file.
    const raw = new Uint8Array(bytes.subarray(bodyStart + textLength, end)).buffer;
    const numbers = wide === true ? new Float64Array(raw) : new Float32Array(raw);
    return { frame: { about, numbers }, end };
  } catch {
    return 'damaged';
  }
}
