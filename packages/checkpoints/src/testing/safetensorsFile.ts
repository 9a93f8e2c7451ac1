/** Files in the safetensors format, by hand. */
import { closeSync, openSync, writeSync } from 'node:fs';

/** @param header as JSON, right or wrong */
export function safetensorsOf(header: unknown, data: Uint8Array): Buffer {
  const text = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, data]);
}

/** Header of float tensors, one after the other. @param tensors bytes by name, multiples of 4 */
export function headerOf(tensors: Readonly<Record<string, number>>): Record<string, unknown> {
  let at = 0;
  const entries = Object.entries(tensors).map(([name, bytes]) => {
    const begin = at;
    at += bytes;
    return [name, { dtype: 'F32', shape: [bytes / 4], data_offsets: [begin, at] }];
  });
  return Object.fromEntries(entries);
}

/** Writes a file with one tensor over and over again, without holding more than one in memory. */
export function writeSafetensorsFile(path: string, tensor: Uint8Array, count: number): void {
  const names = Array.from({ length: count }, (_, index) => [`layer.${index}`, tensor.length]);
  const file = openSync(path, 'wx');
  try {
    writeSync(file, safetensorsOf(headerOf(Object.fromEntries(names)), new Uint8Array()));
    for (let written = 0; written < count; written += 1) writeSync(file, tensor);
  } finally {
    closeSync(file);
  }
}
