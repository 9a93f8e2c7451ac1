import { expect, test } from 'vitest';
import { UsualLoss } from './lossTrend.ts';

function usualOf(...losses: readonly number[]): UsualLoss {
  const usual = new UsualLoss();
  for (const loss of losses) usual.accept(loss);
  return usual;
}

const times = (count: number, ...losses: readonly number[]) =>
  Array.from({ length: count }, () => losses).flat();

test.each<[string, readonly number[], number, number]>([
  ['half of the median', times(20, 2.2), 3.2, 3.4],
  ['a fifth for what hovers around zero', times(20, 0.01), 0.2, 0.22],
  ['10 deviations of the noise', times(20, 1, 1.5, 2), 8.8, 9],
  ['twice the worst of a few', [3, ...times(20, 1)], 4.9, 5.1],
  ['the lowest median of a loss that has crept up', [...times(40, 2), ...times(64, 2.8)], 2.9, 3.1],
])('far above is more than %s', (_name, losses, below, above) => {
  expect(usualOf(...losses).exceededBy(below)).toBeNull();
  expect(usualOf(...losses).exceededBy(above)).not.toBeNull();
});

test('what is longer ago than 64 losses does not count', () => {
  expect(usualOf(9, ...times(63, 2)).exceededBy(10)).toBeNull();
  expect(usualOf(9, ...times(64, 2)).exceededBy(10)).toEqual({ median: 2, limit: 3 });
});

test('of fewer than five losses little is known, and of fewer than three nothing', () => {
  expect(usualOf(...times(2, 2)).exceededBy(1_000)).toBeNull();
  expect(usualOf(2, 4, 3).exceededBy(9.9)).toBeNull();
  expect(usualOf(2, 4, 3).exceededBy(10.1)).toEqual({ median: 3, limit: 10 });
  expect(usualOf(...times(5, 2)).exceededBy(1_000)).toEqual({ median: 2, limit: 3 });
});
