/** What `torch.save` writes. Its pickles are never loaded: that would run whatever somebody put there. */
import type { SummedRange } from './contents.ts';
import { CorruptFile, OpaqueFile, type OpenedFile } from './openedFile.ts';
import type { Pace } from './pace.ts';
import { examineZip, findEnd, type ZipArchive } from './zip.ts';

/** Before PyTorch 1.6: a pickled number, then pickles and tensors without sums or an end that could be recognised. */
const oldMagic = Buffer.from('80028a0a6cfc9c46f9206aa85019', 'hex');
/** Of `torch.distributed.checkpoint`: some hundred thousand tensors of one rank. */
const archivesMax = 1_000_000;

export function beginsLikeOldTorch(head: Buffer): boolean {
  return head.subarray(0, oldMagic.length).equals(oldMagic);
}

/** @throws {CorruptFile} {OpaqueFile} */
export async function examineTorch(file: OpenedFile, pace: Pace): Promise<readonly SummedRange[]> {
  const endAt = findEnd(file, file.bytes);
  if (endAt === null)
    throw new CorruptFile('was cut off: the directory that PyTorch writes at the end is missing');
  const archive = await examineZip(file, endAt, pace);
  if (archive.start > 0)
    throw new CorruptFile(`is damaged: it has ${archive.start} bytes more than were written`);
  requireTorchEntries(archive);
  return archive.sums;
}

function requireTorchEntries({ names }: ZipArchive): void {
  const [first = ''] = names;
  const prefix = first.slice(0, first.indexOf('/') + 1);
  const isTorch = names.has(`${prefix}data.pkl`) && names.has(`${prefix}version`);
  if (isTorch && prefix !== '' && [...names].every((name) => name.startsWith(prefix))) return;
  const isPart = [...names].some((name) => /\/(?:data\.pkl|data\/\d+)$/.test(name));
  if (isPart) throw new CorruptFile('is damaged: it lacks data.pkl or version, which torch.save writes');
  throw new OpaqueFile('is a zip archive that torch.save did not write');
}

/**
 * A file of `torch.distributed.checkpoint`: what `torch.save` writes, one after the other. They are found from the end,
 * as each says how long it is there and not where it begins.
 * @throws {CorruptFile} {OpaqueFile}
 */
export async function examineTorchSeries(file: OpenedFile, pace: Pace): Promise<readonly SummedRange[]> {
  const sums: SummedRange[] = [];
  let archives = 0;
  for (let end = file.bytes; end > 0; archives += 1) {
    const endAt = findEnd(file, end);
    if (endAt === null && archives === 0)
      throw new CorruptFile('was cut off: what torch.save writes at the end is missing');
    if (endAt === null || archives === archivesMax)
      throw new OpaqueFile('holds what torch.save did not write, or in a way that is not known');
    const archive = await examineZip(file, endAt, pace);
    requireTorchEntries(archive);
    for (const sum of archive.sums) sums.push(sum);
    end = archive.start;
  }
  return sums;
}
