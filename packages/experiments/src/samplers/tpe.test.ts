import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Parameter, Point } from '../space.ts';
import { standardFunctions } from '../testing/functions.ts';
import { chanceOfLower } from '../testing/mannWhitney.ts';
import { aChoice, aFloat, anInt, aSpace, everyKind } from '../testing/spaces.ts';
import { median, regretOf } from '../testing/study.ts';
import { sampleRandom } from './random.ts';
import type { Observation, Sampler } from './sampler.ts';
import { sampleTpe } from './tpe.ts';

const seeds = Array.from({ length: 15 }, (_, seed) => seed);

test('the test of Mann and Whitney tells samples apart only where they differ', () => {
  const low = seeds.map((seed) => seed);
  expect(chanceOfLower(low, low)).toBeCloseTo(0.5);
  expect(
    chanceOfLower(
      low,
      low.map((value) => value + 20),
    ),
  ).toBeLessThan(1e-5);
  expect(
    chanceOfLower(
      low.map((value) => value + 20),
      low,
    ),
  ).toBeGreaterThan(1 - 1e-5);
});

test.each(['sphere-5', 'branin', 'hartmann-6', 'ackley-5', 'levy-4'])(
  'it finds better points of %s than random search does',
  (name) => {
    const target = standardFunctions.find((each) => each.name === name);
    if (target === undefined) throw new Error(`no function ${name}`);
    const tpe = seeds.map((seed) => regretOf(sampleTpe, target, seed, 60));
    const random = seeds.map((seed) => regretOf(sampleRandom, target, seed, 60));
    expect(chanceOfLower(tpe, random)).toBeLessThan(0.005);
  },
);

/** Trials at random points of a space. */
function earlier(
  parameters: readonly Parameter[],
  count: number,
  lossOf: (point: Point) => number,
): Observation[] {
  const space = aSpace(parameters);
  return Array.from({ length: count }, (_, number) => {
    const point = sampleRandom({ space, history: [], seed: 3, number });
    return { point, state: 'complete', loss: lossOf(point), step: 0 };
  });
}

function suggestions(
  parameters: readonly Parameter[],
  history: readonly Observation[],
  count = 40,
): readonly Point[] {
  const space = aSpace(parameters);
  return Array.from({ length: count }, (_, number) => sampleTpe({ space, history, seed: 5, number }));
}

function share<T>(items: readonly T[], isMeant: (item: T) => boolean): number {
  return items.filter(isMeant).length / items.length;
}

test('it prefers what was good of every kind of parameter', () => {
  const lossOf = ({ optimizer, layers, lr, momentum }: Point) =>
    (optimizer === 'sgd' ? 0 : 10) +
    Math.abs(Number(layers) - 11) +
    3 * Math.abs(Math.log10(Number(lr)) + 4) +
    (momentum === undefined ? 0 : 5 * Math.abs(Number(momentum) - 0.9));
  const found = suggestions(everyKind, earlier(everyKind, 200, lossOf));
  expect(share(found, ({ optimizer }) => optimizer === 'sgd')).toBeGreaterThan(0.7);
  expect(share(found, ({ layers }) => Number(layers) >= 8)).toBeGreaterThan(0.7);
  expect(share(found, ({ lr }) => Number(lr) < 1e-3)).toBeGreaterThan(0.7);
  const momenta = found.flatMap(({ momentum }) => momentum ?? []);
  expect(share(momenta, (momentum) => Number(momentum) > 0.6)).toBeGreaterThan(0.7);
});

test('every third trial combines good values of different trials', () => {
  const parameters = [aFloat('x'), aFloat('y')];
  const halves = [
    { x: 0.2, y: 0.3 },
    { x: 0.7, y: 0.8 },
  ];
  // They are where the worse value of each of the good ones is.
  const near = [aFloat('x', { min: 0.6, max: 0.8 }), aFloat('y', { min: 0.2, max: 0.4 })];
  const worse = earlier(near, 48, () => 9);
  const good = Array.from({ length: 12 }, (_, index): Observation => {
    return { point: halves[index % 2] ?? {}, state: 'complete', loss: 1, step: 0 };
  });
  const found = suggestions(parameters, [...worse, ...good], 90);
  const isBoth = ({ x, y }: Point) => Math.abs(Number(x) - 0.2) < 0.15 && Math.abs(Number(y) - 0.8) < 0.15;
  const every = (rest: number) => found.filter((_, number) => number % 3 === rest);
  expect(share(every(0), isBoth)).toBeGreaterThan(0.15);
  expect(share([...every(1), ...every(2)], isBoth)).toBeLessThan(0.1);
});

