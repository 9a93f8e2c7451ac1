/** What `torch.save` writes. Its pickles are never loaded: that would run whatever somebody put there. */
import {
  CorruptFile,
  OpaqueFile,
  type OpenedFile,
  type ReadPace,
  readPart,
  type SummedRange,
} from './openedFile.ts';
import { pickleEnd } from './pickle.ts';
import { type EntryPlace, examineZip, findEnd, type ZipArchive } from './zip.ts';

/** Before PyTorch 1.6: a pickled number, then pickles and tensors without sums or an end that could be recognised. */
const oldMagic = Buffer.from('80028a0a6cfc9c46f9206aa85019', 'hex');
/** Of `torch.distributed.checkpoint`: some hundred thousand tensors of one rank. */
const archivesMax = 1_000_000;

export function beginsLikeOldTorch(head: Buffer): boolean {
  return head.subarray(0, oldMagic.length).equals(oldMagic);
}

/** @throws {CorruptFile} {OpaqueFile} */
export async function examineTorch(file: OpenedFile, pace: ReadPace): Promise<readonly SummedRange[]> {
  const endAt = findEnd(file, file.bytes);
  if (endAt === null)
    throw new CorruptFile('was cut off: the directory that PyTorch writes at the end is missing');
  const archive = await examineZip(file, endAt, pace);
  if (archive.start > 0)
    throw new CorruptFile(`is damaged: it has ${archive.start} bytes more than were written`);
  requireTorchEntries(file, archive);
  return archive.sums;
}

function requireTorchEntries(file: OpenedFile, { entries }: ZipArchive): void {
  const names = [...entries.keys()];
  const [first = ''] = names;
  const prefix = first.slice(0, first.indexOf('/') + 1);
  const pickle = entries.get(`${prefix}data.pkl`);
  if (pickle !== undefined && entries.has(`${prefix}version`)) {
    if (prefix === '' || !names.every((name) => name.startsWith(prefix)))
      throw new OpaqueFile('holds entries that torch.save does not write');
    requireEndOfPickle(file, pickle);
    return;
  }
  const isPart = names.some((name) => /\/(?:data\.pkl|data\/\d+)$/.test(name));
  if (isPart) throw new CorruptFile('is damaged: it lacks data.pkl or version, which torch.save writes');
  throw new OpaqueFile('is a zip archive that torch.save did not write');
}

/** Of any protocol. It is the one part of an archive without sums, other than its directory, that shows whether it is there. */
function requireEndOfPickle(file: OpenedFile, { start, end }: EntryPlace): void {
  const last = start === end ? undefined : readPart(file, end - 1, 1)[0];
  if (last !== pickleEnd) throw new CorruptFile('is damaged: its data.pkl does not end as a pickle does');
}

/**
 * A file of `torch.distributed.checkpoint`: what `torch.save` writes, one after the other. They are found from the end,
 * as each has its length there and not its beginning.
 * @throws {CorruptFile} {OpaqueFile}
 */
export async function examineTorchSeries(file: OpenedFile, pace: ReadPace): Promise<readonly SummedRange[]> {
  const sums: SummedRange[] = [];
  let archives = 0;
  for (let end = file.bytes; end > 0; archives += 1) {
    const endAt = findEnd(file, end);
    if (endAt === null && archives === 0)
      throw new CorruptFile('was cut off: what torch.save writes at the end is missing');
    if (endAt === null || archives === archivesMax)
      throw new OpaqueFile('holds what torch.save did not write, or in a way that is not known');
    const archive = await examineZip(file, endAt, pace);
    requireTorchEntries(file, archive);
    for (const sum of archive.sums) sums.push(sum);
    end = archive.start;
  }
  return sums;
}
