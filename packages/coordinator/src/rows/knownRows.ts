/** What the store remembers of a job's file, and how it is read from one. */
import type { FileHandle } from 'node:fs/promises';
import type { TaskRef } from '@muster/common/ids';
import type { TrainingRow } from '@muster/common/training';
import { excessOf, type ValueCounts, ValueTally } from '@muster/common/valueCounts';
import { readFrames, readHead } from './frameFile.ts';
import {
  type EndMark,
  type Frame,
  frameRowsMax,
  nothingOmitted,
  type Omitted,
  type StoredRow,
} from './rowFormat.ts';
import { countValues } from './thinning.ts';

/** What is known of a task up to its newest row. */
interface RowEnd {
  readonly position: number;
  /** Epoch milliseconds. */
  readonly atMs: number;
  /** Highest step in the rows. null: they have none. */
  readonly step: number | null;
  /** Values in the rows of the file, and those omitted: what the program has printed up to here. */
  readonly printed: ValueCounts;
  readonly omitted: Omitted;
}

/** What an agent has found in the output of a task, up to a row. */
export interface SentRows {
  /** Values in its lines, those in rows that the agent has dropped included. */
  readonly printed: ValueCounts;
  /** Output that the agent has not read for metrics. */
  readonly unreadBytes: number;
}

export const nothingSent: SentRows = { printed: {}, unreadBytes: 0 };

/** What the rows of a task lack. */
export interface OmittedOfTask extends Omitted {
  readonly attempt: number;
  readonly nodeRank: number;
}

/** What is known of a job's file. */
export interface Known {
  /** Up to the end of the last whole frame. */
  bytes: number;
  isThinned: boolean;
  /** By attempt and rank. */
  readonly ends: Map<string, RowEnd>;
  /** By attempt and rank, of the tasks whose agents have sent one. */
  readonly marks: Map<string, EndMark>;
  /** By attempt: the lowest step in its rows. */
  readonly firstSteps: Map<number, number>;
  /** What a crash has left behind the last frame is still there. */
  hasRest: boolean;
  /** An older release has begun the file. */
  isOlder: boolean;
  /** Thinning leaves a file below this alone: what is kept in any case takes more than the share. */
  floorBytes: number;
}

export function newKnown(): Known {
  return {
    bytes: 0,
    isThinned: false,
    hasRest: false,
    isOlder: false,
    floorBytes: 0,
    ends: new Map(),
    marks: new Map(),
    firstSteps: new Map(),
  };
}

/** Reads a file once from its beginning to the end of its last whole frame. */
export async function readKnown(file: FileHandle): Promise<Known> {
  const known = newKnown();
  const { size } = await file.stat();
  const head = await readHead(file);
  known.hasRest = size > 0;
  if (head === null) return known;
  known.isThinned = head.isThinned;
  known.isOlder = head.isOlder;
  const tallies = new Map<string, ValueTally>();
  known.bytes = await readFrames(file, size, (frame) => {
    const key = taskRowsKey(frame);
    if (frame.end !== undefined) {
      known.marks.set(key, frame.end);
      return;
    }
    const before = known.ends.get(key) ?? noEnd;
    const tally = tallies.get(key) ?? new ValueTally();
    tallies.set(key, tally);
    for (const row of frame.rows) countValues(tally, row);
    const { position, rows, omitted = before.omitted } = frame;
    const step = rows.reduce((highest, { values }) => higher(highest, values.step), before.step);
    known.ends.set(key, { position, atMs: rows.at(-1)?.atMs ?? before.atMs, step, printed: {}, omitted });
    noteSteps(known, frame.attempt, rows);
  });
  for (const [key, end] of known.ends) {
    const tally = tallies.get(key) ?? new ValueTally();
    tally.addAll(end.omitted.values);
    known.ends.set(key, { ...end, printed: tally.counts });
  }
  known.hasRest = known.bytes < size;
  return known;
}

export function taskRowsKey({ attempt, nodeRank }: Pick<TaskRef, 'attempt' | 'nodeRank'>): string {
  return `${attempt}.${nodeRank}`;
}

