/**
 * `.metadata` of `torch.distributed.checkpoint` is a pickle, which is never loaded. The names of the files that it refers
 * to stand in it as plain text, each at least once.
 */
import { type OpenedFile, readFully } from './openedFile.ts';
import type { Pace } from './pace.ts';

const fileName = /__\d{1,9}_\d{1,9}\.distcp/g;
const nameBytesMax = 32;

/**
 * @param buffer for reading, larger than any name
 * @returns null: it names none
 * @throws {ChangingFile} and the signal's reason
 */
export async function readDistcpNames(
  file: OpenedFile,
  pace: Pace,
  buffer: Buffer,
): Promise<ReadonlySet<string> | null> {
  const names = new Set<string>();
  // Each part begins a name's length before the end of the one before, for a name between both.
  for (let at = 0; at < file.bytes; at += buffer.length - nameBytesMax) {
    const part = buffer.subarray(0, Math.min(buffer.length, file.bytes - at));
    readFully(file, part, at);
    for (const [name] of part.toString('latin1').matchAll(fileName)) names.add(name);
    await pace.spend(part.length);
  }
  return names.size === 0 ? null : names;
}
