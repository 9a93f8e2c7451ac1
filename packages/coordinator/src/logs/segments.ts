/**
 * The output of one task on disk: files that each hold the bytes from a certain position on.
 *
 *     1.0.log                  attempt 1, node rank 0, from its first byte
 *     1.0.8388608.cap.log      from byte 8,388,608 on; the bytes missing before it exceeded the limit for one task
 *
 * The bytes between the end of one file and the beginning of the next were dropped, and the later name has the reason. The end
 * of the last file is the whole state of the protocol, so dropping anything never changes where an agent continues.
 */
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TaskRef } from '@muster/common/ids';
import { outputMark } from '@muster/common/outputMark';

/** Why output is missing, with a text that follows the number of missing bytes. */
const gapReasons = {
  cap: 'dropped: more than the coordinator keeps of one task',
  node: 'dropped: more than its node keeps of one task',
  budget: 'removed: the budget of logs is used up',
  removed: 'removed',
} as const;
export type LossReason = keyof typeof gapReasons;

/** Missing output from some position on. */
export interface Gap {
  /** The position at which output continues. */
  readonly to: number;
  readonly reason: LossReason;
}

export interface Segment {
  /** Position of its first byte in the output of the task. */
  readonly start: number;
  /** Why bytes before it are missing, if any are. null: it is the beginning. */
  readonly reason: LossReason | null;
}

const beginning: Segment = { start: 0, reason: null };

type TaskOfJob = Omit<TaskRef, 'jobId'>;
type NamedSegment = Segment & TaskOfJob;

const form = /^(\d+)\.(\d+)\.(?:(\d+)\.(cap|node|budget|removed)\.)?log$/;

export function segmentName({ attempt, nodeRank }: TaskOfJob, segment: Segment): string {
  const place = segment.reason === null ? '' : `${segment.start}.${segment.reason}.`;
  return `${attempt}.${nodeRank}.${place}log`;
}

/** The segments of one job, by position; empty if the directory does not exist. */
export async function segmentsIn(directory: string): Promise<readonly NamedSegment[]> {
  const segments = (await ifThere(readdir(directory), [])).flatMap((name): NamedSegment[] => {
    const match = form.exec(name);
    if (match === null) return [];
    const [, attempt, nodeRank, start = 0, reason = null] = match;
    return [
      {
        attempt: Number(attempt),
        nodeRank: Number(nodeRank),
        start: Number(start),
        reason: reason as LossReason | null,
      },
    ];
  });
  return segments.sort((one, other) => one.start - other.start);
}

/** The segments of one task, by position; at least one, which need not be on disk yet. */
export async function segmentsOf(
  directory: string,
  { attempt, nodeRank }: TaskOfJob,
): Promise<readonly Segment[]> {
  const all = await segmentsIn(directory);
  const own = all.filter((each) => each.attempt === attempt && each.nodeRank === nodeRank);
  return own.length === 0 ? [beginning] : own.map(({ start, reason }) => ({ start, reason }));
}

/** The size of a segment in bytes; 0 if it no longer exists. */
export async function bytesIn(directory: string, task: TaskOfJob, segment: Segment): Promise<number> {
  return (await ifThere(stat(join(directory, segmentName(task, segment))), null))?.size ?? 0;
}

/** @returns the result, or `otherwise` if the file or directory does not exist */
export async function ifThere<T, U>(result: Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await result;
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return otherwise;
    throw error;
  }
}

/** A task whose output is being written; sizes are kept here, so that appending needs no look at the disk. */
export interface Target {
  readonly task: TaskRef;
  /** By position; the last one is written. */
  segments: readonly Segment[];
  /** Bytes in all of them but the last. */
  earlierBytes: number;
  file: FileHandle;
  /** Bytes in the last one. */
  size: number;
}

/** The bytes that are kept of the output. */
export function bytesOfAll({ earlierBytes, size }: Target): number {
  return earlierBytes + size;
}

/** The position at which the output continues. */
export function endOf({ segments, size }: Target): number {
  return lastOf(segments).start + size;
}

export function lastOf(segments: readonly Segment[]): Segment {
  return segments.at(-1) ?? beginning;
}

/** Opens a file, and makes it if it does not exist; its content stays. */
export function openToWrite(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDWR | constants.O_CREAT, 0o600);
}

/** The names in the directory are on disk when this resolves. */
export async function syncLogDirectory(path: string): Promise<void> {
  await using directory = await open(path, 'r');
  await directory.sync();
}

/** A sentence for each rank of which output is missing. @param directory of the job's logs */
export async function outputLosses(directory: string, attempt: number): Promise<readonly string[]> {
  const segments = (await segmentsIn(directory)).filter((each) => each.attempt === attempt);
  const byRank = Map.groupBy(segments, ({ nodeRank }) => nodeRank);
  const losses: string[] = [];
  for (const [nodeRank, own] of [...byRank].sort(([one], [other]) => one - other)) {
    let missing = 0;
    let end = 0;
    for (const segment of own) {
      missing += segment.start - end;
      end = segment.start + (await bytesIn(directory, segment, segment));
    }
    const reason = own.findLast((each) => each.start > 0 && each.reason !== null)?.reason;
    if (missing === 0 || reason == null) continue;
    losses.push(`${missing} bytes of rank ${nodeRank}'s output were ${gapReasons[reason]}.`);
  }
  return losses;
}

/** The line that stands in an output in place of missing bytes. @returns no more bytes than are missing */
export function gapMarker(from: number, { to, reason }: Gap): Buffer {
  const missing = to - from;
  const lead = from === 0 ? '' : '\n';
  const text = Buffer.from(`${lead}${outputMark} ${missing} bytes of output were ${gapReasons[reason]}\n`);
  return text.subarray(0, missing);
}

/** `truncated`: some of the output was dropped; `throttled`: the task writes faster than it may. */
export type OutputLossKind = 'truncated' | 'throttled';

/** @returns whether it is the first time, also over restarts */
export async function noteOnce(
  directory: string,
  { attempt, nodeRank }: TaskOfJob,
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

/**
 * The time at which output of an attempt last arrived, by the times of its files, which outlive a restart.
 *
 * @param directory of the job's logs
 * @returns epoch milliseconds by the coordinator's clock; null: nothing has arrived, or nothing of it is kept
 */
export async function outputAtMs(directory: string, attempt: number): Promise<number | null> {
  let newestMs: number | null = null;
  for (const segment of await segmentsIn(directory)) {
    // The rest of removed output has the time of the removal.
    const isRemoved = segment.reason === 'budget' || segment.reason === 'removed';
    if (segment.attempt !== attempt || isRemoved) continue;
    const file = await ifThere(stat(join(directory, segmentName(segment, segment))), null);
    if (file !== null && file.size > 0) newestMs = Math.max(newestMs ?? 0, Math.floor(file.mtimeMs));
  }
  return newestMs;
}
