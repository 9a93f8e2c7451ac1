/**
 * Zip archives as PyTorch writes them: entries that are stored and not compressed, each with its CRC-32, and a directory
 * of them at the end, written last. Nothing is ever inflated, and no size that an archive claims is believed before it
 * is known to lie inside of it.
 */
import {
  CorruptFile,
  OpaqueFile,
  type OpenedFile,
  type ReadPace,
  readPart,
  type SummedRange,
} from './openedFile.ts';

export interface ZipArchive {
  /** Where in the file it begins. */
  readonly start: number;
  /** By name, in the order of their data. */
  readonly entries: ReadonlyMap<string, EntryPlace>;
  /** Of the entries that have one, from the beginning of the descriptor. */
  readonly sums: readonly SummedRange[];
}

/** Where the data of an entry stands in the file. */
export interface EntryPlace {
  readonly start: number;
  readonly end: number;
}

/**
 * What stands in place of a sum that was not computed: PyTorch can be configured so (`set_crc32_options(False)`), and does so by
 * itself where it leaves room for data that comes later. One entry in four billion has this sum by chance, and goes without.
 */
const notSummed = 0;

const endSignature = 0x06054b50;
const end64Signature = 0x06064b50;
const locatorSignature = 0x07064b50;
const localSignature = 0x04034b50;
const descriptorSignature = 0x08074b50;

const endBytes = 22;
const end64Bytes = 56;
const locatorBytes = 20;
const localBytes = 30;
const commentBytesMax = 0xffff;
/** A million tensors need less. */
const directoryBytesMax = 64 * 1024 * 1024;
const entriesPerTurn = 500;

/** Whether it begins like an archive that has entries. */
export function beginsLikeZip(head: Buffer): boolean {
  return head.length >= 4 && head.readUInt32LE(0) === localSignature;
}

/** @param end of the archive in the file @returns null: no archive ends there */
export function findEnd(file: OpenedFile, end: number): number | null {
  const tailStart = Math.max(0, end - endBytes - commentBytesMax);
  const bare = end - endBytes;
  if (bare >= 0 && readPart(file, bare, endBytes).readUInt32LE(0) === endSignature) return bare;
  const tail = readPart(file, tailStart, end - tailStart);
  for (let at = tail.length - endBytes; at >= 0; at -= 1) {
    const isEnd = tail.readUInt32LE(at) === endSignature;
    if (isEnd && at + endBytes + tail.readUInt16LE(at + 20) === tail.length) return tailStart + at;
  }
  return null;
}

/**
 * @param endAt as `findEnd` found it
 * @throws {CorruptFile} {OpaqueFile}
 */
export async function examineZip(file: OpenedFile, endAt: number, pace: ReadPace): Promise<ZipArchive> {
  const directory = locateDirectory(file, endAt);
  if (directory.bytes > directoryBytesMax)
    throw new OpaqueFile(`has a directory of ${directory.bytes} bytes, more than is looked at`);
  const entries = parseCentralDirectory(readPart(file, directory.at, directory.bytes), directory.entries);
  if (new Set(entries.map(({ name }) => name)).size < entries.length)
    throw new CorruptFile('holds two entries of one name');

  const inOrder = entries.toSorted((a, b) => a.headerAt - b.headerAt);
  const sums: SummedRange[] = [];
  const stored = new Map<string, EntryPlace>();
  let freeFrom = directory.start;
  for (const [index, entry] of inOrder.entries()) {
    const headerAt = directory.start + entry.headerAt;
    if (headerAt < freeFrom)
      throw new CorruptFile(`holds entries that overlap: ${entry.name} begins inside another`);
    const data = examineEntry(file, entry, headerAt, directory.at);
    freeFrom = data.freeFrom;
    const [start, end] = [file.start + data.start, file.start + data.end];
    stored.set(entry.name, data);
    if (entry.crc !== notSummed) sums.push({ what: entry.name, start, end, crc: entry.crc });
    if (index % entriesPerTurn === entriesPerTurn - 1) await pace.spend(0);
  }
  return { start: directory.start, entries: stored, sums };
}

interface DirectoryPlace {
  readonly at: number;
  readonly bytes: number;
  readonly entries: number;
  /** Where the archive begins: offsets in it count from there. */
  readonly start: number;
}

