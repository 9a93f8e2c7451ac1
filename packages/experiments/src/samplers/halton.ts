/**
 * The quasi-random sequence of Halton: points that fill a space more evenly than random ones do. The digits are permuted at random,
 * a permutation for each place, because the plain sequence has lines of points where the bases are large (A. B. Owen, A randomized
 * Halton algorithm in R, 2017, arXiv:1706.02808).
 */
import { Chance } from '../chance.ts';
import { EmptySpaceError, type Point } from '../space.ts';
import { pointAt } from './random.ts';
import type { SuggestionRequest } from './sampler.ts';

/** Points that are skipped in a row before a space counts as empty. */
const skippedMax = 10_000;
/** Smaller parts of a share than this do not fit into a number. */
const resolution = 2 ** -52;

export function sampleHalton({ space, seed, number }: SuggestionRequest): Point {
  const sequences = space.parameters.map((_, index) => new Scrambled(primeAt(index), seed, index));
  const pointOf = (index: number) => pointAt(space, (dimension) => sequences[dimension]?.at(index) ?? 0);
  if (space.allows === null) return pointOf(number);
  let found = 0;
  for (let index = 0, skipped = 0; skipped < skippedMax; index += 1) {
    const point = pointOf(index);
    // Points that are not allowed do not count, so that each trial has a point of its own.
    if (!space.allows(point)) skipped += 1;
    else if (found === number) return point;
    else {
      found += 1;
      skipped = 0;
    }
  }
  throw new EmptySpaceError(`none of ${skippedMax} points in a row meets the constraints`);
}

/** The radical inverse in one base, with permuted digits. */
class Scrambled {
  private readonly base: number;
  private readonly permutations: readonly (readonly number[])[];

  constructor(base: number, seed: number, dimension: number) {
    this.base = base;
    const chance = new Chance(seed, `halton/${dimension}`);
    const places = Math.ceil(Math.log(resolution) / -Math.log(base));
    this.permutations = Array.from({ length: places }, () => permutation(base, chance));
  }

  at(index: number): number {
    let rest = index;
    let share = 0;
    let unit = 1 / this.base;
    for (const digits of this.permutations) {
      share += (digits[rest % this.base] ?? 0) * unit;
      rest = Math.floor(rest / this.base);
      unit /= this.base;
    }
    return Math.min(share, 1 - resolution);
  }
}

function permutation(count: number, chance: Chance): readonly number[] {
  const items = Array.from({ length: count }, (_, index) => index);
  for (let last = count - 1; last > 0; last -= 1) {
    const other = chance.below(last + 1);
    [items[last], items[other]] = [items[other] ?? 0, items[last] ?? 0];
  }
  return items;
}

/** The prime number with an index: 2, 3, 5. */
function primeAt(index: number): number {
  const primes: number[] = [];
  for (let candidate = 2; primes.length <= index; candidate += 1)
    if (primes.every((prime) => candidate % prime !== 0)) primes.push(candidate);
  return primes[index] ?? 2;
}
