/**
 * `.metadata` of `torch.distributed.checkpoint` is a pickle, which is never loaded. It says of each tensor and each object in
 * which of the files beside it its bytes stand, from where on, and how many they are.
 */
import { CorruptFile, type OpenedFile, readFully, readPart } from './openedFile.ts';
import type { ReadPace } from './pace.ts';
import { pickleEnd, readPickle } from './pickle.ts';

/** Some bytes of a file that belong together. */
export interface StoredPiece {
  readonly start: number;
  /** 0: up to the next one, or to the end of the file. PyTorch says so of tensors that it saves as safetensors. */
  readonly bytes: number;
  /** The program has compressed it, or something like that. */
  readonly isTransformed: boolean;
}

/** The pieces of each file, by its name; none where only the name is known. */
export type StoredPieces = ReadonlyMap<string, readonly StoredPiece[]>;

/** Of a checkpoint with half a million pieces. Of a longer one only the names of the files are looked for. */
const readBytesMax = 64 * 1024 * 1024;
/** A program may put words before the number of the rank. */
const fileName = /(?:[A-Za-z][\w-]{0,63})?__\d{1,9}_\d{1,9}\.distcp/g;
const nameBytesMax = 128;
/** PROTO: of every protocol that has been usual since Python 3.0. */
const pickleBegin = 0x80;

/**
 * @param buffer for reading, larger than any name
 * @returns null: it names no file
 * @throws {CorruptFile} when it is not a complete pickle {OpaqueFile} {ChangingFile} and the signal's reason
 */
export async function readStoredPieces(
  file: OpenedFile,
  pace: ReadPace,
  buffer: Buffer,
): Promise<StoredPieces | null> {
  const [first, last] = [readPart(file, 0, 1)[0], readPart(file, file.bytes - 1, 1)[0]];
  if (first !== pickleBegin) throw new CorruptFile('is damaged: it does not begin as a pickle does');
  if (last !== pickleEnd)
    throw new CorruptFile('is damaged or was cut off: it does not end as a pickle does');
  const pieces = file.bytes <= readBytesMax ? piecesIn(readPart(file, 0, file.bytes)) : new Map();
  if (pieces.size > 0) return pieces;
  const names = await namesIn(file, pace, buffer);
  return names.size === 0 ? null : new Map([...names].map((name) => [name, []]));
}

function piecesIn(pickle: Buffer): StoredPieces {
  const pieces = new Map<string, StoredPiece[]>();
  readPickle(pickle, (items) => {
    const [name, start, bytes] = ['relative_path', 'offset', 'length'].map((key) => items.get(key));
    if (typeof name !== 'string' || !isCount(start) || !isCount(bytes)) return;
    const transformed = items.has('transform_descriptors') && items.get('transform_descriptors') !== null;
    const ofFile = pieces.get(name) ?? [];
    ofFile.push({ start, bytes, isTransformed: transformed });
    pieces.set(name, ofFile);
  });
  return pieces;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0;
}

/** They stand in it as plain text, each at least once. */
async function namesIn(file: OpenedFile, pace: ReadPace, buffer: Buffer): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  // Each part begins a name's length before the end of the one before, for a name between both.
  for (let at = 0; at < file.bytes; at += buffer.length - nameBytesMax) {
    const part = buffer.subarray(0, Math.min(buffer.length, file.bytes - at));
    readFully(file, part, at);
    for (const [name] of part.toString('latin1').matchAll(fileName)) names.add(name);
    await pace.spend(part.length);
  }
  return names;
}
