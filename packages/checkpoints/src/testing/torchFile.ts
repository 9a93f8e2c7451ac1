/** Files as `torch.save` writes them, by hand, for tests and measurements that have no PyTorch. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { crc32 } from 'node:zlib';

export interface StoredEntry {
  readonly name: string;
  readonly data: Uint8Array;
  /** 0: stored. */
  readonly method?: number;
  /** Left out: what it is. */
  readonly crc?: number;
  /** In the directory; left out: what it is. */
  readonly claimedBytes?: number;
  readonly flags?: number;
}

/** Data begins at multiples of this, as PyTorch has it. */
const alignment = 64;

/** @returns a whole archive, with the records of zip64 that PyTorch always writes */
export function zipOf(entries: readonly StoredEntry[]): Buffer {
  const parts: Buffer[] = [];
  const central: Buffer[] = [];
  let at = 0;
  for (const entry of entries) {
    const { header, record } = recordsOf(entry, at);
    parts.push(header, Buffer.from(entry.data));
    central.push(record);
    at += header.length + entry.data.length;
  }
  const directory = Buffer.concat(central);
  return Buffer.concat([...parts, directory, endOf(at, directory.length, entries.length)]);
}

/** The entries that a saved dictionary of tensors has. */
export function torchEntries(...tensors: readonly Uint8Array[]): readonly StoredEntry[] {
  return [
    { name: 'archive/data.pkl', data: Buffer.from('\x80\x02}q\x00.', 'latin1') },
    ...tensors.map((data, index) => ({ name: `archive/data/${index}`, data })),
    { name: 'archive/version', data: Buffer.from('3\n') },
  ];
}

/** Writes a file with one tensor over and over again, without holding more than one in memory. */
export function writeTorchFile(path: string, tensor: Uint8Array, count: number): void {
  const file = openSync(path, 'wx');
  try {
    const [pickle, ...rest] = torchEntries(...Array.from({ length: count }, () => tensor));
    const central: Buffer[] = [];
    let at = 0;
    for (const entry of pickle === undefined ? [] : [pickle, ...rest]) {
      const { header, record } = recordsOf(entry, at);
      writeSync(file, header);
      writeSync(file, entry.data);
      central.push(record);
      at += header.length + entry.data.length;
    }
    const directory = Buffer.concat(central);
    writeSync(file, Buffer.concat([directory, endOf(at, directory.length, count + 2)]));
  } finally {
    closeSync(file);
  }
}

function recordsOf(entry: StoredEntry, at: number): { readonly header: Buffer; readonly record: Buffer } {
  const name = Buffer.from(entry.name);
  const crc = entry.crc ?? crc32(entry.data);
  const bytes = entry.claimedBytes ?? entry.data.length;
  const padding = -(at + 30 + name.length) & (alignment - 1);
  const header = Buffer.alloc(30 + name.length + padding);
  header.writeUInt32LE(0x04034b50, 0);
  header.writeUInt16LE(entry.flags ?? 0, 6);
  header.writeUInt16LE(entry.method ?? 0, 8);
  header.writeUInt32LE(crc, 14);
  header.writeUInt32LE(bytes, 18);
  header.writeUInt32LE(bytes, 22);
  header.writeUInt16LE(name.length, 26);
  header.writeUInt16LE(padding, 28);
  name.copy(header, 30);
  const record = Buffer.alloc(46 + name.length);
  record.writeUInt32LE(0x02014b50, 0);
  record.writeUInt16LE(entry.flags ?? 0, 8);
  record.writeUInt16LE(entry.method ?? 0, 10);
  record.writeUInt32LE(crc, 16);
  record.writeUInt32LE(entry.data.length, 20);
  record.writeUInt32LE(bytes, 24);
  record.writeUInt16LE(name.length, 28);
  record.writeUInt32LE(at, 42);
  name.copy(record, 46);
  return { header, record };
}

function endOf(directoryAt: number, directoryBytes: number, entries: number): Buffer {
  const end = Buffer.alloc(56 + 20 + 22);
  end.writeUInt32LE(0x06064b50, 0);
  end.writeBigUInt64LE(44n, 4);
  end.writeBigUInt64LE(BigInt(entries), 24);
  end.writeBigUInt64LE(BigInt(entries), 32);
  end.writeBigUInt64LE(BigInt(directoryBytes), 40);
  end.writeBigUInt64LE(BigInt(directoryAt), 48);
  end.writeUInt32LE(0x07064b50, 56);
  end.writeBigUInt64LE(BigInt(directoryAt + directoryBytes), 64);
  end.writeUInt32LE(1, 72);
  end.writeUInt32LE(0x06054b50, 76);
  end.writeUInt16LE(Math.min(entries, 0xffff), 84);
  end.writeUInt16LE(Math.min(entries, 0xffff), 86);
  end.writeUInt32LE(directoryBytes, 88);
  end.writeUInt32LE(Math.min(directoryAt, 0xffffffff), 92);
  return end;
}
