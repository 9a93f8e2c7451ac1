/**
 * The tree-structured Parzen estimator: of points drawn where good trials are, the one for which the ratio of their density to that
 * of the other trials is largest (J. Bergstra and others, Algorithms for Hyper-Parameter Optimization, NIPS 2011). Parameters that
 * apply together are sampled together, except in every third trial, and those with a condition after the parameters that it names.
 * docs/decisions/sweeps.md lists which constants are those of Optuna's TPESampler, and which are not.
 */
import { Chance } from '../chance.ts';
import { frontsOf, leastCrowded } from '../pareto.ts';
import {
  applies,
  isAllowed,
  type Parameter,
  type ParameterValue,
  type Point,
  type SearchSpace,
} from '../space.ts';
import { type ComponentWeights, componentWeights, ParzenEstimator } from './parzen.ts';
import { randomPoint } from './random.ts';
import type { Observation, SuggestionRequest } from './sampler.ts';

/** Trials with a result, before which points are random. */
const startupTrials = 10;
/** Points that are compared for each trial. */
const candidates = 24;
/** Of the trials, the share that counts as good, and how many at most. */
const goodShare = 0.2;
const goodMax = 25;
/**
 * Once in this number of trials each parameter is sampled by itself, as in the paper of 2011. Such a trial combines good values
 * of different trials, which a joint density never does. That is best where a parameter has the same effect whatever the others
 * are.
 */
const separateEvery = 3;
/** Points that are not allowed are drawn again, and a random one is taken in the end. */
const roundsMax = 10;
/** Rounds of a trial that samples each parameter by itself. A constraint on several of them may allow no such point. */
const separateRounds = 3;

export function sampleTpe({ space, history, seed, number }: SuggestionRequest): Point {
  const chance = new Chance(seed, `tpe/${number}`);
  const withResult = history.filter(hasResult).length;
  if (withResult < startupTrials) return randomPoint(space, chance);
  const { good, others } = split(history, Math.min(Math.ceil(goodShare * withResult), goodMax));
  const densities = new Densities(good, others);
  const separate = number % separateEvery === 0 ? separateRounds : 0;
  const single = space.parameters.map((each) => [each]);
  const joint = groupsOf(space.parameters);
  for (let round = 0; round < roundsMax; round += 1) {
    const point = pointOf(space, round < separate ? single : joint, densities, chance);
    if (point !== null) return point;
  }
  return randomPoint(space, chance);
}

interface DensityPair {
  readonly good: ParzenEstimator;
  readonly others: ParzenEstimator;
}

/** Those of one suggestion, each computed once: they take most of its time, and several rounds may need the same. */
class Densities {
  private readonly good: readonly Point[];
  private readonly others: readonly Point[];
  private readonly pairs = new Map<readonly Parameter[], DensityPair>();
  /** By the number of trials. */
  private readonly weights = new Map<number, ComponentWeights>();

  constructor(good: readonly Point[], others: readonly Point[]) {
    this.good = good;
    this.others = others;
  }

  of(group: readonly Parameter[]): DensityPair {
    const known = this.pairs.get(group);
    if (known !== undefined) return known;
    const pair = { good: this.estimator(group, this.good), others: this.estimator(group, this.others) };
    this.pairs.set(group, pair);
    return pair;
  }

  private estimator(group: readonly Parameter[], points: readonly Point[]): ParzenEstimator {
    const isConditional = group.some(({ when }) => Object.keys(when).length > 0);
    // Parameters without a condition are in every point.
    const withAll = isConditional
      ? points.filter((point) => group.every(({ name }) => Object.hasOwn(point, name)))
      : points;
    const weights = this.weights.get(withAll.length) ?? componentWeights(withAll.length);
    this.weights.set(withAll.length, weights);
    return new ParzenEstimator(group, withAll, weights);
  }
}

/** @returns null: the point is not allowed */
function pointOf(
  space: SearchSpace,
  groups: readonly (readonly Parameter[])[],
  densities: Densities,
  chance: Chance,
): Point | null {
  let point: Record<string, ParameterValue> = {};
  for (const group of groups) {
    const [first] = group;
    if (first === undefined || !applies(first, point)) continue;
    const isComplete = group === groups.at(-1);
    const best = bestOf(densities.of(group), chance, (candidate) =>
      isComplete ? isAllowed(space, { ...point, ...candidate }) : true,
    );
    if (best === null) return null;
    point = { ...point, ...best };
  }
  return isAllowed(space, point) ? point : null;
}

function bestOf(
  { good, others }: DensityPair,
  chance: Chance,
  accepts: (candidate: Point) => boolean,
): Point | null {
  let best: Point | null = null;
  let bestRatio = Number.NEGATIVE_INFINITY;
  const seen = new Set<string>();
  for (let index = 0; index < candidates; index += 1) {
    const candidate = good.draw(chance);
    // The same point is not better the second time. Of a parameter with few values, most candidates are the same.
    const key = JSON.stringify(Object.values(candidate));
    if (seen.has(key)) continue;
    seen.add(key);
    if (!accepts(candidate)) continue;
    const ratio = good.logDensity(candidate) - others.logDensity(candidate);
    if (best !== null && !(ratio > bestRatio)) continue;
    best = candidate;
    bestRatio = ratio;
  }
  return best;
}

/** The best trials and the rest, each in the order of the trials. Those without a result belong to the rest. */
function split(
  history: readonly Observation[],
  goodCount: number,
): { readonly good: readonly Point[]; readonly others: readonly Point[] } {
  const isGood = new Set(bestByResult(history.filter(hasResult), goodCount));
  return {
    good: history.filter((each) => isGood.has(each)).map(({ point }) => point),
    others: history.filter((each) => !isGood.has(each)).map(({ point }) => point),
  };
}

/** With several objectives by fronts, of the last one those that are apart from each other. */
function bestByResult(results: readonly Observation[], count: number): readonly Observation[] {
  if (!results.some(({ furtherLosses = [] }) => furtherLosses.length > 0)) return bestOfAll(results, count);
  const losses = results.map(({ loss, furtherLosses = [] }) => [loss ?? 0, ...furtherLosses]);
  const chosen: number[] = [];
  for (const front of frontsOf(losses, count))
    chosen.push(...leastCrowded(losses, front, count - chosen.length));
  return chosen.flatMap((index) => results[index] ?? []);
}

/** In the order in which a stable sort has them, in a fraction of its time. */
function bestOfAll(results: readonly Observation[], count: number): readonly Observation[] {
  const best: Observation[] = [];
  for (const each of results) {
    let place = best.length;
    for (; place > 0; place -= 1) {
      const before = best[place - 1];
      if (before === undefined || byResult(before, each) <= 0) break;
    }
    if (place === count) continue;
    best.splice(place, 0, each);
    if (best.length > count) best.pop();
  }
  return best;
}

function hasResult({ state, loss }: Observation): boolean {
  return (state === 'complete' || state === 'pruned') && loss !== null;
}

/** Complete trials first, then those that came further before they were stopped. */
function byResult(a: Observation, b: Observation): number {
  if (a.state !== b.state) return a.state === 'complete' ? -1 : 1;
  if (a.state === 'pruned' && a.step !== b.step) return b.step - a.step;
  return (a.loss ?? 0) - (b.loss ?? 0);
}

/** Parameters with the same condition. */
function groupsOf(parameters: readonly Parameter[]): readonly (readonly Parameter[])[] {
  const conditionOf = ({ when }: Parameter) =>
    JSON.stringify(Object.entries(when).sort(([a], [b]) => (a < b ? -1 : 1)));
  return [...Map.groupBy(parameters, conditionOf).values()];
}
