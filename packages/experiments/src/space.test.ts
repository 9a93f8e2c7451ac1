import { expect, test } from 'vitest';
import { applies, fromScale, valueAtIndex, valueAtShare, valueCount } from './space.ts';
import { aChoice, aFloat, anInt } from './testing/spaces.ts';

const shares = Array.from({ length: 1_000 }, (_, index) => (index + 0.5) / 1_000);

test('each value of what has steps gets an equal part of the shares', () => {
  for (const parameter of [
    anInt('n', { min: -2, max: 5 }),
    anInt('n', { min: 2, max: 13, step: 3 }),
    aFloat('x', { min: 0.1, max: 0.75, step: 0.1 }),
    aChoice('c', ['a', true, 3]),
  ]) {
    const count = valueCount(parameter);
    const counts = Map.groupBy(shares, (share) => valueAtShare(parameter, share));
    expect([...counts.keys()]).toEqual(
      Array.from({ length: count }, (_, index) => valueAtIndex(parameter, index)),
    );
    for (const { length } of counts.values()) expect(Math.abs(length - 1_000 / count)).toBeLessThan(2);
  }
});

test('values with steps are written as a user would, and end where the last whole step ends', () => {
  const parameter = aFloat('x', { min: 0.1, max: 0.75, step: 0.1 });
  const all = Array.from({ length: valueCount(parameter) }, (_, index) => valueAtIndex(parameter, index));
  expect(all).toEqual([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]);
  expect(valueCount(aFloat('x', { min: 0, max: 0.3, step: 0.1 }))).toBe(4);
  expect(valueAtIndex(anInt('n', { min: 0, max: 2 ** 53 - 1, step: 1 }), 9_007_199_254_740_990)).toBe(
    9_007_199_254_740_990,
  );
});

test('a logarithmic parameter has as many values in each decade, and its ends are reached', () => {
  const parameter = aFloat('lr', { min: 1e-5, max: 1e-1, log: true });
  const values = shares.map((share) => Number(valueAtShare(parameter, share)));
  for (const decade of [-5, -4, -3, -2])
    expect(values.filter((value) => Math.floor(Math.log10(value)) === decade)).toHaveLength(250);
  const whole = anInt('width', { min: 1, max: 64, log: true });
  const widths = new Set(shares.map((share) => valueAtShare(whole, share)));
  expect(widths).toContain(1);
  expect(widths).toContain(64);
  expect([...widths].every((width) => Number.isInteger(width))).toBe(true);
});

test('what lies beyond an end becomes the end', () => {
  expect(fromScale({ ...aFloat('x'), type: 'float', min: 0, max: 1, log: false, step: null }, 1.5)).toBe(1);
  expect(fromScale({ ...anInt('n'), type: 'int', min: 1, max: 4, log: false, step: 1 }, -7)).toBe(1);
});

test('a parameter with a condition applies where all that it names have one of their values', () => {
  const parameter = aFloat('momentum', { when: { optimizer: ['sgd', 'lion'], tuned: [true] } });
  expect(applies(parameter, { optimizer: 'sgd', tuned: true })).toBe(true);
  expect(applies(parameter, { optimizer: 'adam', tuned: true })).toBe(false);
  expect(applies(parameter, { optimizer: 'sgd' })).toBe(false);
  expect(applies(aFloat('lr'), {})).toBe(true);
});
