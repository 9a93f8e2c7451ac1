import { expect, test } from 'vitest';
import { ProcessStalls } from './leaseKeeper.ts';

test('a tick that comes more than two ticks late tells how long this process did not run', () => {
  const stalls = new ProcessStalls(1_000, 0);
  expect([1_000, 2_100, 5_100, 8_101, 68_101].map((nowMs) => stalls.take(nowMs))).toEqual([
    0, 0, 0, 2_001, 59_000,
  ]);
  expect(stalls.take(69_101), 'and once').toBe(0);
});
