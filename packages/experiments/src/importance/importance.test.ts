import { expect, test } from 'vitest';
import { Chance } from '../chance.ts';
import { randomPoint } from '../samplers/random.ts';
import type { Parameter, Point } from '../space.ts';
import { aChoice, aFloat, anInt, aSpace } from '../testing/spaces.ts';
import { importanceOf, importanceTrialsMin } from './importance.ts';

/** Values of a function at random points. */
function trialsOf(parameters: readonly Parameter[], at: (point: Point) => number, count = 400) {
  const space = aSpace(parameters);
  return Array.from({ length: count }, (_, number) => {
    const point = randomPoint(space, new Chance(7, `point/${number}`));
    return { point, value: at(point) };
  });
}

function shares(parameters: readonly Parameter[], at: (point: Point) => number, count?: number) {
  const found = importanceOf(parameters, trialsOf(parameters, at, count), 1);
  return Object.fromEntries(found.map(({ name, share }) => [name, share]));
}

/** A forest of some hundred points is not the function itself. */
function near(share: number) {
  return expect.toSatisfy((got: number) => Math.abs(got - share) < 0.08, `within 0.08 of ${share}`);
}

const three = [aFloat('a'), aFloat('b'), aFloat('c')];

test('of a sum, each parameter explains the variance of its term', () => {
  // 9/12 and 1/12 of 10/12.
  expect(shares(three, ({ a, b }) => 3 * Number(a) + Number(b))).toEqual({
    a: near(0.9),
    b: near(0.1),
    c: near(0),
  });
});

test('of a product, part of the variance belongs to no parameter alone', () => {
  // The variance is 1/9 - 1/16; the mean over one factor has the variance 1/48.
  expect(shares(three, ({ a, b }) => Number(a) * Number(b))).toEqual({
    a: near(3 / 7),
    b: near(3 / 7),
    c: near(0),
  });
  const apart = three.map((each) => ({ ...each, min: -1 }) as Parameter);
  const { a = 1, b = 1 } = shares(apart, (point) => Number(point['a']) * Number(point['b']));
  expect(a + b).toBeLessThan(0.25);
});

test('parameters on a logarithmic scale, with steps and of categories are measured alike', () => {
  const parameters = [
    aFloat('lr', { min: 1e-6, max: 1, log: true }),
    anInt('layers', { min: 1, max: 5, step: 2 }),
    aChoice('optimizer', ['adam', 'sgd', 'lion', 'lamb']),
  ];
  // Variances: 1/12, (8/3)/16 and 3/16.
  const at = ({ lr, layers, optimizer }: Point) =>
    Math.log10(Number(lr)) / 6 + Number(layers) / 4 + (optimizer === 'lion' ? 1 : 0);
  const whole = 1 / 12 + 1 / 6 + 3 / 16;
  expect(shares(parameters, at)).toEqual({
    lr: near(1 / 12 / whole),
    layers: near(1 / 6 / whole),
    optimizer: near(3 / 16 / whole),
  });
});

test('a parameter with a condition counts where it applies, and the one it depends on for the rest', () => {
  const parameters = [
    aChoice('optimizer', ['adam', 'sgd']),
    aFloat('momentum', { when: { optimizer: ['sgd'] } }),
    aFloat('beta', { when: { optimizer: ['adam'] } }),
  ];
  const onlyMomentum = ({ momentum }: Point) => (momentum === undefined ? 0.5 : Number(momentum));
  expect(shares(parameters, onlyMomentum)).toEqual({
    momentum: near(1),
    optimizer: near(0),
    beta: near(0),
  });
  const onlyOptimizer = ({ optimizer }: Point) => (optimizer === 'sgd' ? 1 : 0);
  expect(shares(parameters, onlyOptimizer)).toEqual({
    optimizer: near(1),
    momentum: near(0),
    beta: near(0),
  });
});

test('one trial that has diverged is not everything', () => {
  const trials = trialsOf(three, ({ a }) => Number(a), 100);
  const found = importanceOf(three, [...trials, { point: { a: 0.5, b: 0.5, c: 0.5 }, value: 1e30 }], 1);
  expect(found[0]).toMatchObject({ name: 'a' });
  expect(found[0]?.share).toBeGreaterThan(0.7);
});

test('the most important comes first, and the same seed gives the same answer', () => {
  const trials = trialsOf(three, ({ b, c }) => Number(b) + 4 * Number(c), 40);
  const once = importanceOf(three, trials, 3);
  expect(once.map(({ name }) => name).slice(0, 2)).toEqual(['c', 'b']);
  expect(importanceOf(three, trials, 3)).toEqual(once);
});

test('too few trials, or values that are all the same, explain nothing', () => {
  const trials = trialsOf(three, () => 1, 50);
  expect(importanceOf(three, trials, 1)).toEqual([]);
  const few = trialsOf(three, ({ a }) => Number(a), importanceTrialsMin - 1);
  expect(importanceOf(three, few, 1)).toEqual([]);
  const broken = trials.map((each, index) => ({ ...each, value: index % 2 === 0 ? Number.NaN : Infinity }));
  expect(importanceOf(three, broken, 1)).toEqual([]);
});