test('what it suggests is what it has suggested before it was made faster', () => {
  const lossOf = ({ lr, layers, momentum = 0 }: Point) =>
    Math.round(Math.abs(Math.log10(Number(lr)) + 3) + Number(layers) + Number(momentum));
  const states = ['complete', 'pruned', 'complete', 'infeasible', 'running', 'complete'] as const;
  const suggested = createHash('sha256');
  for (const count of [16, 60, 300]) {
    const history = earlier(everyKind, count, lossOf).map((each, number): Observation => {
      const state = states[number % states.length] ?? 'complete';
      const hasLoss = state === 'complete' || state === 'pruned';
      return { ...each, state, step: number % 5, loss: hasLoss ? each.loss : null };
    });
    suggested.update(JSON.stringify(suggestions(everyKind, history)));
  }
  expect(suggested.digest('hex').slice(0, 16)).toBe('1f1cee9b4307ccc7');
});

test('until ten trials have a result its points are random ones', () => {
  const parameters = [aFloat('x')];
  const few = earlier(parameters, 9, ({ x }) => Number(x));
  expect(suggestions(parameters, few)).toEqual(suggestions(parameters, []));
  const failed: Observation = { point: { x: 0.5 }, state: 'infeasible', loss: null, step: 0 };
  expect(suggestions(parameters, [...few, failed])).toEqual(suggestions(parameters, []));
  const enough = earlier(parameters, 10, ({ x }) => Number(x));
  expect(suggestions(parameters, enough)).not.toEqual(suggestions(parameters, []));
});

test('trials that run and trials that failed keep it away from their points', () => {
  const parameters = [aFloat('x')];
  const known = earlier(parameters, 30, ({ x }) => Math.abs(Number(x) - 0.2));
  const near = (points: readonly Point[]) => share(points, ({ x }) => Math.abs(Number(x) - 0.2) < 0.06);
  const alone = near(suggestions(parameters, known));
  for (const state of ['running', 'infeasible'] as const) {
    const busy = Array.from({ length: 20 }, (_, index): Observation => {
      return { point: { x: 0.15 + index / 200 }, state, loss: null, step: 0 };
    });
    expect(near(suggestions(parameters, [...known, ...busy]))).toBeLessThan(alone / 2);
  }
});

test('of trials that were stopped early, those that came further count as better', () => {
  const parameters = [aFloat('x')];
  const history = earlier(parameters, 40, () => 1).map((each): Observation => {
    const isFar = Number(each.point['x']) > 0.7;
    // Those that came less far have the lower losses of a beginning.
    return { ...each, state: 'pruned', step: isFar ? 100 : 10, loss: isFar ? 3 : 1 };
  });
  expect(share(suggestions(parameters, history), ({ x }) => Number(x) > 0.6)).toBeGreaterThan(0.7);
});

test('it keeps to constraints where the good points are not allowed', () => {
  const parameters = [anInt('batch', { max: 64 }), aChoice('precision', ['bf16', 'fp32'])];
  const history = earlier(parameters, 60, ({ batch }) => -Number(batch));
  const allows = ({ batch, precision }: Point) => Number(batch) <= (precision === 'bf16' ? 32 : 16);
  for (let number = 0; number < 40; number += 1) {
    const point = sampleTpe({ space: aSpace(parameters, allows), history, seed: 5, number });
    expect(allows(point)).toBe(true);
  }
});

test('with two objectives it finds more of the front than random points do', () => {
  const space = aSpace([aFloat('x', { min: -5, max: 5 }), aFloat('y', { min: -5, max: 5 })]);
  /** How much of [0, 8]² lies behind the best trials. */
  const volumeOf = (sampler: Sampler, seed: number) => {
    const history: Observation[] = [];
    for (let number = 0; number < 60; number += 1) {
      const point = sampler({ space, history, seed, number }) ?? {};
      const [x, y] = [Number(point['x']), Number(point['y'])];
      const losses = [x ** 2 + y ** 2, (x - 2) ** 2 + y ** 2] as const;
      history.push({ point, state: 'complete', loss: losses[0], furtherLosses: [losses[1]], step: 0 });
    }
    const sorted = history
      .map(({ loss, furtherLosses: [other = 8] = [] }) => [loss ?? 8, other] as const)
      .sort((a, b) => a[0] - b[0]);
    let [volume, lowest] = [0, 8];
    for (const [first, second] of sorted) {
      if (first >= 8 || second >= lowest) continue;
      volume += (8 - first) * (lowest - second);
      lowest = second;
    }
    return volume;
  };
  const tpe = median(seeds.slice(0, 10).map((seed) => volumeOf(sampleTpe, seed)));
  expect(tpe).toBeGreaterThan(median(seeds.slice(0, 10).map((seed) => volumeOf(sampleRandom, seed))));
});
