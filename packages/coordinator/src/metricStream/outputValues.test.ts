import type { TaskRef } from '@muster/common/ids';
import type { TrainingRow } from '@muster/common/training';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
import { Positions } from '../metricQuery/positions.ts';
import { someRows } from '../rows/rowFixture.ts';
import { RowStore } from '../rows/rowStore.ts';
import { runningJobId } from '../telemetry/telemetryFixture.ts';
import { Arrivals } from './arrivals.ts';
import { type FollowOptions, followValues, type ValueUpdate } from './followValues.ts';
import { OutputValues } from './outputValues.ts';

const wideShare = 1e9;
const task: TaskRef = { jobId: runningJobId, attempt: 1, nodeRank: 0 };
const of = { jobId: runningJobId, name: 'train_loss' } as const;

let rows: RowStore;
let arrivals: Arrivals;
const over = { controller: new AbortController() };
beforeEach(() => {
  over.controller = new AbortController();
  arrivals = new Arrivals();
  rows = new RowStore(tempDir('rows').path, () => {});
  rows.onAppended = (jobId, frames) => arrivals.arrived({ kind: 'rows', jobId, frames });
});
afterEach(() => {
  over.controller.abort();
  return rows.close();
});

const append = (given: readonly TrainingRow[], by = task) => rows.append(by, given, wideShare, 1e15);

function stream(
  position: string,
  options: FollowOptions = { follow: false, withEarlier: true },
  attempt: number | null = null,
) {
  const positions = Positions.parse(position, true);
  const parts = { rows, arrivals, nodeOf: () => Promise.resolve('node-1') };
  const values = new OutputValues(parts, { ...of, attempt }, positions);
  return followValues(values, positions, options, over.controller.signal);
}

const stepsOf = ({ series }: ValueUpdate) =>
  series.flatMap(({ points }) => points.map(({ step = null }) => step));

async function all(updates: AsyncIterable<ValueUpdate>): Promise<ValueUpdate[]> {
  const found: ValueUpdate[] = [];
  for await (const update of updates) found.push(update);
  return found;
}

const stepsFrom = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index);

test('rows are told as they are appended, and resumed after the last of them', async () => {
  await append(someRows(0, 10));
  const live = stream('1', { follow: true, withEarlier: false });
  const next = live.next();
  await append(someRows(10, 20));
  const { value } = (await next) as { value: ValueUpdate };
  expect(stepsOf(value)).toEqual(stepsFrom(10, 20));
  expect(value.position).toBe('1,1.0=2000');
  expect(value.series[0]).toMatchObject({ attempt: 1, nodeRank: 0, node: 'node-1', gpuUuid: '' });
  await append(someRows(20, 30));
  await append(someRows(0, 5), { ...task, attempt: 2 });
  const resumed = await all(stream(value.position));
  expect(resumed.map(stepsOf)).toEqual([stepsFrom(20, 30), stepsFrom(0, 5)]);
  expect(await all(stream(resumed.at(-1)?.position ?? ''))).toEqual([]);
});

test('a reader that is slow is told everything once, from the file where too much waits', async () => {
  const live = stream('1', { follow: true, withEarlier: false });
  const first = live.next();
  await append(someRows(0, 1));
  await first;
  const count = 60_000;
  for (let from = 1; from < count; from += 5_000) await append(someRows(from, Math.min(count, from + 5_000)));
  const steps: (number | null)[] = [];
  while (steps.length < count - 1) {
    const { value } = (await live.next()) as { value: ValueUpdate };
    steps.push(...stepsOf(value));
  }
  expect(steps).toEqual(stepsFrom(1, count));
  const again = (await all(stream('1,1.0=100'))).flatMap(stepsOf);
  expect(again).toEqual(steps);
});

test('what other metrics have moves the position, and is no message', async () => {
  await append(
    someRows(0, 3).map((row) => ({ ...row, values: { step: row.values.step ?? 0, eval_loss: 1 } })),
  );
  expect(await all(stream('1'))).toEqual([]);
});

/** @param onLook called before each reading of the file, with how many there were */
function countLooks(onLook: (looks: number) => void): void {
  const lookAt = rows.lookAt.bind(rows);
  let looks = 0;
  rows.lookAt = (jobId, use) => {
    looks += 1;
    onLook(looks);
    return lookAt(jobId, use);
  };
}

test('one attempt is told, however many rows the ones before it have', async () => {
  for (let from = 0; from < 25_000; from += 5_000) await append(someRows(from, from + 5_000));
  await append(someRows(0, 5), { ...task, attempt: 2 });
  countLooks((looks) => {
    // A stream that reads the same rows again and again would not let the test end.
    if (looks > 5) throw new Error('the rows are read again and again');
  });
  expect((await all(stream('1', undefined, 2))).map(stepsOf)).toEqual([stepsFrom(0, 5)]);
});

test('a reader that has left is read nothing more for, also where no row has its metric', async () => {
  for (let from = 0; from < 50_000; from += 5_000)
    await append(someRows(from, from + 5_000).map((row) => ({ ...row, values: { eval_loss: 1 } })));
  let looked = 0;
  countLooks((looks) => {
    looked = looks;
    over.controller.abort();
  });
  expect(await all(stream('1'))).toEqual([]);
  expect(looked).toBe(1);
});
