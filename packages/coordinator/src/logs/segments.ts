/**
 * The output of one task on disk: files that each hold the bytes from a certain position on.
 *
 *     1.0.log                  attempt 1, node rank 0, from its first byte
 *     1.0.8388608.cap.log      from byte 8,388,608 on; what lacks before it was more than is kept of one task
 *
 * What is between the end of one file and the beginning of the next was dropped, and the later name says why. Where the
 * last file ends is the protocol's whole state, so dropping anything never changes where an agent goes on.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { TaskRef } from '@muster/common/ids';

/**
 * Why output is not here: `cap`: more than is kept of one task; `node`: its node had dropped it, for the same reason;
 * `budget`: the logs of ended jobs were removed to make room for others; `removed`: somebody removed it.
 */
export type LossReason = 'cap' | 'node' | 'budget' | 'removed';

export interface Segment {
  /** Position of its first byte in the output of the task. */
  readonly start: number;
  /** Why what lacks before it does; of no meaning where nothing lacks. null: it is the beginning. */
  readonly reason: LossReason | null;
}

const form = /^(\d+)\.(\d+)\.(?:(\d+)\.(cap|node|budget|removed)\.)?log$/;

export const beginning: Segment = { start: 0, reason: null };

export function segmentName({ attempt, nodeRank }: Omit<TaskRef, 'jobId'>, segment: Segment): string {
  const place = segment.reason === null ? '' : `${segment.start}.${segment.reason}.`;
  return `${attempt}.${nodeRank}.${place}log`;
}

export interface NamedSegment extends Segment {
  readonly attempt: number;
  readonly nodeRank: number;
}

/** null: a file of something else. */
export function parseSegmentName(name: string): NamedSegment | null {
  const match = form.exec(name);
  if (match === null) return null;
  const [, attempt, nodeRank, start, reason] = match;
  return {
    attempt: Number(attempt),
    nodeRank: Number(nodeRank),
    start: Number(start ?? 0),
    reason: (reason as LossReason | undefined) ?? null,
  };
}

/** Of one job, in no order; empty when there is no such directory. */
export async function segmentsIn(directory: string): Promise<readonly NamedSegment[]> {
  try {
    return (await readdir(directory)).flatMap((name) => parseSegmentName(name) ?? []);
  } catch (error) {
    if (isFileMissing(error)) return [];
    throw error;
  }
}

/** Of one task, in the order of their positions; at least one, which need not be on disk yet. */
export async function segmentsOf(
  directory: string,
  { attempt, nodeRank }: Omit<TaskRef, 'jobId'>,
): Promise<readonly Segment[]> {
  const all = await segmentsIn(directory);
  const own = all.filter((each) => each.attempt === attempt && each.nodeRank === nodeRank);
  const sorted = own
    .map(({ start, reason }): Segment => ({ start, reason }))
    .sort((one, other) => one.start - other.start);
  return sorted.length === 0 ? [beginning] : sorted;
}

/** Bytes in a file; 0 when it is not there (any more). */
export async function bytesIn(directory: string, name: string): Promise<number> {
  try {
    return (await stat(join(directory, name))).size;
  } catch (error) {
    if (isFileMissing(error)) return 0;
    throw error;
  }
}

export function isFileMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');
}
