import { expect, test } from 'vitest';
import { sampleTpe } from './samplers/tpe.ts';
import type { Point } from './space.ts';
import { aChoice, aFloat, anInt, aSpace, everyKind } from './testing/spaces.ts';
import { fitsSpace, knownObservations, knownTrialsMax, takenOver } from './warmStart.ts';

const adam = { dropout: 0.1, lr: 1e-3, scale: 0.3, layers: 5, width: 64, optimizer: 'adam' } as const;

test.each<[boolean, string, Point]>([
  [true, 'all that applies', adam],
  [true, 'what a condition asks for', { ...adam, optimizer: 'sgd', momentum: 0.9, nesterov: true }],
  [false, 'what a condition excludes', { ...adam, momentum: 0.9 }],
  [false, 'without what a condition asks for', { ...adam, optimizer: 'sgd', momentum: 0.9 }],
  [false, 'a parameter of another sweep', { ...adam, warmup: 10 }],
  [false, 'outside of a range', { ...adam, dropout: 0.6 }],
  [false, 'between two steps', { ...adam, layers: 6 }],
  [false, 'beyond the last step', { ...adam, layers: 14 }],
  [false, 'half of a whole number', { ...adam, width: 64.5 }],
  [false, 'a value of another type', { ...adam, lr: '1e-3' }],
  [false, 'an unknown choice', { ...adam, optimizer: 'rmsprop' }],
])('fits: %s, of %s', (fits, _, point) => {
  expect(fitsSpace(everyKind, point)).toBe(fits);
});

test('of many trials the best are taken over, and others from all over the rest', () => {
  const parameters = [anInt('x', { min: 0, max: 10_000 })];
  const trials = Array.from({ length: 1_000 }, (_, index) => ({
    params: { x: index },
    value: index === 3 ? null : (index * 617) % 1_000,
  }));
  const taken = takenOver(parameters, { goal: 'max' }, trials);
  expect(taken).toHaveLength(knownTrialsMax);
  const values = taken.map(({ value }) => value ?? -1).sort((a, b) => b - a);
  expect(values.slice(0, 50)).toEqual(Array.from({ length: 50 }, (_, index) => 999 - index));
  expect(values.at(-1)).toBeLessThan(50);
  expect(taken.map(({ params }) => params['x'])).toEqual(
    taken.map(({ params }) => params['x']).sort((a, b) => Number(a) - Number(b)),
  );
  expect(takenOver([aFloat('y')], { goal: 'max' }, trials)).toEqual([]);
});

test('with known trials, the sampler begins where they were good, and not at random', () => {
  const space = aSpace([aFloat('x'), aChoice('kind', ['a', 'b'])]);
  const known = Array.from({ length: 40 }, (_, index) => {
    const x = ((index * 17) % 40) / 40;
    const kind = index % 2 === 0 ? 'a' : 'b';
    return { params: { x, kind }, value: kind === 'b' && x > 0.9 ? null : -Math.abs(x - 0.3) };
  });
  const history = knownObservations({ goal: 'max' }, known);
  expect(history.filter(({ state }) => state === 'infeasible')).toHaveLength(
    known.filter(({ value }) => value === null).length,
  );
  const first = Array.from({ length: 20 }, (_, seed) =>
    Number(sampleTpe({ space, history, seed, number: 0 })['x']),
  );
  expect(first.filter((x) => Math.abs(x - 0.3) < 0.15).length).toBeGreaterThan(14);
});
