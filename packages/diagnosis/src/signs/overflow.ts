/**
 * Overflows of half-precision training. A few at the start are how a dynamic loss scale finds its value: it begins at up to
 * 2^32 and is halved each time. Later ones come alone, whenever it was doubled once too often. It is exhausted when
 *
 * - the program reports it;
 * - gradients overflow 3 times in a row at a scale of 1, at which nothing is scaled any longer. Not in fairseq, which
 *   continues below 1 and reports by itself that it has reached its minimum;
 * - there were 64 overflows in a row, twice what halving 2^32 takes.
 */
const overflow = /overflow/i;
const reduced = /(reducing(?: loss scale)? to|setting loss scale to:?) ([\d.eE+-]{1,40}\b)/i;
const attempted = /loss scale: ([\d.eE+-]{1,40})/i;
/** Of a line, from the match on. */
const wordingLengthMax = 300;
const exhausted = /Current loss scale already at minimum|Minimum loss scale reached/;

const atMinimumMax = 3;
const inARowMax = 64;

export class Overflows {
  private inARow = 0;
  private atMinimum = 0;
  /** As the newest overflow left it. */
  private scale: number | null = null;

  /** A step went well. */
  end(): void {
    this.inARow = 0;
    this.atMinimum = 0;
    this.scale = null;
  }

  /** @returns whether the loss scale is exhausted */
  line(text: string): boolean {
    if (exhausted.test(text)) return true;
    const from = overflow.exec(text)?.index;
    if (from === undefined) return false;
    const wording = text.slice(from, from + wordingLengthMax);
    const found = reduced.exec(wording);
    if (found === null) return false;
    const [, verb = '', scale] = found;
    const tried = attempted.exec(wording.slice(0, found.index))?.[1];
    // It has grown since the newest overflow, so steps went well in between; or it is the same on another rank.
    if (tried !== undefined && this.scale !== null && Number(tried) > this.scale) this.end();
    return this.count(Number(scale), verb.startsWith('setting'));
  }

  /** A line of metrics shows that every one of its steps was skipped. */
  skipped(scale: number | null): boolean {
    return this.count(scale, false);
  }

  private count(scale: number | null, mayFallBelow1: boolean): boolean {
    if (scale !== null && this.scale !== null && scale > this.scale) this.end();
    this.scale = scale;
    this.inARow += 1;
    if (scale !== null && scale <= 1 && !mayFallBelow1) this.atMinimum += 1;
    return this.atMinimum >= atMinimumMax || this.inARow >= inARowMax;
  }
}
