import { expect, test } from 'vitest';
import { isLive, noLease, renewed } from './heldLease.ts';

test('a new task may not run before it has a lease', () => {
  expect(isLive(noLease, 0)).toBe(false);
});

test('a lease counts from the question, up to its deadline and not a moment longer', () => {
  const lease = renewed(noLease, 1_000, 500);
  expect(lease).toEqual({ askedMs: 1_000, deadlineMs: 1_500 });
  expect([isLive(lease, 1_499), isLive(lease, 1_500)]).toEqual([true, false]);
});

test('0 is never fenced', () => {
  expect(isLive(renewed(noLease, 1_000, 0), Number.MAX_SAFE_INTEGER)).toBe(true);
});

test.each([
  ['gives time', 60_000, 61_100],
  ['takes time away', 10, 1_110],
])('the answer to a newer question %s', (_, leaseMs, deadlineMs) => {
  const held = renewed(noLease, 1_000, 500);
  expect(renewed(held, 1_100, leaseMs).deadlineMs).toBe(deadlineMs);
});

test('an answer to an older question comes late and changes nothing', () => {
  const held = renewed(noLease, 1_000, 500);
  expect(renewed(held, 999, 60_000)).toBe(held);
  expect(renewed(held, 999, 0)).toBe(held);
});
