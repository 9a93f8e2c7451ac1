/** Chance that can be repeated: a test prints its seed, and the same seed makes the same choices. */
export interface Chance {
  readonly seed: number;
  /** Uniform in [0, 1). */
  fraction(): number;
  /** A whole number from `min` to `max`, both included. */
  integer(min: number, max: number): number;
  pick<T>(values: readonly [T, ...T[]]): T;
  shuffled<T>(values: readonly T[]): readonly T[];
}

/** @param seed default: MUSTER_TEST_SEED, or another one for each run */
export function seededChance(
  seed: number = Number(process.env.MUSTER_TEST_SEED ?? Date.now() % 1_000_000),
): Chance {
  let state = seed;
  /** mulberry32 */
  const fraction = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const integer = (min: number, max: number) => min + Math.floor(fraction() * (max - min + 1));
  return {
    seed,
    fraction,
    integer,
    pick: (values) => values[integer(0, values.length - 1)] ?? values[0],
    shuffled: (values) =>
      values
        .map((value) => ({ value, place: fraction() }))
        .sort((a, b) => a.place - b.place)
        .map(({ value }) => value),
  };
}
