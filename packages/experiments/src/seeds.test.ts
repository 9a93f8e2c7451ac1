import { expect, test } from 'vitest';
import { deviationOf, meanOf, needsMoreSeeds, type SeedResult, summaryOfSeeds } from './seeds.ts';

function aRun(given: Partial<SeedResult> = {}): SeedResult {
  return { state: 'complete', value: 1, furtherValues: [], step: 10, cause: null, ...given };
}

test('mean and deviation are those of a sample', () => {
  expect([meanOf([]), deviationOf([]), meanOf([3]), deviationOf([3])]).toEqual([null, null, 3, null]);
  expect(meanOf([2, 4, 4, 4, 5, 5, 7, 9])).toBe(5);
  // 32 / 7: with n instead of n - 1 it would be 2.
  expect(deviationOf([2, 4, 4, 4, 5, 5, 7, 9])).toBeCloseTo(Math.sqrt(32 / 7), 12);
});

test('a trial has the mean of its seeds, and the step that all of them have', () => {
  const runs = [aRun({ furtherValues: [10] }), aRun({ value: 2, furtherValues: [30] })];
  expect(summaryOfSeeds(runs, 2)).toEqual({
    state: 'complete',
    value: 1.5,
    furtherValues: [20],
    step: 10,
    cause: null,
  });
  expect(summaryOfSeeds([aRun(), aRun({ step: 11 })], 2).step).toBeNull();
});

test('a seed without a value leaves its trial without one, infeasible before failed', () => {
  const failed = aRun({ state: 'failed', value: null, cause: 'exit_code' });
  const infeasible = aRun({ state: 'infeasible', value: null, cause: 'cuda_oom' });
  const none = { value: null, furtherValues: [], step: null };
  expect(summaryOfSeeds([aRun(), failed], 2)).toEqual({ ...none, state: 'failed', cause: 'exit_code' });
  expect(summaryOfSeeds([failed, infeasible], 3)).toEqual({
    ...none,
    state: 'infeasible',
    cause: 'cuda_oom',
  });
  // The sweep was stopped before the last seed.
  expect(summaryOfSeeds([aRun()], 2)).toEqual({ ...none, state: 'stopped', cause: null });
  expect([
    needsMoreSeeds([aRun(), aRun({ state: 'running' })], 3),
    needsMoreSeeds([aRun(), aRun()], 2),
    needsMoreSeeds([aRun(), failed], 3),
  ]).toEqual([true, false, false]);
});

test('with a seed whose metrics were lost the trial is incomplete, and so is one that lacks its value', () => {
  const lost = 'metrics of attempt 1 are lost: node-2 no longer has them';
  const partial = aRun({ state: 'incomplete', value: 3, lost });
  expect(summaryOfSeeds([aRun(), partial], 2)).toMatchObject({ state: 'incomplete', value: 2, lost });
  expect(summaryOfSeeds([aRun(), partial], 3)).toMatchObject({ state: 'incomplete', value: null, lost });
  const none = aRun({ state: 'incomplete', value: null, cause: 'metrics_lost', lost });
  expect(summaryOfSeeds([none, aRun()], 2)).toMatchObject({
    state: 'incomplete',
    value: null,
    cause: 'metrics_lost',
  });
  // Its owner has accepted it.
  expect(summaryOfSeeds([aRun({ lost }), aRun()], 2)).toMatchObject({ state: 'complete', value: 1, lost });
  expect(needsMoreSeeds([partial], 2)).toBe(false);
});
