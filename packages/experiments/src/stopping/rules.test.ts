import { expect, test } from 'vitest';
import { Chance } from '../chance.ts';
import { median } from '../testing/study.ts';
import { type StoppingRule, type TrialCurve, trialsToStop } from './rules.ts';

function curve(
  number: number,
  losses: readonly number[],
  state: TrialCurve['state'] = 'running',
): TrialCurve {
  return { number, state, points: losses.map((loss, index) => ({ step: (index + 1) * 10, loss })) };
}

const asha = { kind: 'asha', minSteps: 10, reduction: 3 } as const;

test('by the median, a trial is stopped that was never as good as half of the complete ones', () => {
  const rule = { kind: 'median', minSteps: 20, minTrials: 3 } as const;
  const complete = [1, 2, 3].map((loss, number) => curve(number, [loss + 2, loss + 1, loss], 'complete'));
  const stopped = (losses: readonly number[], others = complete) =>
    trialsToStop(rule, [...others, curve(9, losses)]);
  expect(stopped([5, 3.5])).toEqual([9]);
  expect(stopped([5, 3])).toEqual([]);
  // It has been better before.
  expect(stopped([2, 3.5])).toEqual([]);
  expect(stopped([9])).toEqual([]);
  expect(stopped([9, 9], complete.slice(1))).toEqual([]);
  expect(stopped([9, 9, 9, 9])).toEqual([]);
});

test('by ASHA, the best third of those that have reached a rung continue', () => {
  const six = [6, 5, 4, 3, 2, 1].map((loss, number) => curve(number, [loss]));
  expect(trialsToStop(asha, six)).toEqual([0, 1, 2, 3]);
  expect(trialsToStop(asha, six.slice(0, 1))).toEqual([]);
  expect(trialsToStop(asha, six.slice(0, 2))).toEqual([0]);
  // What is over still counts, and is not stopped again.
  const over = six.map((each) => ({ ...each, state: 'over' as const }));
  expect(trialsToStop(asha, [...over, curve(9, [2.5])])).toEqual([9]);
  expect(trialsToStop(asha, [...over, curve(9, [1.5])])).toEqual([]);
});

test('by ASHA, a trial is judged at the highest rung that it has reached', () => {
  const ahead = curve(0, [5, 4, 3]);
  const better = [1, 2, 3].map((number) => curve(number, [1, 1]));
  expect(trialsToStop(asha, [ahead, ...better])).toEqual([]);
  expect(trialsToStop(asha, [ahead, curve(1, [1, 1, 1]), curve(2, [1, 1, 2])])).toEqual([0, 2]);
});

test('by Hyperband, trials of brackets with later first rungs are not stopped before', () => {
  const rule = { kind: 'hyperband', minSteps: 10, maxSteps: 90, reduction: 3 } as const;
  // Of brackets 0 and 1: three trials, then two.
  const all = Array.from({ length: 5 }, (_, number) => curve(number, [5 - number, 5 - number]));
  expect(trialsToStop(rule, all)).toEqual([0, 1]);
  const later = all.map(({ number }) => curve(number, [5 - number, 5 - number, 5 - number]));
  expect(trialsToStop(rule, later)).toEqual([0, 1, 3]);
});

/** Four trials at a time on curves that fall to an end of their own, at a speed of their own, with noise. */
function search(rule: StoppingRule | null, seed: number): { readonly steps: number; readonly best: number } {
  const maxStep = 81;
  const trialCount = 64;
  const chance = new Chance(seed, 'curves');
  const ends = Array.from({ length: trialCount }, () => {
    const end = chance.next();
    return { end, drop: 1 + chance.next(), speed: 3 + 12 * chance.next() };
  });
  const curves: TrialCurve[] = [];
  let steps = 0;
  let best = Number.POSITIVE_INFINITY;
  for (;;) {
    const running = curves.filter(({ state }) => state === 'running');
    if (running.length === 0 && curves.length === trialCount) return { steps, best };
    for (let room = 4 - running.length; room > 0 && curves.length < trialCount; room -= 1)
      curves.push({ number: curves.length, state: 'running', points: [] });
    for (const [number, each] of curves.entries()) {
      if (each.state !== 'running') continue;
      const step = each.points.length + 1;
      const { end, drop, speed } = ends[number] ?? { end: 1, drop: 1, speed: 1 };
      const loss = end + drop * Math.exp(-step / speed) + 0.01 * chance.normal();
      steps += 1;
      if (step === maxStep) best = Math.min(best, end);
      const state = step === maxStep ? 'complete' : 'running';
      curves[number] = { ...each, state, points: [...each.points, { step, loss }] };
    }
    if (rule === null) continue;
    for (const number of trialsToStop(rule, curves)) {
      const stopped = curves[number];
      if (stopped !== undefined) curves[number] = { ...stopped, state: 'over' };
    }
  }
}

test.each<StoppingRule>([
  { kind: 'asha', minSteps: 9, reduction: 3 },
  { kind: 'hyperband', minSteps: 3, maxSteps: 81, reduction: 3 },
])('with %j, a third of the steps finds what the full search finds', (rule) => {
  const runs = Array.from({ length: 20 }, (_, seed) => {
    const full = search(null, seed);
    const early = search(rule, seed);
    return { share: early.steps / full.steps, loss: early.best - full.best };
  });
  expect(median(runs.map(({ share }) => share))).toBeLessThan(1 / 3);
  expect(median(runs.map(({ loss }) => loss))).toBeLessThan(0.01);
});
