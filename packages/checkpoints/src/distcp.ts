/**
 * The files of `torch.distributed.checkpoint`: pieces one after the other, each what `torch.save` writes or a safetensors file.
 * `.metadata` beside them has where they begin and end.
 */
import {
  CorruptFile,
  OpaqueFile,
  type OpenedFile,
  pieceOf,
  type ReadPace,
  readFully,
  readPart,
  type SummedRange,
} from './openedFile.ts';
import { pickleEnd, readPickle } from './pickle.ts';
import { beginsLikeSafetensors, examineSafetensors } from './safetensors.ts';
import { examineTorch, examineTorchSeries } from './torch.ts';
import { beginsLikeZip, findEnd } from './zip.ts';

const headBytes = 64;
/** Of a piece without a length, which is safetensors: the length of the header, and a header of two braces. */
const smallestBytes = 10;

/**
 * @param pieces as `.metadata` lists them; empty: it lists none
 * @returns the sums that are kept of parts of it
 * @throws {CorruptFile} {OpaqueFile}
 */
export async function examineDistcp(
  file: OpenedFile,
  pieces: readonly StoredPiece[],
  pace: ReadPace,
): Promise<readonly SummedRange[]> {
  if (readPart(file, 0, headBytes).every((byte) => byte === 0))
    throw new CorruptFile('is damaged: it begins with zeros');
  return pieces.length === 0 ? examineUnlisted(file, pace) : examineListed(file, pieces, pace);
}

/** A file of other contents is not a damaged one: programs may save in their own way. */
async function examineUnlisted(file: OpenedFile, pace: ReadPace): Promise<readonly SummedRange[]> {
  if (findEnd(file, file.bytes) !== null) return examineTorchSeries(file, pace);
  if (!beginsLikeSafetensors(readPart(file, 0, headBytes)))
    throw new OpaqueFile('does not end with what torch.save writes');
  examineSafetensors(file);
  return [];
}

async function examineListed(
  file: OpenedFile,
  pieces: readonly StoredPiece[],
  pace: ReadPace,
): Promise<readonly SummedRange[]> {
  const end = pieces.reduce((highest, { start, bytes }) => Math.max(highest, start + bytes), 0);
  if (end > file.bytes)
    throw new CorruptFile(`was cut off: .metadata looks for ${end} bytes in it, and it has ${file.bytes}`);
  const begun = pieces.find(
    ({ start, bytes, isTransformed }) => bytes === 0 && !isTransformed && start + smallestBytes > file.bytes,
  );
  if (begun !== undefined)
    throw new CorruptFile(
      `was cut off: a piece begins at byte ${begun.start}, and it has ${file.bytes} bytes in all`,
    );
  const sums: SummedRange[] = [];
  let doubt: string | null = null;
  for (const range of rangesOf(pieces, file.bytes)) {
    if (range.isTransformed) doubt ??= 'holds pieces that were compressed or changed in another way';
    else {
      const found = await examinePiece(file, range, pace);
      if (found === null) doubt ??= 'holds what torch.save did not write';
      else for (const sum of found) sums.push(sum);
    }
    await pace.spend(0);
  }
  if (doubt === null) return sums;
  if (await isSeriesOfArchives(file, pace))
    throw new CorruptFile('is another file or damaged: what it holds is not where .metadata looks for it');
  throw new OpaqueFile(doubt);
}

interface PieceRange {
  readonly start: number;
  readonly end: number;
  readonly isTransformed: boolean;
}

/** @throws {OpaqueFile} when they overlap */
function rangesOf(pieces: readonly StoredPiece[], fileBytes: number): readonly PieceRange[] {
  const longest = new Map<number, StoredPiece>();
  for (const piece of pieces) {
    if (piece.bytes >= (longest.get(piece.start)?.bytes ?? 0)) longest.set(piece.start, piece);
  }
  const inOrder = [...longest.values()].sort((a, b) => a.start - b.start);
  return inOrder.map(({ start, bytes, isTransformed }, index) => {
    const next = inOrder[index + 1]?.start ?? fileBytes;
    if (start + bytes > next) throw new OpaqueFile('holds pieces that overlap');
    return { start, end: bytes === 0 ? next : start + bytes, isTransformed };
  });
}

/** @returns its sums; null: it is of no form that is known @throws {CorruptFile} {OpaqueFile} */
async function examinePiece(
  file: OpenedFile,
  { start, end }: PieceRange,
  pace: ReadPace,
): Promise<readonly SummedRange[] | null> {
  const piece = pieceOf(file, start, end);
  const head = readPart(piece, 0, headBytes);
  try {
    if (beginsLikeZip(head)) return await examineTorch(piece, pace);
    if (!beginsLikeSafetensors(head)) return null;
    examineSafetensors(piece);
    return [];
  } catch (error) {
    if (!(error instanceof CorruptFile)) throw error;
    throw new CorruptFile(`is damaged: its piece from byte ${start} to ${end} ${error.message}`);
  }
}

/** From its first byte to its last: then there is nothing of another form in it. */
async function isSeriesOfArchives(file: OpenedFile, pace: ReadPace): Promise<boolean> {
  try {
    await examineTorchSeries(file, pace);
    return true;
  } catch (error) {
    if (error instanceof CorruptFile || error instanceof OpaqueFile) return false;
    throw error;
  }
}

/** Some bytes of a file that belong together. */
export interface StoredPiece {
  readonly start: number;
  /** 0: up to the next one, or to the end of the file. PyTorch writes it for tensors that it saves as safetensors. */
  readonly bytes: number;
  /** The program has compressed it, or something like that. */
  readonly isTransformed: boolean;
}

/** The pieces of each file, by its name; none where only the name is known. */
export type StoredPieces = ReadonlyMap<string, readonly StoredPiece[]>;

/** Of a checkpoint with half a million pieces. Of a longer one only the names of the files are looked for. */
const readBytesMax = 64 * 1024 * 1024;
/** A program may put a prefix before the number of the rank. */
const fileName = /(?:[A-Za-z][\w-]{0,63})?__\d{1,9}_\d{1,9}\.distcp/g;
const nameBytesMax = 128;
/** PROTO: of every protocol that has been usual since Python 3.0. */
const pickleBegin = 0x80;

/**
 * Reads `.metadata` of `torch.distributed.checkpoint`. It is a pickle, which is never loaded, and names for each tensor and each
 * object the file beside it, the position and the length of its bytes.
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
