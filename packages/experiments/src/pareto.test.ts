import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { paretoFront } from './objective.ts';
import { frontsOf, leastCrowded } from './pareto.ts';

test('fronts are what nothing dominates, then what only those dominate', () => {
  const points = [
    [3, 3],
    [1, 4],
    [2, 2],
    [4, 1],
    [2, 5],
    [1, 4],
  ];
  expect(frontsOf(points, 10)).toEqual([
    [1, 2, 3, 5],
    [0, 4],
  ]);
  expect(frontsOf(points, 2)).toEqual([[1, 2, 3, 5]]);
  expect(frontsOf([], 1)).toEqual([]);
});

test('no thing of a front dominates another, and each later thing is dominated by one of the front before', () => {
  const dominates = (a: readonly number[], b: readonly number[]) =>
    a.every((loss, index) => loss <= (b[index] ?? 0)) && a.some((loss, index) => loss < (b[index] ?? 0));
  const loss = fc.integer({ min: 0, max: 5 });
  fc.assert(
    fc.property(fc.array(fc.tuple(loss, loss, loss), { maxLength: 30 }), (points) => {
      const fronts = frontsOf(points, points.length);
      expect(fronts.flat().sort((a, b) => a - b)).toEqual([...points.keys()]);
      const at = (index: number) => points[index] ?? [];
      for (const [place, front] of fronts.entries())
        for (const index of front) {
          expect(front.some((other) => dominates(at(other), at(index)))).toBe(false);
          if (place === 0) continue;
          expect(fronts[place - 1]?.some((other) => dominates(at(other), at(index)))).toBe(true);
        }
    }),
    { numRuns: 100 },
  );
});

test('of a front that is too large, both ends stay, and what is crowded goes', () => {
  const points = [
    [0, 10],
    [1, 9],
    [1.1, 8.9],
    [1.2, 8.8],
    [6, 3],
    [10, 0],
  ];
  const all = [...points.keys()];
  expect(leastCrowded(points, all, 3)).toEqual([0, 4, 5]);
  expect(leastCrowded(points, all, 9)).toEqual(all);
});

test('the front of trials is that of complete ones with every value, whichever way each goal goes', () => {
  const trial = (state: string, value: number | null, ...furtherValues: readonly number[]) => ({
    state,
    value,
    furtherValues,
  });
  const trials = [
    trial('complete', 1, 100),
    trial('complete', 2, 300),
    trial('complete', 3, 200),
    trial('infeasible', null),
    trial('running', null),
    trial('complete', 0.5),
  ];
  expect(paretoFront([{ goal: 'min' }, { goal: 'max' }], trials)).toEqual([trials[0], trials[1]]);
});
