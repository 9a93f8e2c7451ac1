import { expect, test } from 'vitest';
import { billionsOf } from './advice.ts';

test.each([
  ['7B', 7],
  ['1.3b', 1.3],
  [' 350M ', 0.35],
  ['350k', 0.000_35],
  ['1T', 1_000],
  ['7000000000', 7],
  [7_000_000_000, 7],
  ['7e9', 7],
  ['70', 70],
])('a model of %s has %s billion parameters', (size, billions) => {
  expect(billionsOf(size)).toBeCloseTo(billions, 9);
});

test.each(['', '7 billion', '7Bx', '-7B', '0', 'large', '1e30', '2000000B'])('"%s" is refused', (size) => {
  expect(() => billionsOf(size)).toThrow(/^modelSize: got .*; expected a number of parameters such as 7B/);
});