const noEnd: RowEnd = { position: 0, atMs: 0, step: null, printed: {}, omitted: nothingOmitted };

export function higher(highest: number | null, step: number | undefined): number | null {
  return step === undefined || (highest !== null && highest >= step) ? highest : step;
}

/** How far the rows of a task are here. */
export interface RowsHere extends Pick<RowEnd, 'position' | 'step'> {
  /** Null if its agent has sent no mark of their end. */
  readonly mark: EndMark | null;
}

export function rowsHere(known: Known, task: TaskRef): RowsHere {
  const { position, step } = rowEndOf(known, task);
  return { position, step, mark: known.marks.get(taskRowsKey(task)) ?? null };
}

/** @returns the mark behind the last row of a task */
export function markOf(
  known: Known,
  { attempt, nodeRank }: Pick<TaskRef, 'attempt' | 'nodeRank'>,
  end: EndMark,
): Frame {
  const position = known.ends.get(taskRowsKey({ attempt, nodeRank }))?.position ?? 0;
  return { attempt, nodeRank, position, rows: [], end };
}

/** @returns the marks of all tasks */
export function marksOf(known: Known): readonly Frame[] {
  return Array.from(known.marks, ([key, end]) => {
    const [attempt = 0, nodeRank = 0] = key.split('.').map(Number);
    return markOf(known, { attempt, nodeRank }, end);
  });
}

export function rowEndOf({ ends }: Known, task: TaskRef): RowEnd {
  return ends.get(taskRowsKey(task)) ?? noEnd;
}

/** @returns what a task lacks after rows with which it has `counted` values; null: as much as before them */
export function omittedAfter(before: Omitted, counted: ValueCounts, sent: SentRows): Omitted | null {
  const more = excessOf(sent.printed, counted);
  const isMore = Object.keys(more).length > 0 || sent.unreadBytes > before.unreadBytes;
  if (!isMore) return null;
  const tally = new ValueTally(before.values);
  tally.addAll(more);
  return { values: tally.counts, unreadBytes: Math.max(before.unreadBytes, sent.unreadBytes) };
}

export function omittedOf(ends: ReadonlyMap<string, RowEnd>): readonly OmittedOfTask[] {
  return Array.from(ends).flatMap(([key, { omitted }]) => {
    if (omitted === nothingOmitted) return [];
    const [attempt = 0, nodeRank = 0] = key.split('.').map(Number);
    return [{ attempt, nodeRank, ...omitted }];
  });
}

export function noteSteps({ firstSteps }: Known, attempt: number, rows: readonly StoredRow[]): void {
  for (const { values, bucket } of rows) {
    const step = bucket?.firstStep ?? values.step;
    if (step === undefined) continue;
    const first = firstSteps.get(attempt);
    if (first === undefined || step < first) firstSteps.set(attempt, step);
  }
}

/** @param end position up to which the rows are, for a frame without any @returns at least one frame; the last has `omitted` */
export function framesOf(
  { attempt, nodeRank }: TaskRef,
  rows: readonly TrainingRow[],
  end: number,
  omitted: Omitted | null,
): readonly Frame[] {
  const frames: Frame[] = [];
  for (let from = 0; from === 0 || from < rows.length; from += frameRowsMax) {
    const piece = rows.slice(from, from + frameRowsMax);
    const position = piece.at(-1)?.position ?? end;
    const isLast = from + frameRowsMax >= rows.length;
    const frame = { attempt, nodeRank, position, rows: piece.map(storedRow) };
    frames.push(isLast && omitted !== null ? { ...frame, omitted } : frame);
  }
  return frames;
}

function storedRow({ atMs, values, lossNotFinite, alsoNotFinite = [] }: TrainingRow): StoredRow {
  const row = { atMs, values, notFinite: lossNotFinite ? 1 : 0, bucket: null };
  return alsoNotFinite.length === 0 ? row : { ...row, alsoNotFinite };
}
