/** What the output of a task shows of its failure: the rules of @muster/diagnosis over its last part. */
import { readSync, type Stats } from 'node:fs';
import { LogDiagnosis } from '@muster/diagnosis/diagnose';
import type { FailureFinding } from '@muster/diagnosis/failure/finding';
import type { ProcessEnd } from '@muster/diagnosis/failure/judge';
import { readTaskFile } from '../taskFacts/taskFile.ts';

/** Enough for the tracebacks of a node's ranks; bounded, because output is not. */
const tailBytesMax = 4 * 1024 * 1024;
/** Of more lines before it, the number of a line stays unknown. */
const countedBytesMax = 64 * 1024 * 1024;
/** The budget is looked at after each. */
const chunkBytes = 64 * 1024;
const lineFeed = 0x0a;

/** Reading has taken as long as it may. */
export class OverBudget extends Error {
  constructor() {
    super('the output could not be read within its budget');
  }
}

/**
 * @param isSpent whether reading has taken as long as it may
 * @returns null: the output shows nothing, is not there, or is not to be read
 * @throws {OverBudget}
 */
export function findingInOutput(
  path: string,
  end: ProcessEnd,
  isSpent: () => boolean,
): FailureFinding | null {
  try {
    return readTaskFile(path, (file, stat) => findingIn(file, stat, end, isSpent));
  } catch (error) {
    if (error instanceof OverBudget) throw error;
    return null;
  }
}

function findingIn(
  file: number,
  { size }: Stats,
  end: ProcessEnd,
  isSpent: () => boolean,
): FailureFinding | null {
  const tailFrom = Math.max(0, size - tailBytesMax);
  const log = new LogDiagnosis();
  for (const bytes of chunksOf(file, tailFrom, size)) {
    if (isSpent()) throw new OverBudget();
    log.feed(bytes);
  }
  log.end();
  const found = log.finding(end);
  // Without a line it is known from the end alone.
  if (found === null || found.evidence.line === null) return null;
  const linesBefore = countLines(file, tailFrom, isSpent);
  const line = linesBefore === null ? null : linesBefore + found.evidence.line;
  return { ...found, evidence: { ...found.evidence, line } };
}

/** @returns null: there are too many to be counted */
function countLines(file: number, to: number, isSpent: () => boolean): number | null {
  if (to > countedBytesMax) return null;
  let count = 0;
  for (const bytes of chunksOf(file, 0, to)) {
    if (isSpent()) return null;
    // A search for each would cost fifty times as much where every byte is a line feed.
    for (const byte of bytes) if (byte === lineFeed) count += 1;
  }
  return count;
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
