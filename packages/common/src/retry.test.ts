import { expect, test } from 'vitest';
import { backoffMs, withJitter } from './retry.ts';

test('the wait doubles with each failure, up to the longest', () => {
  const policy = { initialMs: 200, maxMs: 1_000 };
  expect([1, 2, 3, 4, 5, 1_000_000].map((failures) => backoffMs(policy, failures))).toEqual([
    200, 400, 800, 1_000, 1_000, 1_000,
  ]);
  expect(backoffMs({ initialMs: 0, maxMs: 1_000 }, 5_000)).toBe(0);
});

test('jitter leaves between half and all of a wait', () => {
  expect([0, 0.5, 1].map((chance) => withJitter(100, chance))).toEqual([50, 75, 100]);
});
