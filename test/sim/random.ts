/** Chance from a seed: the same seed draws the same values, on every machine and in every version of Node. */
import { Chance } from '@muster/experiments/chance';

/** One independent stream of draws. Parts that draw from streams of their own do not disturb each other's luck. */
export class Random extends Chance {
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number, both ends included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  /** Waiting time until the next of events that come once per `meanMs` on average. */
  waitMs(meanMs: number): number {
    return Math.max(1, Math.round(-Math.log(1 - this.next()) * meanMs));
  }

  /** @throws {RangeError} for an empty list */
  pick<T>(list: readonly T[]): T {
    const value = list[Math.floor(this.next() * list.length)];
    if (value === undefined) throw new RangeError('nothing to pick from');
    return value;
  }

  bytes(size: number): Uint8Array {
    return Uint8Array.from({ length: size }, () => this.between(0, 255));
  }
}
