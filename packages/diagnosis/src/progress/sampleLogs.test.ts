/** Logs of real programs with what a reader should find in them, where a checkout has them beside it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TrainingSign } from '@muster/common/training';
import { expect, test } from 'vitest';
import { linesOf } from '../lines/lineReader.ts';
import { TrendWatch } from '../signs/trend.ts';
import { ProgressReader, type ProgressRow } from './progressReader.ts';
import type { SaveMention } from './saves.ts';

const folder = join(import.meta.dirname, '../../../../../shared/fixtures/logs');
const samples = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.log')) : [];

interface Expected {
  readonly framework: string | null;
  readonly metric_rows: number;
  readonly first?: Readonly<Record<string, unknown>>;
  readonly last?: Readonly<Record<string, unknown>>;
  readonly loss_series?: readonly (readonly [number, number])[];
  readonly events?: readonly { readonly path: string }[];
  readonly failure: {
    readonly category: string;
    readonly step?: number;
    readonly last_good_step?: number;
    readonly evidence: string;
    readonly evidence_line: number;
  } | null;
}

const signCategories = ['nan_loss', 'loss_divergence', 'loss_spike', 'loss_scale_exhausted'];

/** What their series have: the epoch where a line itself has no step. */
function placeOf({ step, num_updates: updates, epoch }: ProgressRow['values']): unknown {
  return step ?? updates ?? epoch;
}

test('every sample says what should be found in it', () => {
  expect(samples.filter((name) => !existsSync(join(folder, name.replace(/log$/, 'json'))))).toEqual([]);
});

test.each(samples)('%s', (name) => {
  const expected = JSON.parse(readFileSync(join(folder, name.replace(/log$/, 'json')), 'utf8')) as Expected;
  const signs: TrainingSign[] = [];
  const saves: SaveMention[] = [];
  const losses: (readonly [unknown, number])[] = [];
  const reader = new ProgressReader({ onSave: (save) => saves.push(save) });
  const trend = new TrendWatch();
  for (const line of linesOf(readFileSync(join(folder, name)))) {
    const row = reader.line(line);
    signs.push(...(row === null ? trend.line(line) : trend.row(row)));
    const loss = row?.canonical.train_loss;
    if (row !== null && loss !== undefined) losses.push([placeOf(row.values), loss]);
  }

  expect(reader.framework).toBe(expected.framework);
  expect(reader.rows).toBe(expected.metric_rows);
  expect(reader.first?.values).toEqual(expected.first);
  expect(reader.last?.values).toEqual(expected.last);
  if (expected.loss_series !== undefined) expect(losses).toEqual(expected.loss_series);
  expect(saves.map(({ path }) => path)).toEqual((expected.events ?? []).map(({ path }) => path));

  const { failure } = expected;
  if (failure === null || !signCategories.includes(failure.category)) expect(signs).toEqual([]);
  else {
    expect(signs).toMatchObject([
      { kind: failure.category, step: failure.step, line: failure.evidence_line },
    ]);
    expect(signs[0]?.text).toContain(failure.evidence);
    if (failure.last_good_step !== undefined) expect(signs[0]?.lastGoodStep).toBe(failure.last_good_step);
  }
});
