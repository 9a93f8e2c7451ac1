/** A JSON value in a block of fixed size, with a CRC-32 before it: one that was cut off or altered is none. */
import { crc32 } from 'node:zlib';

/** A page of memory and of most disks: a block that is written never touches the one beside it. */
export const recordBytes = 4_096;

export function recordOf(value: unknown): Buffer {
  const body = JSON.stringify(value);
  const text = Buffer.from(`${crc32(body).toString(16).padStart(8, '0')} ${body}\n`);
  if (text.length > recordBytes) throw new Error(`a record of ${text.length} bytes is too long`);
  return Buffer.concat([text, Buffer.alloc(recordBytes - text.length, ' ')]);
}

/** @returns null: there is no whole record in it */
export function recordIn(block: Buffer): unknown {
  const body = block.toString('utf8', 9).trimEnd();
  if (body === '' || block.toString('latin1', 0, 8) !== crc32(body).toString(16).padStart(8, '0'))
    return null;
  return JSON.parse(body);
}
