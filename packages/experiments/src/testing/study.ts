/** Runs a sampler on a function, one trial after the other. */
import type { Observation, Sampler } from '../samplers/sampler.ts';
import { type StandardFunction, spaceOf } from './functions.ts';

/** @returns how far the best of the trials is from the optimum */
export function regretOf(sampler: Sampler, target: StandardFunction, seed: number, trials: number): number {
  const space = spaceOf(target);
  const history: Observation[] = [];
  let best = Number.POSITIVE_INFINITY;
  for (let number = 0; number < trials; number += 1) {
    const point = sampler({ space, history, seed, number });
    if (point === null) break;
    const loss = target.at(space.parameters.map(({ name }) => Number(point[name])));
    best = Math.min(best, loss);
    history.push({ point, state: 'complete', loss, step: 0 });
  }
  return best - target.optimum;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? Number.NaN) + (sorted[Math.floor(middle)] ?? Number.NaN)) / 2;
}
