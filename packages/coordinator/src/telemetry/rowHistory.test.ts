import { expect, test } from 'vitest';
import { historyIntervalMs, historyRowsMax, RowHistory } from './rowHistory.ts';

const ringBytes = historyRowsMax * (8 + 2 * 4);
const valuesOf = (history: RowHistory<string>, key: string, column = 0) =>
  history.points(key, column, 0, Number.POSITIVE_INFINITY, 0).map(({ value }) => value);

test('what comes every ten seconds becomes a mean of half a minute; what was not read is absent', () => {
  const history = new RowHistory<string>(2, ringBytes);
  for (const [index, value] of [8, 1, 2, 6, 30].entries())
    history.add('a', 10_000 * (index + 1), [value, null]);
  expect(history.points('a', 0, 0, 60_000, 1_000)).toEqual([
    { atMs: 11_000, value: 8 },
    { atMs: 41_000, value: 3 },
  ]);
  expect(valuesOf(history, 'a', 1)).toEqual([null, null]);
  history.add('a', 40_000, [99, 1]);
  expect(valuesOf(history, 'a')).toEqual([8, 3]);
});

test('the oldest rows make room, and a range is a range', () => {
  const history = new RowHistory<string>(1, ringBytes);
  for (let index = 1; index <= historyRowsMax + 5; index += 1)
    history.add('a', index * historyIntervalMs, [index]);
  const values = valuesOf(history, 'a');
  expect([values.length, values[0], values.at(-1)]).toEqual([historyRowsMax, 6, historyRowsMax + 5]);
  const few = history.points('a', 0, 10 * historyIntervalMs, 12 * historyIntervalMs, 0);
  expect(few.map(({ value }) => value)).toEqual([10, 11, 12]);
  expect(history.rows('a')).toHaveLength(historyRowsMax);
});

test('of more names than there is room for, the one that was silent longest goes; and a sweep forgets them', () => {
  const history = new RowHistory<string>(2, 2 * ringBytes);
  history.add('a', 30_000, [1, 1]);
  history.add('b', 20_000, [2, 2]);
  history.add('c', 40_000, [3, 3]);
  expect(history.keys).toEqual(['a', 'c']);
  expect(history.bytes).toBe(2 * ringBytes);
  history.sweep(35_000);
  expect(history.keys).toEqual(['c']);
});
