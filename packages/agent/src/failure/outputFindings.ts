/** What the output of a task tells of its failure: the rules of @muster/diagnosis over its last part. */
import { readSync, type Stats } from 'node:fs';
import { LogDiagnosis } from '@muster/diagnosis/diagnose';
import type { Finding } from '@muster/diagnosis/failure/finding';
import type { ProcessEnd } from '@muster/diagnosis/failure/judge';
import { readTaskFile } from '../taskFile.ts';

/** Enough for the tracebacks of a node's ranks, and read in a tenth of a second; bounded, because output is not. */
const tailBytesMax = 4 * 1024 * 1024;
/** Counting the lines before it must not hold up the agent either: of more, the number of a line stays unknown. */
const countedBytesMax = 64 * 1024 * 1024;
const chunkBytes = 256 * 1024;
const lineFeed = 0x0a;

/** @returns null: the output says nothing, is not there, or is not to be read */
export function findingInOutput(path: string, end: ProcessEnd): Finding | null {
  try {
    return readTaskFile(path, (file, stat) => findingIn(file, stat, end));
  } catch {
    return null;
  }
}

function findingIn(file: number, { size }: Stats, end: ProcessEnd): Finding | null {
  const tailFrom = Math.max(0, size - tailBytesMax);
  const isCounted = tailFrom <= countedBytesMax;
  let linesBefore = 0;
  if (isCounted) for (const bytes of chunksOf(file, 0, tailFrom)) linesBefore += lineFeedsIn(bytes);
  const log = new LogDiagnosis({ linesBefore });
  for (const bytes of chunksOf(file, tailFrom, size)) log.feed(bytes);
  log.end();
  const found = log.finding(end);
  // Without a line it is known from the end alone.
  if (found === null || found.evidence.line === null) return null;
  return isCounted ? found : { ...found, evidence: { ...found.evidence, line: null } };
}

/** Each chunk is gone with the next one. */
function* chunksOf(file: number, from: number, to: number): Generator<Buffer> {
  const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, Math.max(1, to - from)));
  for (let at = from; at < to; ) {
    const read = readSync(file, buffer, 0, Math.min(buffer.length, to - at), at);
    if (read === 0) return;
    yield buffer.subarray(0, read);
    at += read;
  }
}

function lineFeedsIn(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(lineFeed); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) count += 1;
  return count;
}
