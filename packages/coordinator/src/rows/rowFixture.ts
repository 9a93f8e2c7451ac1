/** Rows for tests, and a store of them in a directory of its own. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TaskRef } from '@muster/common/ids';
import type { TrainingRow, TrainingValues } from '@muster/common/training';
import { onTestFinished } from 'vitest';
import { jobIdOf } from '../modelFixture.ts';
import type { StoredRow } from './rowFormat.ts';
import { RowStore } from './rowStore.ts';

export const someTask: TaskRef = { jobId: jobIdOf(1), attempt: 1, nodeRank: 0 };
export const rowsAtMs = 1_700_000_000_000;

export function aDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'rows-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

export function aRowStore(directory = aDirectory(), errors: unknown[] = []): RowStore {
  return new RowStore(directory, (_jobId, error) => errors.push(error));
}

/** At steps `from` to `to - 1`, at positions of a hundred bytes each; the loss is 1 / (step + 1). */
export function someRows(from: number, to: number, more: TrainingValues = {}): readonly TrainingRow[] {
  return Array.from({ length: to - from }, (_, index) => {
    const step = from + index;
    return {
      position: (step + 1) * 100,
      atMs: rowsAtMs + step * 1_000,
      values: { train_loss: 1 / (step + 1), step, ...more },
      lossNotFinite: false,
    };
  });
}

/** Everything that a store has of a job, in order. */
export async function storedRows(store: RowStore, { jobId } = someTask): Promise<readonly StoredRow[]> {
  const rows: StoredRow[] = [];
  await store.lookAt(jobId, ({ read }) => read((frame) => rows.push(...frame.rows)));
  return rows;
}

export async function isThinned(store: RowStore, { jobId } = someTask): Promise<boolean | null> {
  return store.lookAt(jobId, async (rows) => rows.isThinned);
}
