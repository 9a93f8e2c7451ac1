/**
 * How much of what differs between trials each parameter explains by itself: functional analysis of variance on a random forest
 * (F. Hutter, H. Hoos, K. Leyton-Brown, An Efficient Approach for Assessing Hyperparameter Importance, ICML 2014). Pure.
 */
import { Chance } from '../chance.ts';
import { boundsOf, type Parameter, type ParameterValue, type Point, toScale, valueCount } from '../space.ts';
import { type Dimension, type Extent, growTree, type Leaf, type Sample } from './tree.ts';

export interface ParameterImportance {
  readonly name: string;
  /** From 0 to 1. The shares of all parameters together are less than 1 by what only several of them together explain. */
  readonly share: number;
}

export interface ImportanceTrial {
  readonly point: Point;
  /** Of an objective, whose direction does not matter. */
  readonly value: number;
}

/** Fewer trials than this explain nothing. */
export const importanceTrialsMin = 8;
const trees = 64;
/** More trials would take seconds, and show hardly more. */
const trialsUsedMax = 500;
/** Of the range between the quartiles: what lies further beyond them counts as if it were there, lest one diverged trial be all. */
const fenceRanges = 3;

/**
 * A parameter with a condition counts where it applies: the variance that it explains there, times how much of the space that is.
 * @param parameters in the order of a space
 * @param seed a whole number from 0 to 2 ** 32 - 1: the same seed gives the same answer
 * @returns most important first; empty: there are too few trials, or all their values are equal
 */
export function importanceOf(
  parameters: readonly Parameter[],
  trials: readonly ImportanceTrial[],
  seed: number,
): readonly ParameterImportance[] {
  const usable = evenly(
    trials.filter(({ value }) => Number.isFinite(value)),
    trialsUsedMax,
  );
  if (usable.length < importanceTrialsMin) return [];
  const dimensions = parameters.map((parameter): Dimension => {
    return parameter.type === 'categorical'
      ? { kind: 'categories', count: parameter.values.length }
      : { kind: 'range' };
  });
  const values = fenced(usable.map(({ value }) => value));
  const samples = usable.map(({ point }, index): Sample => {
    const places = Float64Array.from(parameters, (each) => placeOf(each, point[each.name]));
    return { places, value: values[index] ?? 0 };
  });
  const regions = regionsOf(parameters);
  const sums = parameters.map(() => 0);
  let counted = 0;
  for (let tree = 0; tree < trees; tree += 1) {
    const chance = new Chance(seed, `importance/${tree}`);
    const drawn = samples.map((each) => samples[chance.below(samples.length)] ?? each);
    const leaves = growTree(dimensions, drawn).map(measured);
    const whole = spreadOf(leaves);
    if (!(whole > 0)) continue;
    counted += 1;
    for (const [index, region] of regions.entries())
      sums[index] = (sums[index] ?? 0) + (region.part * mainEffect(leaves, index, region)) / whole;
  }
  if (counted === 0) return [];
  return parameters
    .map(({ name }, index) => ({ name, share: Math.min(1, (sums[index] ?? 0) / counted) }))
    .sort((a, b) => b.share - a.share);
}

/** At most `most`, spread evenly over the list. */
function evenly<T>(all: readonly T[], most: number): readonly T[] {
  if (all.length <= most) return all;
  return all.filter(
    (_, index) => Math.floor((index * most) / all.length) !== Math.floor(((index - 1) * most) / all.length),
  );
}

function fenced(values: readonly number[]): readonly number[] {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))] ?? 0;
  const [low, high] = [at(0.25), at(0.75)];
  const reach = fenceRanges * (high - low);
  // Where half of the values are one and the same, nothing is far away from it.
  return reach === 0 ? values : values.map((value) => Math.min(Math.max(value, low - reach), high + reach));
}

/** NaN: the parameter does not apply. */
function placeOf(parameter: Parameter, value: ParameterValue | undefined): number {
  if (value === undefined) return Number.NaN;
  if (parameter.type === 'categorical') {
    const index = parameter.values.indexOf(value);
    return index === -1 ? Number.NaN : index;
  }
  const { low, high } = boundsOf(parameter);
  return high > low ? (toScale(parameter, Number(value)) - low) / (high - low) : 0.5;
}

/** Where a parameter applies. */
interface Region {
  /** Its part of the space, from 0 to 1. */
  readonly part: number;
  /** By dimension: the places that count. Of one that is not there all do. */
  readonly allowed: ReadonlyMap<number, readonly number[]>;
}

