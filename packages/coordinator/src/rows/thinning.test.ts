import { type TrainingMetricName, type TrainingRow, trainingMetricNames } from '@muster/common/training';
import { ValueTally } from '@muster/common/valueCounts';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { rowFilter } from './curve.ts';
import { aDirectory, aRowStore, rowsAtMs, someTask } from './rowFixture.ts';
import type { RowStore } from './rowStore.ts';
import { Summaries } from './summaries.ts';

const laterMs = rowsAtMs + 10 ** 9;
const everyRow = {
  fromMs: 0,
  toMs: Number.MAX_SAFE_INTEGER,
  attempt: null,
  superseded: true,
} as const;

/** A line: for some metrics a value of few, so that extremes tie, or none that is finite. */
const line = fc.dictionary(
  fc.constantFrom(...trainingMetricNames.filter((name) => name !== 'step')),
  fc.option(fc.integer({ min: -3, max: 3 }), { freq: 6 }),
  { maxKeys: 4 },
) as fc.Arbitrary<Partial<Record<TrainingMetricName, number | null>>>;

/** A short pattern many times, with lines of its own somewhere in it: what a training prints. */
const output = fc
  .record({
    pattern: fc.array(line, { minLength: 1, maxLength: 5 }),
    times: fc.integer({ min: 1, max: 300 }),
    special: fc.array(fc.tuple(fc.nat(1_500), line), { maxLength: 6 }),
    hasSteps: fc.boolean(),
  })
  .map(({ pattern, times, special, hasSteps }) => {
    const lines = Array.from(
      { length: pattern.length * times },
      (_, at) => pattern[at % pattern.length] ?? {},
    );
    for (const [at, each] of special) lines.splice(at % (lines.length + 1), 0, each);
    return lines.map((each, at) => rowOf(each, at, hasSteps));
  });

function rowOf(
  values: Partial<Record<TrainingMetricName, number | null>>,
  at: number,
  hasStep: boolean,
): TrainingRow {
  const finite = Object.entries(values).filter(([, value]) => value !== null);
  const others = trainingMetricNames.filter((name) => values[name] === null && name !== 'train_loss');
  return {
    position: (at + 1) * 50,
    atMs: rowsAtMs + at,
    values: { ...Object.fromEntries(finite), ...(hasStep ? { step: at * 2 } : {}) },
    lossNotFinite: values.train_loss === null,
    ...(others.length === 0 ? {} : { alsoNotFinite: others }),
  };
}

/** What must be known of a series, from all of its rows. */
function truthOf(name: TrainingMetricName, rows: readonly TrainingRow[]) {
  const own = rows.flatMap((row) => {
    const isNaN = name === 'train_loss' ? row.lossNotFinite : (row.alsoNotFinite?.includes(name) ?? false);
    const value = row.values[name];
    return value === undefined && !isNaN ? [] : [{ value: value ?? null, step: row.values.step ?? null }];
  });
  const finite = own.flatMap(({ value }) => value ?? []);
  const placeOf = (wanted: number | null) => own.find(({ value }) => value === wanted)?.step ?? null;
  const [least, greatest] = finite.length === 0 ? [null, null] : [Math.min(...finite), Math.max(...finite)];
  return {
    first: own[0]?.value ?? null,
    firstStep: own[0]?.step ?? null,
    last: own.at(-1)?.value ?? null,
    lastStep: own.at(-1)?.step ?? null,
    least,
    leastStep: least === null ? null : placeOf(least),
    greatest,
    greatestStep: greatest === null ? null : placeOf(greatest),
    notFinite: own.length - finite.length,
    notFiniteStep: placeOf(null),
    printed: own.length,
  };
}

async function summariesOf(store: RowStore) {
  const found = await store.lookAt(someTask.jobId, async ({ firstSteps, omitted, read }) => {
    const summaries = new Summaries(rowFilter(everyRow, firstSteps), omitted);
    await read((frame) => summaries.take(frame));
    return summaries.metrics;
  });
  return found ?? [];
}

