/** Chance from a seed: the same seed draws the same values, on every machine and in every version of Node. */

/** One independent stream of draws. Parts that draw from streams of their own do not disturb each other's luck. */
export class Random {
  private a: number;
  private b: number;
  private c: number;
  private counter = 1;

  /** @param name streams of one seed with different names are independent */
  constructor(seed: number, name: string) {
    let hash = 0x811c9dc5;
    for (const character of `${seed}/${name}`) {
      hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
    }
    this.a = hash;
    this.b = seed >>> 0;
    this.c = 0x9e3779b9;
    for (let round = 0; round < 12; round += 1) this.next();
  }

  /** Uniform in [0, 1); sfc32. */
  next(): number {
    const sum = (((this.a + this.b) | 0) + this.counter) | 0;
    this.counter = (this.counter + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = ((this.c << 21) | (this.c >>> 11)) + sum;
    return (sum >>> 0) / 2 ** 32;
  }

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
