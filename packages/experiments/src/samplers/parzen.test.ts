import { expect, test } from 'vitest';
import { Chance } from '../chance.ts';
import { type Parameter, type Point, valueAtIndex, valueAtShare, valueCount } from '../space.ts';
import { aChoice, aFloat, anInt } from '../testing/spaces.ts';
import { logMass } from './gaussian.ts';
import { ParzenEstimator } from './parzen.ts';

test('the mass of intervals in the middle, in the tails, and of narrow ones', () => {
  // Of tables of the normal distribution.
  expect(Math.exp(logMass(-1, 1))).toBeCloseTo(0.6826894921, 6);
  expect(Math.exp(logMass(-1.96, 1.96))).toBeCloseTo(0.9500042097, 6);
  expect(logMass(8, 9)).toBeCloseTo(Math.log(6.2198e-16), 3);
  expect(logMass(-9, -8)).toBe(logMass(8, 9));
  expect(logMass(1, 1.000_9)).toBeCloseTo(Math.log(0.000_9 * 0.241_862), 4);
});

const two = [0.25, 0.9];

test.each<readonly [string, Parameter, readonly Point[]]>([
  ['of an integer', anInt('p', { min: 3, max: 20 }), [{ p: 4 }, { p: 20 }]],
  ['of steps', aFloat('p', { min: 0.1, max: 0.7, step: 0.2 }), [{ p: 0.5 }]],
  ['of a choice', aChoice('p', ['a', 'b', 'c']), [{ p: 'a' }, { p: 'a' }, { p: 'c' }]],
])('the density %s adds up to 1', (_name, parameter, points) => {
  const density = new ParzenEstimator([parameter], points);
  const values = Array.from({ length: valueCount(parameter) }, (_, index) => valueAtIndex(parameter, index));
  const total = values.reduce((sum: number, p) => sum + Math.exp(density.logDensity({ p })), 0);
  expect(total).toBeCloseTo(1, 5);
});

test.each([aFloat('p', { min: -2, max: 3 }), aFloat('p', { min: 1e-4, max: 1, log: true })])(
  'the density of a continuous parameter integrates to 1',
  (parameter) => {
    const points = two.map((share) => ({ p: valueAtShare(parameter, share) }));
    const density = new ParzenEstimator([parameter], points);
    const width = parameter.type === 'float' && parameter.log ? Math.log(1 / 1e-4) : 5;
    const count = 2_000;
    let total = 0;
    for (let index = 0; index < count; index += 1) {
      const p = valueAtShare(parameter, (index + 0.5) / count);
      total += (Math.exp(density.logDensity({ p })) * width) / count;
    }
    expect(total).toBeCloseTo(1, 3);
  },
);

test('what is drawn has the distribution of the density', () => {
  const parameter = anInt('p', { min: 1, max: 6 });
  const density = new ParzenEstimator([parameter], [{ p: 2 }, { p: 2 }, { p: 6 }]);
  const chance = new Chance(1, 'test');
  const draws = Array.from({ length: 20_000 }, () => density.draw(chance)['p']);
  for (let p = 1; p <= 6; p += 1) {
    const share = draws.filter((draw) => draw === p).length / draws.length;
    expect(Math.abs(share - Math.exp(density.logDensity({ p })))).toBeLessThan(0.015);
  }
});

test('old trials count less than the newest 25', () => {
  const parameter = aChoice('p', ['old', 'new', 'none']);
  const at = (olds: number) => {
    const points = [
      ...Array.from({ length: olds }, () => ({ p: 'old' })),
      ...Array.from({ length: 25 }, () => ({ p: 'new' })),
    ];
    return Math.exp(new ParzenEstimator([parameter], points).logDensity({ p: 'old' }));
  };
  // 25 of 50, if all counted alike.
  expect(at(25)).toBeLessThan(0.4);
  expect(at(25)).toBeGreaterThan(0.25);
  expect(at(0)).toBeLessThan(0.05);
});