function regionsOf(parameters: readonly Parameter[]): readonly Region[] {
  const indexes = new Map(parameters.map(({ name }, index) => [name, index]));
  const regions: Region[] = [];
  for (const { when } of parameters) {
    const allowed = new Map<number, readonly number[]>();
    for (const [name, values] of Object.entries(when)) {
      const index = indexes.get(name);
      const parent = index === undefined ? undefined : parameters[index];
      if (index === undefined || parent === undefined) continue;
      for (const [other, places] of regions[index]?.allowed ?? []) allowed.set(other, places);
      allowed.set(
        index,
        values.map((value) => placeOf(parent, value)),
      );
    }
    const parts = [...allowed].map(([index, places]) => {
      const parent = parameters[index];
      const count = parent === undefined ? 1 : valueCount(parent);
      return Number.isFinite(count) ? Math.min(1, places.length / count) : 1;
    });
    regions.push({ part: parts.reduce((product, part) => product * part, 1), allowed });
  }
  return regions;
}

/** How much of a dimension an extent has. @param allowed the places that count; undefined: all */
function measureOf(extent: Extent, allowed: readonly number[] | undefined): number {
  if (allowed !== undefined) {
    const inside = allowed.filter((place) =>
      extent.kind === 'range' ? place >= extent.from && place < extent.to : extent.has[place] === true,
    );
    return inside.length / allowed.length;
  }
  if (extent.kind === 'range') return extent.to - extent.from;
  return extent.has.filter(Boolean).length / extent.has.length;
}

/** A leaf with its part of the space. */
interface MeasuredLeaf extends Leaf {
  readonly weight: number;
  /** Its part of each dimension, never 0. */
  readonly measures: readonly number[];
}

function measured(leaf: Leaf): MeasuredLeaf {
  const measures = leaf.extents.map((extent) => measureOf(extent, undefined));
  return { ...leaf, measures, weight: measures.reduce((product, measure) => product * measure, 1) };
}

function spreadOf(parts: readonly { readonly weight: number; readonly value: number }[]): number {
  const whole = parts.reduce((sum, { weight }) => sum + weight, 0);
  if (!(whole > 0)) return 0;
  const mean = parts.reduce((sum, { weight, value }) => sum + weight * value, 0) / whole;
  return parts.reduce((sum, { weight, value }) => sum + weight * (value - mean) ** 2, 0) / whole;
}

/** The variance over one dimension of the mean over all others, within a region. */
function mainEffect(leaves: readonly MeasuredLeaf[], dimension: number, { allowed }: Region): number {
  const weighted = leaves.flatMap(({ extents, measures, weight: whole, value }) => {
    const own = extents[dimension];
    // What is outside of the region has no weight, and what is inside has that of its part of the region.
    const weight = [...allowed].reduce(
      (product, [index, places]) => {
        const extent = extents[index];
        return extent === undefined ? 0 : (product * measureOf(extent, places)) / (measures[index] ?? 1);
      },
      whole / (measures[dimension] ?? 1),
    );
    return own === undefined || weight === 0 ? [] : [{ own, weight, value }];
  });
  const [first] = weighted;
  if (first === undefined) return 0;
  if (first.own.kind === 'categories') {
    const sums = first.own.has.map(() => ({ weight: 0, sum: 0 }));
    for (const { own, weight, value } of weighted)
      for (const [category, sum] of sums.entries()) {
        if (own.kind !== 'categories' || own.has[category] !== true) continue;
        sum.weight += weight;
        sum.sum += weight * value;
      }
    return spreadOf(
      sums.map(({ weight, sum }) => ({ weight: weight > 0 ? 1 : 0, value: weight > 0 ? sum / weight : 0 })),
    );
  }
  // The mean changes only where a leaf begins or ends.
  const edges = weighted.flatMap(({ own, weight, value }) =>
    own.kind === 'range'
      ? [
          { at: own.from, weight, sum: weight * value },
          { at: own.to, weight: -weight, sum: -weight * value },
        ]
      : [],
  );
  edges.sort((a, b) => a.at - b.at);
  const cells: { readonly weight: number; readonly value: number }[] = [];
  let [weight, sum] = [0, 0];
  for (const [index, edge] of edges.entries()) {
    weight += edge.weight;
    sum += edge.sum;
    const width = (edges[index + 1]?.at ?? edge.at) - edge.at;
    if (width > 0 && weight > 0) cells.push({ weight: width, value: sum / weight });
  }
  return spreadOf(cells);
}
