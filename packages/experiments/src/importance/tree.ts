/** Regression trees whose leaves are boxes of a space (L. Breiman and others, Classification and Regression Trees, 1984). Pure. */

/** A range is [0, 1]; categories have numbers from 0. */
export type Dimension = { readonly kind: 'range' } | { readonly kind: 'categories'; readonly count: number };

/** A part of one dimension. */
export type Extent =
  | { readonly kind: 'range'; readonly from: number; readonly to: number }
  | { readonly kind: 'categories'; readonly has: readonly boolean[] };

export interface Leaf {
  /** One for each dimension; all leaves together cover the space once. */
  readonly extents: readonly Extent[];
  readonly value: number;
}

export interface Sample {
  /** A place in each dimension. NaN: the dimension does not apply to it. */
  readonly places: Float64Array;
  readonly value: number;
}

interface Split {
  readonly dimension: number;
  readonly lower: Extent;
  readonly upper: Extent;
  readonly isLower: (place: number) => boolean;
}

/** Fewer samples than this say nothing about a part of the space; of many, a hundredth. */
const leafSizeMin = 2;
const leafShareMin = 0.01;
/** A split has to explain at least this share of what its node leaves open; less is rounding. */
const gainMin = 1e-9;

/**
 * A dimension that applies to some samples only is split where it applies to all of them, so that what differs because it applies at
 * all counts for the dimension on which that depends.
 * @param samples at least one
 */
export function growTree(dimensions: readonly Dimension[], samples: readonly Sample[]): readonly Leaf[] {
  const leaves: Leaf[] = [];
  const leafSize = Math.max(leafSizeMin, Math.floor(samples.length * leafShareMin));
  const open: { readonly samples: readonly Sample[]; readonly extents: readonly Extent[] }[] = [
    { samples, extents: dimensions.map(wholeOf) },
  ];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const { extents } = node;
    const split = bestSplit(node.samples, extents, leafSize);
    if (split === null) {
      leaves.push({ extents, value: sumOf(node.samples) / node.samples.length });
      continue;
    }
    const { dimension, lower, upper, isLower } = split;
    const isBelow = ({ places }: Sample) => isLower(places[dimension] ?? 0);
    open.push(
      { samples: node.samples.filter(isBelow), extents: extents.with(dimension, lower) },
      { samples: node.samples.filter((each) => !isBelow(each)), extents: extents.with(dimension, upper) },
    );
  }
  return leaves;
}

function wholeOf(dimension: Dimension): Extent {
  return dimension.kind === 'range'
    ? { kind: 'range', from: 0, to: 1 }
    : { kind: 'categories', has: Array.from({ length: dimension.count }, () => true) };
}

function sumOf(samples: readonly Sample[]): number {
  return samples.reduce((sum, { value }) => sum + value, 0);
}

/** @returns null: no split is worth it */
function bestSplit(samples: readonly Sample[], extents: readonly Extent[], leafSize: number): Split | null {
  if (samples.length < 2 * leafSize) return null;
  const mean = sumOf(samples) / samples.length;
  const open = samples.reduce((sum, { value }) => sum + (value - mean) ** 2, 0);
  let best: Split | null = null;
  let bestGain = open * gainMin;
  for (const [dimension, extent] of extents.entries()) {
    if (samples.some(({ places }) => Number.isNaN(places[dimension]))) continue;
    const order = orderOf(samples, dimension, extent);
    const found = bestCut(samples, dimension, order, { mean, leafSize });
    if (found === null || !(found.gain > bestGain)) continue;
    bestGain = found.gain;
    best =
      extent.kind === 'range'
        ? cutRange(dimension, extent, found)
        : cutCategories(dimension, extent, order, found, samples.length);
  }
  return best;
}

/** A number by which places of a dimension are sorted: of categories their mean value, by which the best of all subsets is a cut. */
function orderOf(samples: readonly Sample[], dimension: number, extent: Extent): (place: number) => number {
  if (extent.kind === 'range') return (place) => place;
  const sums = extent.has.map(() => ({ sum: 0, count: 0 }));
  for (const { places, value } of samples) {
    const category = sums[places[dimension] ?? 0];
    if (category === undefined) continue;
    category.sum += value;
    category.count += 1;
  }
  // Categories without samples have no place in the order.
  const means = sums.map(({ sum, count }) => (count === 0 ? Number.NaN : sum / count));
  const ranks = new Map(
    [...means.keys()].sort((a, b) => (means[a] ?? 0) - (means[b] ?? 0)).map((at, i) => [at, i]),
  );
  return (place) => (Number.isNaN(means[place]) ? Number.NaN : (ranks.get(place) ?? 0));
}

interface Cut {
  readonly gain: number;
  /** Between two places, on the scale of the order. */
  readonly at: number;
  /** How many samples are below it. */
  readonly below: number;
}

function bestCut(
  samples: readonly Sample[],
  dimension: number,
  order: (place: number) => number,
  { mean, leafSize }: { readonly mean: number; readonly leafSize: number },
): Cut | null {
  const sorted = samples
    .map(({ places, value }) => ({ at: order(places[dimension] ?? 0), value: value - mean }))
    .sort((a, b) => a.at - b.at);
  const total = sorted.reduce((sum, { value }) => sum + value, 0);
  let best: Cut | null = null;
  let sum = 0;
  for (let below = 1; below <= sorted.length - leafSize; below += 1) {
    const [last, next] = [sorted[below - 1], sorted[below]];
    if (last === undefined || next === undefined) break;
    sum += last.value;
    if (below < leafSize || last.at === next.at) continue;
    const gain = sum ** 2 / below + (total - sum) ** 2 / (sorted.length - below);
    if (best === null || gain > best.gain) best = { gain, at: (last.at + next.at) / 2, below };
  }
  return best;
}

function cutRange(dimension: number, { from, to }: Extract<Extent, { kind: 'range' }>, { at }: Cut): Split {
  return {
    dimension,
    lower: { kind: 'range', from, to: at },
    upper: { kind: 'range', from: at, to },
    isLower: (place) => place < at,
  };
}

function cutCategories(
  dimension: number,
  { has }: Extract<Extent, { kind: 'categories' }>,
  order: (place: number) => number,
  { at, below }: Cut,
  count: number,
): Split {
  // A category that no sample has goes with most of the samples.
  const isLower = (place: number) => (Number.isNaN(order(place)) ? 2 * below > count : order(place) < at);
  return {
    dimension,
    lower: { kind: 'categories', has: has.map((own, place) => own && isLower(place)) },
    upper: { kind: 'categories', has: has.map((own, place) => own && !isLower(place)) },
    isLower,
  };
}
