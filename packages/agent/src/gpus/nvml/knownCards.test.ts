import { expect, test } from 'vitest';
import type { GpuProblem } from '../gpuSource.ts';
import { Suspects } from './knownCards.ts';

const hung: GpuProblem = { kind: 'hung', gpuUuid: 'GPU-1', pciBusId: null, message: 'm', evidence: 'e' };

test('a card is left alone longer each time, and no longer once it has been read', () => {
  let nowMs = 0;
  const suspects = new Suspects(
    { wallMs: () => 0, monotonicMs: () => nowMs },
    { initialMs: 100, maxMs: 250 },
  );
  const avoidedFor = () => {
    suspects.add(3, hung);
    const startedAtMs = nowMs;
    while (suspects.avoided.length > 0) nowMs += 1;
    return nowMs - startedAtMs;
  };
  expect([avoidedFor(), avoidedFor(), avoidedFor(), avoidedFor()]).toEqual([100, 200, 250, 250]);
  expect(suspects.problems).toEqual([hung]);
  suspects.clearAllBut([3]);
  expect(suspects.problems).toEqual([hung]);
  suspects.clearAllBut([]);
  expect(suspects.problems).toEqual([]);
  expect(avoidedFor()).toBe(100);
});