/** Checks every series that the rows show. */
async function expectTruth(store: RowStore, rows: readonly TrainingRow[]): Promise<void> {
  const found = await summariesOf(store);
  for (const name of trainingMetricNames) {
    const truth = truthOf(name, rows);
    const summary = found.find((each) => each.name === name);
    if (truth.printed === 0) {
      expect(summary).toBeUndefined();
      continue;
    }
    const { printed, ...exact } = truth;
    expect(summary, name).toMatchObject(exact);
    expect((summary?.rows ?? 0) + (summary?.omitted ?? 0), name).toBe(printed);
  }
}

test('whatever is printed and however small the budget is, ends, extremes and the first NaN stay, and counts add up', async () => {
  await fc.assert(
    fc.asyncProperty(
      output,
      fc.integer({ min: 40, max: 40_000 }),
      fc.integer({ min: 1, max: 700 }),
      async (rows, shareBytes, batch) => {
        const directory = aDirectory();
        let store = aRowStore(directory);
        for (let from = 0; from < rows.length; from += batch) {
          await store.append(someTask, rows.slice(from, from + batch), shareBytes, laterMs);
          // A restart knows what the file says, and nothing else.
          if (from % (3 * batch) === 0) store = aRowStore(directory);
        }
        await store.keepTo(someTask.jobId, shareBytes);
        await expectTruth(store, rows);
        await store.keepTo(someTask.jobId, shareBytes / 3);
        await expectTruth(aRowStore(directory), rows);
      },
    ),
    { numRuns: 150 },
  );
});

test('rows that the agent has dropped are omitted, once, however often the batch comes and across restarts', async () => {
  await fc.assert(
    fc.asyncProperty(
      output,
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 300, max: 20_000 }),
      async (rows, stride, shareBytes) => {
        const directory = aDirectory();
        let store = aRowStore(directory);
        const printed = new ValueTally();
        let batch: TrainingRow[] = [];
        for (const [at, row] of rows.entries()) {
          printed.addRow(row);
          if (at % stride === 0 || at === rows.length - 1) batch.push(row);
          if (batch.length < 100 && at < rows.length - 1) continue;
          const sent = { printed: printed.counts, unreadBytes: at };
          for (const _time of [1, 2]) await store.append(someTask, batch, shareBytes, laterMs, sent);
          store = aRowStore(directory);
          expect(await store.received(someTask)).toEqual({ position: batch.at(-1)?.position, ...sent });
          batch = [];
        }
        for (const { name, rows: kept, omitted, notFinite } of await summariesOf(store)) {
          const truth = truthOf(name, rows);
          expect([kept + omitted, notFinite]).toEqual([truth.printed, truth.notFinite]);
        }
      },
    ),
    { numRuns: 60 },
  );
});

test('a value that stands once among a hundred thousand keeps its step', async () => {
  const store = aRowStore();
  const rows = Array.from({ length: 90_000 }, (_, step): TrainingRow => {
    const values = {
      step,
      train_loss: step === 45_007 ? 0.01 : 1 + (step % 7) / 10,
      grad_norm: step === 45_003 ? 999 : 1,
      ...(step % 2 === 0 ? { eval_loss: step === 45_002 ? 0.1 : 0.5 } : {}),
    };
    return { position: step + 1, atMs: rowsAtMs, values, lossNotFinite: false };
  });
  const nan = { step: 45_008, grad_norm: 1, eval_loss: 0.5 };
  rows[45_008] = { position: 45_009, atMs: rowsAtMs, values: nan, lossNotFinite: true };
  for (let from = 0; from < rows.length; from += 512)
    await store.append(someTask, rows.slice(from, from + 512), 1_000_000, laterMs);
  expect(store.grownBytes).toBeLessThanOrEqual(1_000_000);
  const found = await summariesOf(store);
  const of = (name: TrainingMetricName) => found.find((each) => each.name === name);
  expect(of('train_loss')).toMatchObject({
    best: 0.01,
    bestStep: 45_007,
    notFinite: 1,
    notFiniteStep: 45_008,
  });
  expect(of('eval_loss')).toMatchObject({ best: 0.1, bestStep: 45_002, lastStep: 89_998 });
  expect(of('grad_norm')).toMatchObject({ greatest: 999, greatestStep: 45_003 });
  expect(of('grad_norm')?.omitted).toBeGreaterThan(1_000);
  const omitted = found.reduce((sum, each) => sum + each.omitted, 0);
  expect(store.omittedValues).toEqual({ too_fast: 0, thinned: omitted });
});
