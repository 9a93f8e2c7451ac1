/** Which of several things are best by several objectives: none is better than one of these in one without being worse in another. Pure. */

/** Of each thing the losses, of which less is better, as many as there are objectives. */
type Losses = readonly number[];

/** Whether one is nowhere worse, and somewhere better. */
function dominates(one: Losses, other: Losses): boolean {
  let isBetter = false;
  for (const [index, loss] of one.entries()) {
    const theirs = other[index] ?? 0;
    if (loss > theirs) return false;
    if (loss < theirs) isBetter = true;
  }
  return isBetter;
}

function byLosses(a: Losses, b: Losses): number {
  for (const [index, loss] of a.entries()) {
    const theirs = b[index] ?? 0;
    if (loss !== theirs) return loss < theirs ? -1 : 1;
  }
  return 0;
}

/**
 * Indexes of the things that no other dominates, then of those that only those dominate, and so on, until there are enough.
 * @param enough how many things all fronts together have at least, unless there are fewer
 * @returns fronts, each in the order of the things
 */
export function frontsOf(points: readonly Losses[], enough: number): readonly (readonly number[])[] {
  const fronts: (readonly number[])[] = [];
  // What dominates a thing comes before it in this order.
  let rest = [...points.keys()].sort((a, b) => byLosses(points[a] ?? [], points[b] ?? []) || a - b);
  let found = 0;
  while (rest.length > 0 && found < enough) {
    const front: number[] = [];
    const behind: number[] = [];
    for (const index of rest) {
      const isDominated = front.some((each) => dominates(points[each] ?? [], points[index] ?? []));
      (isDominated ? behind : front).push(index);
    }
    fronts.push(front.sort((a, b) => a - b));
    found += front.length;
    rest = behind;
  }
  return fronts;
}

/**
 * Those that lie furthest from their neighbours, both ends of each objective first: the crowding distance of NSGA-II (K. Deb and others,
 * IEEE Transactions on Evolutionary Computation, 2002).
 * @param front indexes of things
 */
export function leastCrowded(
  points: readonly Losses[],
  front: readonly number[],
  count: number,
): readonly number[] {
  if (front.length <= count) return front;
  const distances = new Map(front.map((index) => [index, 0]));
  const objectives = points[front[0] ?? 0]?.length ?? 0;
  for (let objective = 0; objective < objectives; objective += 1) {
    const lossOf = (index: number | undefined) => points[index ?? 0]?.[objective] ?? 0;
    const sorted = front.toSorted((a, b) => lossOf(a) - lossOf(b) || a - b);
    const range = lossOf(sorted.at(-1)) - lossOf(sorted[0]);
    for (const [place, index] of sorted.entries()) {
      const isEnd = place === 0 || place === sorted.length - 1;
      const gap = range > 0 ? (lossOf(sorted[place + 1]) - lossOf(sorted[place - 1])) / range : 0;
      distances.set(index, (distances.get(index) ?? 0) + (isEnd ? Number.POSITIVE_INFINITY : gap));
    }
  }
  const chosen = new Set(
    front
      .toSorted((a, b) => {
        const [first, second] = [distances.get(a) ?? 0, distances.get(b) ?? 0];
        return first === second ? a - b : second > first ? 1 : -1;
      })
      .slice(0, count),
  );
  return front.filter((index) => chosen.has(index));
}
