/** Files as `torch.save` writes them, by hand, for tests and measurements that have no PyTorch. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { crc32 } from 'node:zlib';

export interface StoredEntry {
  readonly name: string;
  readonly data: Uint8Array;
  /** 0: stored. */
  readonly method?: number;
  /** Default: that of `data`. */
  readonly crc?: number;
  /** The size that header and directory claim; default: that of `data`. */
  readonly claimedBytes?: number;
  readonly flags?: number;
}

export interface ZipForm {
  /** Data begins at multiples of this; default: 64, as in PyTorch. */
  readonly alignment?: number;
  /** Sum and sizes behind the data, too, as PyTorch writes them. */
  readonly descriptors?: boolean;
}

/** @returns a whole archive, with the records of zip64 that PyTorch always writes */
export function zipOf(entries: readonly StoredEntry[], form: ZipForm = {}): Buffer {
  const parts: Buffer[] = [];
  const central: Buffer[] = [];
  let at = 0;
  for (const entry of entries) {
    const { header, record, descriptor } = recordsOf(entry, at, form);
    parts.push(header, Buffer.from(entry.data), descriptor);
    central.push(record);
    at += header.length + entry.data.length + descriptor.length;
  }
  const directory = Buffer.concat(central);
  return Buffer.concat([...parts, directory, endOf(at, directory.length, entries.length)]);
}

/** As `torch.save` writes it when it is set to compute no sums. */
export function withoutSums(entries: readonly StoredEntry[]): readonly StoredEntry[] {
  return entries.map((entry) => ({ ...entry, crc: 0 }));
}

/** What newer versions write beside the rest: the order of bytes, the alignment, and an id. */
export const newerEntries: readonly StoredEntry[] = [
  { name: 'archive/.format_version', data: Buffer.from('1') },
  { name: 'archive/.storage_alignment', data: Buffer.from('64') },
  { name: 'archive/byteorder', data: Buffer.from('little') },
  { name: 'archive/.data/serialization_id', data: Buffer.from('0'.repeat(40)) },
];

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
      const { header, record } = recordsOf(entry, at, {});
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

/** Leaves holes where the tensors would be, and computes no sums. @param tensorBytes of each, more than a file has on disk */
export function writeSparseTorchFile(path: string, tensorBytes: number, count: number): void {
  const file = openSync(path, 'wx');
  try {
    const [pickle, ...rest] = torchEntries(...Array.from({ length: count }, () => new Uint8Array()));
    const central: Buffer[] = [];
    let at = 0;
    for (const entry of pickle === undefined ? [] : [pickle, ...rest]) {
      const isTensor = entry.name.startsWith('archive/data/');
      const bytes = isTensor ? tensorBytes : entry.data.length;
      const { header, record } = recordsOf({ ...entry, crc: 0, storedBytes: bytes }, at, {});
      writeSync(file, header, 0, header.length, at);
      writeSync(file, entry.data, 0, entry.data.length, at + header.length);
      central.push(record);
      at += header.length + bytes;
    }
    const directory = Buffer.concat(central);
    const end = Buffer.concat([directory, endOf(at, directory.length, count + 2)]);
    writeSync(file, end, 0, end.length, at);
  } finally {
    closeSync(file);
  }
}

interface EntryRecords {
  readonly header: Buffer;
  readonly record: Buffer;
  readonly descriptor: Buffer;
}

/** 32 bits hold no more: then the value stands in a field of its own. */
const widthMax = 0xffffffff;

function wideField(...values: readonly number[]): Buffer {
  const wide = values.filter((value) => value >= widthMax);
  if (wide.length === 0) return Buffer.alloc(0);
  const field = Buffer.alloc(4 + 8 * wide.length);
  field.writeUInt16LE(1, 0);
  field.writeUInt16LE(8 * wide.length, 2);
  for (const [index, value] of wide.entries()) field.writeBigUInt64LE(BigInt(value), 4 + 8 * index);
  return field;
}

/** Of a length that the data comes to stand where it should. @param at where it begins, if it is as short as can be */
function padding(at: number, alignment: number): Buffer {
  const field = Buffer.alloc(4 + (-(at + 4) & (alignment - 1)), 'Z');
  field.write('FB');
  field.writeUInt16LE(field.length - 4, 2);
  return field;
}

function descriptorOf(crc: number, bytes: number, isWide: boolean): Buffer {
  const descriptor = Buffer.alloc(isWide ? 24 : 16);
  descriptor.writeUInt32LE(0x08074b50, 0);
  descriptor.writeUInt32LE(crc, 4);
  if (!isWide) {
    descriptor.writeUInt32LE(bytes, 8);
    descriptor.writeUInt32LE(bytes, 12);
    return descriptor;
  }
  descriptor.writeBigUInt64LE(BigInt(bytes), 8);
  descriptor.writeBigUInt64LE(BigInt(bytes), 16);
  return descriptor;
}

function recordsOf(
  entry: StoredEntry & { readonly storedBytes?: number },
  at: number,
  { alignment = 64, descriptors = false }: ZipForm,
): EntryRecords {
  const name = Buffer.from(entry.name);
  const crc = entry.crc ?? crc32(entry.data);
  const stored = entry.storedBytes ?? entry.data.length;
  const bytes = entry.claimedBytes ?? stored;
  const flags = (entry.flags ?? 0) | (descriptors && stored > 0 ? 0x808 : 0);
  const wide = wideField(bytes, stored);
  const extra = Buffer.concat([wide, padding(at + 30 + name.length + wide.length, alignment)]);
  const header = Buffer.alloc(30 + name.length + extra.length);
  header.writeUInt32LE(0x04034b50, 0);
  header.writeUInt16LE(flags, 6);
  header.writeUInt16LE(entry.method ?? 0, 8);
  header.writeUInt32LE(crc, 14);
  header.writeUInt32LE(Math.min(stored, widthMax), 18);
  header.writeUInt32LE(Math.min(bytes, widthMax), 22);
  header.writeUInt16LE(name.length, 26);
  header.writeUInt16LE(extra.length, 28);
  name.copy(header, 30);
  extra.copy(header, 30 + name.length);
  const wideInRecord = wideField(bytes, stored, at);
  const record = Buffer.alloc(46 + name.length + wideInRecord.length);
  record.writeUInt32LE(0x02014b50, 0);
  record.writeUInt16LE(flags, 8);
  record.writeUInt16LE(entry.method ?? 0, 10);
  record.writeUInt32LE(crc, 16);
  record.writeUInt32LE(Math.min(stored, widthMax), 20);
  record.writeUInt32LE(Math.min(bytes, widthMax), 24);
  record.writeUInt16LE(name.length, 28);
  record.writeUInt16LE(wideInRecord.length, 30);
  record.writeUInt32LE(Math.min(at, widthMax), 42);
  name.copy(record, 46);
  wideInRecord.copy(record, 46 + name.length);
  const isDescribed = descriptors && stored > 0;
  const descriptor = isDescribed ? descriptorOf(crc, bytes, wide.length > 0) : Buffer.alloc(0);
  return { header, record, descriptor };
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
