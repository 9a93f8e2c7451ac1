/**
 * What is done to the output file of a task, noted beside it. It is noted before it is done: a reader of the
 * file first and this afterwards never takes a hole for output.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { writeFileAtomically } from '@muster/common/files';
import { readTaskFile } from '../taskFacts/taskFile.ts';

export interface OutputRecord {
  /** Positions of the first byte that was dropped and of the first that is there again. null: none was. */
  readonly dropped: { readonly from: number; readonly to: number } | null;
  /** The task was stopped for moments, because it wrote faster than it may. */
  readonly heldBack: boolean;
  /** The file is a copy that the agent makes, and not written by the task itself. */
  readonly copied: boolean;
}

export const untouched: OutputRecord = { dropped: null, heldBack: false, copied: false };

const recordVersion = 1;
/** Of the file, bytes; a larger one is none of ours. */
const sizeMax = 1_024;

/** @param outputPath of the file that it is about */
export function readOutputRecord(outputPath: string): OutputRecord {
  let stored: unknown;
  try {
    const text = readTaskFile(recordPath(outputPath), (file, { size }) =>
      size > sizeMax ? '' : readFileSync(file, 'utf8'),
    );
    stored = JSON.parse(text);
  } catch {
    // Not there, or something that the task has put in its place: what it loses by that is its own.
    return untouched;
  }
  if (typeof stored !== 'object' || stored === null) return untouched;
  const { dropped, heldBack, copied } = stored as Partial<Record<keyof OutputRecord, unknown>>;
  return { dropped: rangeOf(dropped), heldBack: heldBack === true, copied: copied === true };
}

/** @throws {Error} when it cannot be written */
export function writeOutputRecord(outputPath: string, record: OutputRecord): void {
  writeFileAtomically(
    recordPath(outputPath),
    `${JSON.stringify({ version: recordVersion, ...record })}\n`,
    0o600,
  );
}

function recordPath(outputPath: string): string {
  return join(dirname(outputPath), 'output.json');
}

function rangeOf(value: unknown): OutputRecord['dropped'] {
  if (typeof value !== 'object' || value === null) return null;
  const { from, to } = value as { from?: unknown; to?: unknown };
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to)) return null;
  const range = { from: from as number, to: to as number };
  return range.from >= 0 && range.from < range.to ? range : null;
}
