/** The directory at the end of a zip archive. Pure. */
import { CorruptFile, OpaqueFile } from './openedFile.ts';

export interface CentralEntry {
  /** Byte by byte: only ever compared. */
  readonly name: string;
  readonly crc: number;
  readonly bytes: number;
  /** Of its local header, from the beginning of the archive. */
  readonly headerAt: number;
}

const signature = 0x02014b50;
const fixedBytes = 46;
const zip64Tag = 0x0001;
const absent32 = 0xffffffff;

/** @throws {CorruptFile} when it is none {OpaqueFile} when entries are encrypted or compressed */
export function parseCentralDirectory(bytes: Buffer, count: number): readonly CentralEntry[] {
  if (count * fixedBytes > bytes.length) throw damaged();
  const entries: CentralEntry[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (at + fixedBytes > bytes.length || bytes.readUInt32LE(at) !== signature) throw damaged();
    const nameEnd = at + fixedBytes + bytes.readUInt16LE(at + 28);
    const extraEnd = nameEnd + bytes.readUInt16LE(at + 30);
    const next = extraEnd + bytes.readUInt16LE(at + 32);
    if (next > bytes.length) throw damaged();
    entries.push(parseEntry(bytes.subarray(at, extraEnd), nameEnd - at));
    at = next;
  }
  if (entries.length !== count)
    throw new CorruptFile(`is damaged: its directory counts ${count} entries and lists ${entries.length}`);
  return entries;
}

function parseEntry(record: Buffer, nameEnd: number): CentralEntry {
  const name = record.toString('latin1', fixedBytes, nameEnd);
  const extra = new Zip64Fields(record.subarray(nameEnd));
  const size = extra.resolve(record.readUInt32LE(24));
  const stored = extra.resolve(record.readUInt32LE(20));
  const headerAt = extra.resolve(record.readUInt32LE(42));
  if ((record.readUInt16LE(8) & 0x1) !== 0) throw new OpaqueFile(`holds ${name} encrypted`);
  if (record.readUInt16LE(10) !== 0)
    throw new OpaqueFile(`holds ${name} compressed, and nothing is inflated to look at it`);
  if (stored !== size) throw new CorruptFile(`is damaged: ${name} is stored with two sizes`);
  return { name, crc: record.readUInt32LE(16), bytes: size, headerAt };
}

/** Values that 32 bits cannot hold stand one after the other in a field of their own. */
class Zip64Fields {
  private readonly values: Buffer;
  private at = 0;

  constructor(extra: Buffer) {
    let at = 0;
    while (at + 4 <= extra.length && extra.readUInt16LE(at) !== zip64Tag)
      at += 4 + extra.readUInt16LE(at + 2);
    this.values =
      at + 4 <= extra.length ? extra.subarray(at + 4, at + 4 + extra.readUInt16LE(at + 2)) : Buffer.alloc(0);
  }

  resolve(value: number): number {
    if (value !== absent32) return value;
    if (this.at + 8 > this.values.length) throw damaged();
    const wide = this.values.readBigUInt64LE(this.at);
    this.at += 8;
    if (wide > BigInt(Number.MAX_SAFE_INTEGER)) throw damaged();
    return Number(wide);
  }
}

function damaged(): CorruptFile {
  return new CorruptFile('is damaged: the directory at its end is broken');
}
