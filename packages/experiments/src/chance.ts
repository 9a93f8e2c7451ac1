/** Chance from a seed: the same seed draws the same values on every machine. */

/** One stream of draws; streams of one seed with different names are independent. */
export class Chance {
  private a: number;
  private b: number;
  private c: number;
  private counter = 1;

  /** @param seed a whole number from 0 to 2 ** 32 - 1 */
  constructor(seed: number, name: string) {
    let hash = 0x811c9dc5;
    for (const character of `${seed}/${name}`)
      hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
    this.a = hash;
    this.b = seed >>> 0;
    this.c = 0x9e3779b9;
    for (let round = 0; round < 12; round += 1) this.next();
  }

  /** Uniform in [0, 1), by sfc32. */
  next(): number {
    const sum = (((this.a + this.b) | 0) + this.counter) | 0;
    this.counter = (this.counter + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = ((this.c << 21) | (this.c >>> 11)) + sum;
    return (sum >>> 0) / 2 ** 32;
  }

  /** A whole number from 0, below `count`. */
  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  /** Standard normal, by the method of Box and Muller. */
  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next());
  }

  /** An index with a probability in proportion to its weight. @param sum of all weights */
  weighted(weights: ArrayLike<number>, sum: number): number {
    let rest = this.next() * sum;
    for (let index = 0; index < weights.length; index += 1) {
      rest -= weights[index] ?? 0;
      if (rest < 0) return index;
    }
    return weights.length - 1;
  }
}
