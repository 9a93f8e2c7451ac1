/**
 * A file of `torch.distributed.checkpoint`: pieces one after the other, each what `torch.save` writes or a safetensors file.
 * Where they begin and end is said in `.metadata` beside it.
 */
import type { SummedRange } from './contents.ts';
import type { StoredPiece } from './dcpMetadata.ts';
import { CorruptFile, OpaqueFile, type OpenedFile, pieceOf, readPart } from './openedFile.ts';
import type { ReadPace } from './pace.ts';
import { beginsLikeSafetensors, examineSafetensors } from './safetensors.ts';
import { examineTorch, examineTorchSeries } from './torch.ts';
import { beginsLikeZip, findEnd } from './zip.ts';

const headBytes = 64;
/** Of a piece without a length, which is safetensors: the length of the header, and a header of two braces. */
const smallestBytes = 10;

/**
 * @param pieces as `.metadata` tells them; empty: it does not
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
