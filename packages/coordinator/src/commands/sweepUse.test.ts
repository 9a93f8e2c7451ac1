import { expect, test } from 'vitest';
import { limitReached } from './sweepUse.ts';

const none = { gpuHours: null, usd: null, wallClockMs: null };
const hourMs = 3_600_000;

test('a limit counts from when it is reached, and is told with what was used where that may be more', () => {
  const used = { gpuSeconds: 9_000, usd: 4.5, wallClockMs: 2 * hourMs };
  expect(limitReached({ ...none, gpuHours: 2.6, usd: 5, wallClockMs: 3 * hourMs }, used)).toBeNull();
  expect(limitReached({ ...none, gpuHours: 2.5 }, used)).toBe('the budget of 2.5 GPU-hours is used up: 2.5');
  expect(limitReached({ ...none, usd: 4 }, used)).toBe('the budget of 4 USD is used up: 4.5');
  expect(limitReached({ ...none, wallClockMs: 1.5 * hourMs }, used)).toBe(
    'the budget of 90m of wall clock is used up',
  );
});
