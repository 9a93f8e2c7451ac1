/** What is not kept of the output of an attempt, in sentences for people. */

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TaskRef } from '@muster/common/ids';
import { gapReasons } from './gapMarker.ts';
import { bytesIn, type NamedSegment, segmentName, segmentsIn } from './segments.ts';

/** @param directory of the job's logs */
export async function outputLosses(directory: string, attempt: number): Promise<readonly string[]> {
  const segments = (await segmentsIn(directory)).filter((each) => each.attempt === attempt);
  const byRank = Map.groupBy(
    segments.toSorted((one, other) => one.start - other.start),
    ({ nodeRank }) => nodeRank,
  );
  const losses: string[] = [];
  for (const [nodeRank, own] of [...byRank].sort(([one], [other]) => one - other)) {
    const missing = await missingBytes(directory, own);
    const reason = own.findLast((each) => each.start > 0 && each.reason !== null)?.reason;
    if (missing === 0 || reason == null) continue;
    losses.push(`${missing} bytes of rank ${nodeRank}'s output were ${gapReasons[reason]}.`);
  }
  return losses;
}

/** Between the end of each file, or the beginning, and the next file. */
async function missingBytes(directory: string, segments: readonly NamedSegment[]): Promise<number> {
  let missing = 0;
  let end = 0;
  for (const segment of segments) {
    missing += segment.start - end;
    end = segment.start + (await bytesIn(directory, segmentName(segment, segment)));
  }
  return missing;
}

/** `truncated`: some of it was dropped; `throttled`: the task writes faster than it may. */
export type OutputLossKind = 'truncated' | 'throttled';

/** @returns whether it is the first time */
export async function noteOnce(
  directory: string,
  { attempt, nodeRank }: Omit<TaskRef, 'jobId'>,
  what: OutputLossKind,
): Promise<boolean> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  try {
    await writeFile(join(directory, `${attempt}.${nodeRank}.${what}`), '', { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}
