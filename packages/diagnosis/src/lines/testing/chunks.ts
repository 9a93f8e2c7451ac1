import type { Chance } from '../../../../../test/support/chance.ts';

/** The same bytes, cut anywhere: within lines, characters and control sequences, and into nothing at all. */
export function* chunksOf(bytes: Uint8Array, chance: Chance, chunkMax = 40): Generator<Uint8Array> {
  for (let from = 0; from < bytes.length; ) {
    const size = chance.integer(0, chunkMax);
    yield bytes.subarray(from, from + size);
    from += size;
  }
}
