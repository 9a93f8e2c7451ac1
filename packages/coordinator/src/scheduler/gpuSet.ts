/**
 * Which of a node's free GPUs a task gets: those that talk to each other fastest. A collective goes at the pace of its
 * slowest link, so the slowest counts first, then the sum of all, then staying on one NUMA node, and at last what is left
 * for the next task. (The order of preference is that of NCCL's own topology search.)
 */
import { cardUuid, type DeviceLink, type Gpu } from '@muster/common/hardware';

/** Above this many sets to look at, sets grow from their best pair instead: 8 of 16 are 12,870. */
const setsMax = 20_000;

/** NV1 … are worth 10 and their number; an unknown pair is worth nothing. */
const worthOfKind: Readonly<Record<string, number>> = { PIX: 5, PXB: 4, PHB: 3, NODE: 2, SYS: 1 };
const sameCardWorth = 6;
const nvlinkWorth = 10;

/**
 * @param free in the order in which they are taken when nothing tells them apart
 * @param count at most as many as there are
 */
export function chooseGpus(
  free: readonly Gpu[],
  count: number,
  links: readonly DeviceLink[],
): readonly Gpu[] {
  if (count === 0 || count >= free.length || links.length === 0) return free.slice(0, count);
  const worth = worthMatrix(free, links);
  const numaOf = free.map(({ numaNode }) => numaNode);
  const sets =
    setCount(free.length, count) <= setsMax
      ? subsets(free.length, count)
      : grownSets(worth, free.length, count);
  let best: { readonly set: readonly number[]; readonly score: Score } | null = null;
  for (const set of sets) {
    const score = scoreOf(set, worth, numaOf);
    if (best === null || isBetter(score, best.score)) best = { set, score };
  }
  return (best?.set ?? []).flatMap((index) => free[index] ?? []);
}

/** Compared from the first to the last; more is better. */
type Score = readonly number[];

function isBetter(a: Score, b: Score): boolean {
  const index = a.findIndex((value, at) => value !== b[at]);
  return index >= 0 && (a[index] ?? 0) > (b[index] ?? 0);
}

type Worth = readonly (readonly number[])[];

function worthMatrix(gpus: readonly Gpu[], links: readonly DeviceLink[]): Worth {
  const byPair = new Map(
    links.flatMap(({ from, to, kind }) => [
      [`${from} ${to}`, kind],
      [`${to} ${from}`, kind],
    ]),
  );
  return gpus.map((a) =>
    gpus.map((b) => {
      if (cardUuid(a) === cardUuid(b)) return sameCardWorth;
      return worthOf(byPair.get(`${cardUuid(a)} ${cardUuid(b)}`) ?? '');
    }),
  );
}

function worthOf(kind: string): number {
  const [, count] = /^NV(\d+)$/.exec(kind) ?? [];
  return count === undefined ? (worthOfKind[kind] ?? 0) : nvlinkWorth + Number(count);
}

function scoreOf(set: readonly number[], worth: Worth, numaOf: readonly (number | null)[]): Score {
  let slowest = Number.POSITIVE_INFINITY;
  let sum = 0;
  for (const [position, a] of set.entries()) {
    for (const b of set.slice(position + 1)) {
      const pair = worth[a]?.[b] ?? 0;
      slowest = Math.min(slowest, pair);
      sum += pair;
    }
  }
  const numaNodes = new Set(set.map((index) => numaOf[index] ?? null));
  const rest = worth.flatMap((_, index) => (set.includes(index) ? [] : [index]));
  return [slowest, sum, -numaNodes.size, largestGroup(rest, worth), sumOf(rest, worth)];
}

/** The most GPUs of these that NVLinks connect, directly or through others. */
function largestGroup(indexes: readonly number[], worth: Worth): number {
  const left = new Set(indexes);
  let largest = 0;
  for (const start of indexes) {
    if (!left.delete(start)) continue;
    const group = [start];
    for (const member of group) {
      for (const other of left) {
        if ((worth[member]?.[other] ?? 0) <= nvlinkWorth) continue;
        left.delete(other);
        group.push(other);
      }
    }
    largest = Math.max(largest, group.length);
  }
  return largest;
}

function sumOf(indexes: readonly number[], worth: Worth): number {
  let sum = 0;
  for (const [position, a] of indexes.entries())
    for (const b of indexes.slice(position + 1)) sum += worth[a]?.[b] ?? 0;
  return sum;
}

/** How many sets of `count` there are among `total`. */
function setCount(total: number, count: number): number {
  let sets = 1;
  for (let taken = 0; taken < count; taken += 1) sets = (sets * (total - taken)) / (taken + 1);
  return sets;
}

/** Every set of `count` of the numbers below `total`, in the order of their numbers. */
function* subsets(total: number, count: number, from = 0): Iterable<readonly number[]> {
  if (count === 0) {
    yield [];
    return;
  }
  for (let first = from; first <= total - count; first += 1)
    for (const rest of subsets(total, count - 1, first + 1)) yield [first, ...rest];
}

/** One set for each GPU to begin with, each grown by whichever is best connected with all that are in it. */
function* grownSets(worth: Worth, total: number, count: number): Iterable<readonly number[]> {
  for (let start = 0; start < total; start += 1) {
    const set = [start];
    while (set.length < count) {
      let best = -1;
      let bestScore: Score = [];
      for (let candidate = 0; candidate < total; candidate += 1) {
        if (set.includes(candidate)) continue;
        const pairs = set.map((member) => worth[member]?.[candidate] ?? 0);
        const score = [Math.min(...pairs), pairs.reduce((sum, pair) => sum + pair, 0)];
        if (best < 0 || isBetter(score, bestScore)) [best, bestScore] = [candidate, score];
      }
      set.push(best);
    }
    yield set.sort((a, b) => a - b);
  }
}
