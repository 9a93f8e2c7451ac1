import { expect, test } from 'vitest';
import { aSpec } from '../modelFixture.ts';
import { checkJobLease, checkLeaseSettings, fencedAfterMs, longestLeaseMs } from './leases.ts';

const aSpecWithLease = aSpec({ lease: '90s' });
const usual = { leaseMs: 60_000, fenceMs: 5_000, marginMs: 5_000, clockRateError: 0.005 };

test.each([
  ['the usual settings', usual, 60_000, 70_650],
  [
    'those of tests',
    { leaseMs: 6_000, fenceMs: 2_000, marginMs: 2_000, clockRateError: 0.005 },
    6_000,
    10_080,
  ],
  ['a day, in which clocks part by minutes', usual, 86_400_000, 87_274_050],
])('with %s nothing runs (L + K)(1 + 2ρ) + M after a node was heard', (_, settings, leaseMs, expected) => {
  expect(fencedAfterMs(settings, leaseMs)).toBe(expected);
});

test.each([
  [10_000, 4_900],
  [60_000, 4_900],
  // The error of the error: what 2ρ leaves out of (1 + ρ) / (1 - ρ) is seconds in a day, and the margin has room for it.
  [86_400_000, 500],
])(
  'a lease of %i ms ends %i ms before the next attempt, when one clock is as slow and the other as fast as can be',
  (leaseMs, gapMs) => {
    const { fenceMs, clockRateError } = usual;
    const lastInstructionMs = (leaseMs + fenceMs) / (1 - clockRateError);
    const rescheduledMs = fencedAfterMs(usual, leaseMs) / (1 + clockRateError);
    expect(rescheduledMs - lastInstructionMs).toBeGreaterThanOrEqual(gapMs);
  },
);

test('settings by which two attempts could run at once are refused', () => {
  expect(() => checkLeaseSettings({ ...usual, marginMs: 1_999 })).toThrow(/G2.*margin.*at least 2 s/);
  expect(() => checkLeaseSettings({ ...usual, leaseMs: 0 })).toThrow(/G2/);
  expect(() => checkLeaseSettings({ ...usual, clockRateError: -0.1 })).toThrow(/G2/);
  expect(checkLeaseSettings({ ...usual, marginMs: 2_000 }).marginMs).toBe(2_000);
});

test('the longest lease is found among more jobs than a call takes arguments', () => {
  const jobs = Array.from({ length: 200_000 }, () => ({ spec: aSpecWithLease }));
  expect(longestLeaseMs(jobs, 60_000)).toBe(90_000);
  expect(longestLeaseMs(jobs, 120_000)).toBe(120_000);
  expect(longestLeaseMs([{ spec: aSpec() }], 60_000)).toBe(60_000);
});

test("a job's own lease has room for two questions of an agent", () => {
  expect(() => checkJobLease(null, 60_000)).not.toThrow();
  expect(() => checkJobLease(10_000, 5_000)).not.toThrow();
  expect(() => checkJobLease(10_000, 6_000)).toThrow(
    'lease: got 10s, and agents of this cluster send heartbeats every 6s; expected 12s or more; or to omit it',
  );
});
