import { expect, test } from 'vitest';
import { Chance } from '../chance.ts';
import { median } from '../testing/study.ts';
import { judgeTrials, pausesTrials, type StoppingRule, type TrialCurve } from './rules.ts';

function curve(
  number: number,
  losses: readonly number[],
  state: TrialCurve['state'] = 'running',
): TrialCurve {
  const points = losses.map((loss, index) => ({ at: (index + 1) * 10, loss }));
  return { number, state, points, promotedAt: null };
}

const toStop = (rule: StoppingRule, curves: readonly TrialCurve[]) => judgeTrials(rule, curves).stop;

const asha = { kind: 'asha', unit: 'steps', min: 10, reduction: 3 } as const;

test('by the median, a trial is stopped that was never as good as half of the complete ones', () => {
  const rule = { kind: 'median', unit: 'steps', min: 20, minTrials: 3 } as const;
  const complete = [1, 2, 3].map((loss, number) => curve(number, [loss + 2, loss + 1, loss], 'complete'));
  const stopped = (losses: readonly number[], others = complete) =>
    toStop(rule, [...others, curve(9, losses)]);
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
  expect(toStop(asha, six)).toEqual([0, 1, 2, 3]);
  expect(toStop(asha, six.slice(0, 1))).toEqual([]);
  expect(toStop(asha, six.slice(0, 2))).toEqual([0]);
  // What is over still counts, and is not stopped again.
  const over = six.map((each) => ({ ...each, state: 'over' as const }));
  expect(toStop(asha, [...over, curve(9, [2.5])])).toEqual([9]);
  expect(toStop(asha, [...over, curve(9, [1.5])])).toEqual([]);
});

test('by ASHA, a trial is judged at the highest rung that it has reached', () => {
  const ahead = curve(0, [5, 4, 3]);
  const better = [1, 2, 3].map((number) => curve(number, [1, 1]));
  expect(toStop(asha, [ahead, ...better])).toEqual([]);
  expect(toStop(asha, [ahead, curve(1, [1, 1, 1]), curve(2, [1, 1, 2])])).toEqual([0, 2]);
});

test('by Hyperband, trials of brackets with later first rungs are not stopped before', () => {
  const rule = { kind: 'hyperband', unit: 'steps', min: 10, max: 90, reduction: 3 } as const;
  // Of brackets 0 and 1: three trials, then two.
  const all = Array.from({ length: 5 }, (_, number) => curve(number, [5 - number, 5 - number]));
  expect(toStop(rule, all)).toEqual([0, 1]);
  const later = all.map(({ number }) => curve(number, [5 - number, 5 - number, 5 - number]));
  expect(toStop(rule, later)).toEqual([0, 1, 3]);
});

test('by ASHA, a paused trial continues once it is among the best, the best of the highest rung first', () => {
  const paused = (number: number, losses: readonly number[]) => curve(number, losses, 'paused');
  const of = (...curves: readonly TrialCurve[]) => judgeTrials(asha, curves).promote;
  const [best, second] = [curve(0, [1], 'over'), paused(1, [2])];
  const worse = [3, 4, 5, 6].map((loss, index) => curve(2 + index, [loss], 'over'));
  expect(of(best, second, ...worse.slice(0, 3))).toEqual([]);
  expect(of(best, second, ...worse)).toEqual([{ number: 1, rung: 10 }]);
  const ahead = paused(9, [7, 7, 7]);
  expect(of(paused(0, [1]), second, ...worse, ahead)).toEqual([
    { number: 9, rung: 30 },
    { number: 0, rung: 10 },
    { number: 1, rung: 10 },
  ]);
});

test('a trial that was resumed runs to the next rung, whoever comes meanwhile', () => {
  const resumed = (losses: readonly number[]) => ({ ...curve(0, losses), promotedAt: 10 });
  const better = [1, 2, 3].map((number) => curve(number, [1, 1, 1]));
  expect(toStop(asha, [resumed([5, 4]), ...better])).toEqual([]);
  expect(toStop(asha, [resumed([5, 4, 3]), ...better])).toEqual([0]);
});

test('only a trial that was stopped at a rung can be resumed', () => {
  const complete = [1, 2, 3].map((loss, number) => curve(number, [loss], 'complete'));
  const byMedian = { kind: 'median', unit: 'steps', min: 10, minTrials: 3 } as const;
  expect(judgeTrials(byMedian, [...complete, curve(9, [0.5], 'paused')])).toEqual({ stop: [], promote: [] });
  expect([byMedian, asha].map(pausesTrials)).toEqual([false, true]);
});

interface Searched {
  /** Of all trials together. */
  readonly steps: number;
  /** What the best trial that came to its end would have reached without noise. */
  readonly best: number;
  readonly resumed: number;
}

/** Four trials at a time on curves that fall to an end of their own, at a speed of their own, with noise. */
function search(rule: StoppingRule | null, seed: number): Searched {
  const maxStep = 81;
  const trialCount = 64;
  const chance = new Chance(seed, 'curves');
  const ends = Array.from({ length: trialCount }, () => {
    const end = chance.next();
    return { end, drop: 1 + chance.next(), speed: 3 + 12 * chance.next() };
  });
  const curves: TrialCurve[] = [];
  const set = (number: number, fields: Partial<TrialCurve>) => {
    const before = curves[number] ?? { number, state: 'running', points: [], promotedAt: null };
    curves[number] = { ...before, ...fields };
  };
  const runningCount = () => curves.filter(({ state }) => state === 'running').length;
  let [steps, resumed, best] = [0, 0, Number.POSITIVE_INFINITY];
  for (;;) {
    const { stop, promote } = rule === null ? { stop: [], promote: [] } : judgeTrials(rule, curves);
    for (const number of stop) set(number, { state: 'paused' });
    for (const { number, rung } of promote) {
      if (runningCount() === 4) break;
      resumed += 1;
      set(number, { state: 'running', promotedAt: rung });
    }
    while (runningCount() < 4 && curves.length < trialCount) set(curves.length, {});
    if (runningCount() === 0) return { steps, best, resumed };
    for (const [number, each] of curves.entries()) {
      if (each.state !== 'running') continue;
      const step = each.points.length + 1;
      const { end, drop, speed } = ends[number] ?? { end: 1, drop: 1, speed: 1 };
      const loss = end + drop * Math.exp(-step / speed) + 0.01 * chance.normal();
      steps += 1;
      if (step === maxStep) best = Math.min(best, end);
      const state = step === maxStep ? 'complete' : 'running';
      set(number, { state, points: [...each.points, { at: step, loss }] });
    }
  }
}

test.each<StoppingRule>([
  { kind: 'asha', unit: 'steps', min: 9, reduction: 3 },
  { kind: 'hyperband', unit: 'steps', min: 3, max: 81, reduction: 3 },
])('with %j, a third of the steps finds what the full search finds', (rule) => {
  const runs = Array.from({ length: 20 }, (_, seed) => {
    const full = search(null, seed);
    const early = search(rule, seed);
    return { share: early.steps / full.steps, loss: early.best - full.best, resumed: early.resumed };
  });
  expect(median(runs.map(({ share }) => share))).toBeLessThan(1 / 3);
  expect(median(runs.map(({ loss }) => loss))).toBe(0);
  expect(median(runs.map(({ resumed }) => resumed))).toBeGreaterThan(0);
});
