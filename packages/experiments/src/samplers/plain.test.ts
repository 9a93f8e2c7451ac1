/** Grid, random and quasi-random points. */
import { expect, test } from 'vitest';
import { applies, EmptySpaceError, type Point, type SearchSpace, valueCount } from '../space.ts';
import { aChoice, aFloat, anInt, aSpace, everyKind } from '../testing/spaces.ts';
import { endless, gridPointsMax, gridSize, sampleGrid } from './grid.ts';
import { sampleHalton } from './halton.ts';
import { sampleRandom } from './random.ts';
import type { Sampler } from './sampler.ts';
import { sampleTpe } from './tpe.ts';

function points(sampler: Sampler, space: SearchSpace, count: number, seed = 7): readonly Point[] {
  return Array.from({ length: count }, (_, number) => sampler({ space, history: [], seed, number }) ?? {});
}

const samplers = [
  ['random', sampleRandom],
  ['Halton', sampleHalton],
  ['TPE', sampleTpe],
] as const;

test.each(samplers)(
  '%s gives each parameter that applies, and no other, a value of its own',
  (_name, sampler) => {
    for (const point of points(sampler, aSpace(everyKind), 200)) {
      const there = everyKind.filter((parameter) => applies(parameter, point));
      expect(Object.keys(point)).toEqual(there.map(({ name }) => name));
      for (const parameter of there) {
        const value = point[parameter.name];
        if (parameter.type === 'categorical') expect(parameter.values).toContain(value);
        else {
          expect(value).toBeGreaterThanOrEqual(parameter.min);
          expect(value).toBeLessThanOrEqual(parameter.max);
          if (parameter.type === 'int') expect((Number(value) - parameter.min) % parameter.step).toBe(0);
        }
      }
    }
  },
);

test.each(samplers)(
  '%s gives the same for the same seed, and something else for another',
  (_name, sampler) => {
    const space = aSpace(everyKind);
    expect(points(sampler, space, 5)).toEqual(points(sampler, space, 5));
    expect(points(sampler, space, 5)).not.toEqual(points(sampler, space, 5, 8));
  },
);

test.each(samplers)(
  '%s keeps to constraints, and refuses a space without an allowed point',
  (_name, sampler) => {
    const parameters = [anInt('batch', { max: 64 }), anInt('steps', { max: 64 })];
    const space = aSpace(parameters, ({ batch, steps }) => Number(batch) * Number(steps) <= 64);
    for (const { batch, steps } of points(sampler, space, 50))
      expect(Number(batch) * Number(steps)).toBeLessThanOrEqual(64);
    const empty = aSpace(parameters, () => false);
    expect(() => sampler({ space: empty, history: [], seed: 7, number: 0 })).toThrow(EmptySpaceError);
  },
);

test('Halton points fill a square more evenly than random ones, in low and in high dimensions', () => {
  const space = aSpace(Array.from({ length: 20 }, (_, index) => aFloat(`x${index}`)));
  const filled = (sampler: Sampler, first: number) => {
    const cells = points(sampler, space, 256).map(
      (point) =>
        `${Math.floor(Number(point[`x${first}`]) * 16)}/${Math.floor(Number(point[`x${first + 1}`]) * 16)}`,
    );
    return new Set(cells).size;
  };
  expect(filled(sampleHalton, 0)).toBeGreaterThan(filled(sampleRandom, 0) + 10);
  // Without permutations, the bases 67 and 71 would leave nearly all of this square empty.
  expect(filled(sampleHalton, 18)).toBeGreaterThan(140);
});

test('each Halton trial has a point of its own where many are not allowed', () => {
  const space = aSpace([aFloat('x'), aFloat('y')], ({ x, y }) => Number(x) + Number(y) < 0.2);
  const found = points(sampleHalton, space, 40).map((point) => JSON.stringify(point));
  expect(new Set(found).size).toBe(40);
});

test('a grid has each allowed point once, and ends', () => {
  const parameters = [
    aChoice('optimizer', ['adam', 'sgd']),
    aFloat('momentum', { min: 0.8, max: 0.9, step: 0.1, when: { optimizer: ['sgd'] } }),
    anInt('layers', { min: 1, max: 3 }),
  ];
  const space = aSpace(parameters, ({ optimizer, layers }) => optimizer !== 'sgd' || layers !== 2);
  const all = [
    { optimizer: 'adam', layers: 1 },
    { optimizer: 'adam', layers: 2 },
    { optimizer: 'adam', layers: 3 },
    { optimizer: 'sgd', momentum: 0.8, layers: 1 },
    { optimizer: 'sgd', momentum: 0.8, layers: 3 },
    { optimizer: 'sgd', momentum: 0.9, layers: 1 },
    { optimizer: 'sgd', momentum: 0.9, layers: 3 },
  ];
  expect(points(sampleGrid, space, 7)).toEqual(all);
  expect(sampleGrid({ space, history: [], seed: 7, number: 7 })).toBeNull();
  expect(gridSize(space)).toBe(7);
});

test('a grid without an end, or too large to be tried, is known before it begins', () => {
  expect(endless(aSpace(everyKind)).map(({ name }) => name)).toEqual(['dropout', 'lr', 'momentum']);
  const wide = aSpace(['a', 'b', 'c'].map((name) => anInt(name, { max: 100 })));
  expect(wide.parameters.map(valueCount).reduce((a, b) => a * b)).toBeGreaterThan(gridPointsMax);
  expect(gridSize(wide)).toBeNull();
});