function locateDirectory(file: OpenedFile, endAt: number): DirectoryPlace {
  const end = readPart(file, endAt, endBytes);
  const locatorAt = endAt - locatorBytes;
  const locator = readPart(file, Math.max(0, locatorAt), locatorBytes);
  if (locatorAt >= end64Bytes && locator.readUInt32LE(0) === locatorSignature) {
    const end64At = locatorAt - end64Bytes;
    const end64 = readPart(file, end64At, end64Bytes);
    if (end64.readUInt32LE(0) !== end64Signature) throw damagedEnd();
    const place = placeBefore(
      end64At,
      end64.readBigUInt64LE(40),
      end64.readBigUInt64LE(48),
      end64.readBigUInt64LE(32),
    );
    if (BigInt(end64At - place.start) !== locator.readBigUInt64LE(8)) throw damagedEnd();
    return place;
  }
  const [entries, bytes, offset] = [end.readUInt16LE(10), end.readUInt32LE(12), end.readUInt32LE(16)];
  return placeBefore(endAt, BigInt(bytes), BigInt(offset), BigInt(entries));
}

function placeBefore(endAt: number, bytes: bigint, offset: bigint, entries: bigint): DirectoryPlace {
  const at = BigInt(endAt) - bytes;
  const start = at - offset;
  if (start < 0n) throw new CorruptFile(`lacks ${-start} bytes before the directory at its end`);
  return { at: Number(at), bytes: Number(bytes), entries: Number(entries), start: Number(start) };
}

function damagedEnd(): CorruptFile {
  return new CorruptFile('is damaged: the records at its end contradict each other');
}

/** @param limit where the directory begins @throws {CorruptFile} where the entry and the directory disagree */
function examineEntry(
  file: OpenedFile,
  entry: CentralEntry,
  headerAt: number,
  limit: number,
): EntryPlace & { readonly freeFrom: number } {
  const header = readPart(file, headerAt, localBytes + Buffer.byteLength(entry.name, 'latin1'));
  if (header.length < localBytes || header.readUInt32LE(0) !== localSignature)
    throw new CorruptFile(`is damaged: where ${entry.name} should begin there is something else`);
  const nameEnd = localBytes + header.readUInt16LE(26);
  const start = headerAt + nameEnd + header.readUInt16LE(28);
  const end = start + entry.bytes;
  if (end > limit) throw new CorruptFile(`is damaged: ${entry.name} reaches beyond the entries`);
  const hasDescriptor = (header.readUInt16LE(6) & 0x8) !== 0;
  const agrees =
    header.toString('latin1', localBytes, nameEnd) === entry.name &&
    header.readUInt16LE(8) === 0 &&
    // With a descriptor after the data, the fields before it may be empty.
    ((hasDescriptor && header.readUInt32LE(14) === 0) || header.readUInt32LE(14) === entry.crc) &&
    [18, 22].every((at) => isSizeOf(entry, header.readUInt32LE(at), hasDescriptor));
  if (!agrees) throw new CorruptFile(`is damaged: the header of ${entry.name} contradicts the directory`);
  return { start, end, freeFrom: hasDescriptor ? afterDescriptor(file, entry, end, limit) : end };
}

/** Sizes past 4 GiB stand in a field of their own; the directory's is the one that is used. */
function isSizeOf({ bytes }: CentralEntry, found: number, hasDescriptor: boolean): boolean {
  return found === bytes || found === 0xffffffff || (hasDescriptor && found === 0);
}

/** CRC-32 and both sizes, in 4 or in 8 bytes each, with or without a signature before them. */
function afterDescriptor(
  file: OpenedFile,
  { name, crc, bytes }: CentralEntry,
  at: number,
  limit: number,
): number {
  const found = readPart(file, at, 24);
  const from = found.length >= 4 && found.readUInt32LE(0) === descriptorSignature ? 4 : 0;
  const isShort =
    found.length >= from + 12 &&
    found.readUInt32LE(from + 4) === bytes &&
    found.readUInt32LE(from + 8) === bytes;
  const isLong =
    found.length >= from + 20 &&
    found.readBigUInt64LE(from + 4) === BigInt(bytes) &&
    found.readBigUInt64LE(from + 12) === BigInt(bytes);
  const end = at + from + (isLong ? 20 : 12);
  if ((!isShort && !isLong) || found.readUInt32LE(from) !== crc || end > limit)
    throw new CorruptFile(`is damaged: what follows ${name} contradicts the directory`);
  return end;
}

/** An entry of the directory at the end. */
interface CentralEntry {
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
function parseCentralDirectory(bytes: Buffer, count: number): readonly CentralEntry[] {
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
