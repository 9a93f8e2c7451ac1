/**
 * A density over the points of earlier trials: a mixture with a component for each trial and one for the whole space, each of which
 * is a product over the parameters. Weights and the prior are those that Optuna documents for its multivariate TPESampler. The
 * bandwidths follow Scott's rule, as in S. Falkner and others, BOHB, ICML 2018, and are half as wide as Optuna's, those of a parameter
 * by itself a fourth.
 */
import type { Chance } from '../chance.ts';
import {
  boundsOf,
  type CategoricalParameter,
  type FloatParameter,
  fromScale,
  type IntParameter,
  type Parameter,
  type ParameterValue,
  type Point,
  toScale,
  valueCount,
} from '../space.ts';
import { logMass, logRootTwoPi } from './gaussian.ts';

/** Of the component for the whole space; a recent trial has 1. */
const priorWeight = 1;
/** Recent trials with full weight. Older ones count less, the oldest least. */
const fullWeights = 25;
/** Of the range of a parameter that is drawn with others, before the number of trials makes it narrower. */
const bandwidthShare = 0.1;
/** Of one that is drawn by itself: the density of a single parameter can be finer with as many trials. */
const ownBandwidthShare = 0.05;
/** Of the range, divided by the number of trials: the least bandwidth, but never less than a hundredth of the range. */
const narrowest = 0.25;
/** With more values than this, a parameter is as good as continuous. */
const countedValuesMax = 4_096;

/** Differences of logarithms beyond that change a sum over 10,000 components by less than 1e-13 of it. */
const negligible = 40;
/** Half their square is more than `negligible`, and 30 that the prior may be below with 10,000 components and 4,096 values. */
const farthestDeviations = 12;

/** One parameter of all components. */
interface Axis {
  draw(component: number, chance: Chance): ParameterValue;
  /** Adds the logarithm of each component's density at a value. */
  addLogDensities(value: ParameterValue, sums: Float64Array): void;
}

export class ParzenEstimator {
  private readonly parameters: readonly Parameter[];
  private readonly axes: readonly Axis[];
  private readonly weights: ComponentWeights;

  /**
   * @param points of earlier trials, in their order; each has all of the parameters
   * @param weights of the components; several densities over as many trials may share them
   */
  constructor(
    parameters: readonly Parameter[],
    points: readonly Point[],
    weights: ComponentWeights = componentWeights(points.length),
  ) {
    this.parameters = parameters;
    const share = parameters.length === 1 ? ownBandwidthShare : bandwidthShare;
    const bandwidth = share * Math.max(points.length, 1) ** (-1 / (parameters.length + 4));
    this.axes = parameters.map((parameter) =>
      parameter.type === 'categorical'
        ? new CategoricalAxis(parameter, points)
        : new NumericAxis(parameter, points, bandwidth),
    );
    this.weights = weights;
  }

  draw(chance: Chance): Point {
    const component = chance.weighted(this.weights.each, this.weights.sum);
    return Object.fromEntries(
      this.parameters.map(({ name }, index) => [name, this.axes[index]?.draw(component, chance) ?? '']),
    );
  }

  logDensity(point: Point): number {
    const sums = this.weights.scratch;
    sums.set(this.weights.logShares);
    for (const [index, { name }] of this.parameters.entries())
      this.axes[index]?.addLogDensities(point[name] ?? '', sums);
    let most = Number.NEGATIVE_INFINITY;
    for (let index = 0; index < sums.length; index += 1) {
      const sum = sums[index] ?? most;
      if (sum > most) most = sum;
    }
    let total = 0;
    // Most components are too far away to count, and their exponentials take more time than all else.
    for (let index = 0; index < sums.length; index += 1) {
      const below = (sums[index] ?? Number.NEGATIVE_INFINITY) - most;
      if (below > -negligible) total += Math.exp(below);
    }
    return most + Math.log(total);
  }
}

/** Of the components of a density: of the trials, oldest first, and of the prior. */
export interface ComponentWeights {
  readonly each: Float64Array;
  readonly sum: number;
  /** Logarithms of the parts of the sum. */
  readonly logShares: Float64Array;
  /** A place for a number of each component, which whoever computes with these weights overwrites. */
  readonly scratch: Float64Array;
}

/** @param count of the trials */
export function componentWeights(count: number): ComponentWeights {
  const each = weightsOf(count);
  const sum = each.reduce((total, weight) => total + weight, 0);
  const logShares = each.map((weight) => Math.log(weight / sum));
  return { each, sum, logShares, scratch: new Float64Array(count + 1) };
}

function weightsOf(count: number): Float64Array {
  const weights = new Float64Array(count + 1).fill(1);
  weights[count] = priorWeight;
  const ramp = count - fullWeights;
  for (let index = 0; index < ramp; index += 1)
    weights[index] = ramp === 1 ? 1 / count : 1 / count + ((1 - 1 / count) * index) / (ramp - 1);
  return weights;
}

class NumericAxis implements Axis {
  private readonly parameter: FloatParameter | IntParameter;
  private readonly low: number;
  private readonly high: number;
  /** Middles of the components, the prior last. */
  private readonly middles: readonly number[];
  private readonly sigma: number;
  private readonly priorSigma: number;
  /** Of each component: what its density must be divided by, because it ends at the bounds. */
  private readonly logNorms: readonly number[];
  /** With steps: the logarithm of the mass of a value, by its distance from the middle in steps; NaN: not computed yet. */
  private readonly massAtDistance: Float64Array | null;
  private readonly step: number;
  /** In steps: at a greater distance the mass is less than `negligible` beside that of the prior. */
  private readonly farthest: number;

