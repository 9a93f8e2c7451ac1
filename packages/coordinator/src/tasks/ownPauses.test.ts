import { expect, test } from 'vitest';
import { OwnPauses } from './ownPauses.ts';

test('a tick that comes more than two ticks late tells how long this process did not run', () => {
  const pauses = new OwnPauses(1_000, 0);
  expect([1_000, 2_100, 5_100, 8_101, 68_101].map((nowMs) => pauses.take(nowMs))).toEqual([
    0, 0, 0, 2_001, 59_000,
  ]);
  expect(pauses.take(69_101), 'and once').toBe(0);
});