  constructor(parameter: FloatParameter | IntParameter, points: readonly Point[], bandwidth: number) {
    const { low, high } = boundsOf(parameter);
    const range = high - low;
    const count = points.length + 1;
    const isStepped = parameter.step !== null && !parameter.log && valueCount(parameter) <= countedValuesMax;
    this.parameter = parameter;
    this.low = low;
    this.high = high;
    this.step = parameter.step ?? 0;
    // Narrower components would only repeat what was tried.
    this.sigma = Math.min(
      Math.max(bandwidth * range, range * Math.max(0.01, narrowest / (1 + count))),
      range,
    );
    this.priorSigma = range;
    this.farthest = (farthestDeviations * this.sigma) / this.step;
    const middles = points.map((point) => toScale(parameter, Number(point[parameter.name] ?? '')));
    middles.push((low + high) / 2);
    this.middles = middles;
    this.massAtDistance = isStepped ? new Float64Array(valueCount(parameter)).fill(Number.NaN) : null;
    const { sigma, priorSigma } = this;
    const [logSigma, logPriorSigma] = [Math.log(sigma), Math.log(priorSigma)];
    this.logNorms = middles.map((middle, index) => {
      const isPrior = index === count - 1;
      const width = isPrior ? priorSigma : sigma;
      const mass = logMass((low - middle) / width, (high - middle) / width);
      return isStepped ? mass : mass + (isPrior ? logPriorSigma : logSigma) + logRootTwoPi;
    });
  }

  draw(component: number, chance: Chance): number {
    const middle = this.middles[component] ?? 0;
    const sigma = component === this.middles.length - 1 ? this.priorSigma : this.sigma;
    // At least a third of the draws lies within the bounds, because the middle does and sigma is at most their distance.
    for (;;) {
      const value = middle + sigma * chance.normal();
      if (value >= this.low && value <= this.high) return fromScale(this.parameter, value);
    }
  }

  addLogDensities(value: ParameterValue, sums: Float64Array): void {
    const place = toScale(this.parameter, Number(value));
    const { middles, logNorms, massAtDistance } = this;
    const prior = middles.length - 1;
    if (massAtDistance === null) {
      const scale = 1 / this.sigma;
      for (let index = 0; index < prior; index += 1) {
        const deviations = (place - (middles[index] ?? 0)) * scale;
        sums[index] = (sums[index] ?? 0) - (deviations * deviations) / 2 - (logNorms[index] ?? 0);
      }
      const deviations = (place - (middles[prior] ?? 0)) / this.priorSigma;
      sums[prior] = (sums[prior] ?? 0) - (deviations * deviations) / 2 - (logNorms[prior] ?? 0);
      return;
    }
    for (let index = 0; index < prior; index += 1) {
      const distance = Math.round(Math.abs(place - (middles[index] ?? 0)) / this.step);
      sums[index] = (sums[index] ?? 0) + this.massOf(massAtDistance, distance) - (logNorms[index] ?? 0);
    }
    const offset = place - (middles[prior] ?? 0);
    const mass = logMass(
      (offset - this.step / 2) / this.priorSigma,
      (offset + this.step / 2) / this.priorSigma,
    );
    sums[prior] = (sums[prior] ?? 0) + mass - (logNorms[prior] ?? 0);
  }

  private massOf(masses: Float64Array, distance: number): number {
    if (distance > this.farthest) return Number.NEGATIVE_INFINITY;
    const known = masses[distance] ?? Number.NaN;
    if (!Number.isNaN(known)) return known;
    const mass = logMass(
      ((distance - 0.5) * this.step) / this.sigma,
      ((distance + 0.5) * this.step) / this.sigma,
    );
    masses[distance] = mass;
    return mass;
  }
}

class CategoricalAxis implements Axis {
  private readonly values: readonly ParameterValue[];
  /** Index of each component's value; of the prior -1. */
  private readonly chosen: Int32Array;
  private readonly ownWeight: number;
  private readonly otherWeight: number;

  constructor({ name, values }: CategoricalParameter, points: readonly Point[]) {
    this.values = values;
    this.chosen = new Int32Array(points.length + 1).fill(-1);
    for (const [index, point] of points.entries()) this.chosen[index] = values.indexOf(point[name] ?? '');
    const share = priorWeight / (points.length + 1);
    const sum = 1 + share * values.length;
    this.ownWeight = (1 + share) / sum;
    this.otherWeight = share / sum;
  }

  draw(component: number, chance: Chance): ParameterValue {
    const chosen = this.chosen[component] ?? -1;
    const weights = this.values.map((_, index) => this.weightOf(chosen, index));
    return this.values[chance.weighted(weights, 1)] ?? '';
  }

  addLogDensities(value: ParameterValue, sums: Float64Array): void {
    const index = this.values.indexOf(value);
    const own = Math.log(this.ownWeight);
    const other = Math.log(this.otherWeight);
    const uniform = -Math.log(this.values.length);
    for (let component = 0; component < sums.length; component += 1) {
      const chosen = this.chosen[component] ?? -1;
      const logWeight = chosen === -1 ? uniform : chosen === index ? own : other;
      sums[component] = (sums[component] ?? 0) + logWeight;
    }
  }

  private weightOf(chosen: number, index: number): number {
    if (chosen === -1) return 1 / this.values.length;
    return chosen === index ? this.ownWeight : this.otherWeight;
  }
}
