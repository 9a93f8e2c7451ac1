/**
 * How long a step takes now. A program's own step time is believed where it tells one; else the time at which its lines
 * came counts, which holds evaluations and saves as well.
 */

/** Programs tell a step twice or a little late; going back further, they have begun anew. */
const rewindSteps = 50;
/** Enough to even out a slow step, few enough to follow a change of the load. */
const marksMax = 20;
/**
 * Lines that come together are one mark: output that was written before it is read (an agent that was restarted) arrives
 * at once and would be taken for a speed.
 */
const markMs = 500;

interface Mark {
  readonly sinceMs: number;
  atMs: number;
  step: number;
}

export class Speed {
  /** The newest, in no order: the oldest is overwritten. */
  readonly #told: number[] = [];
  #nextTold = 0;
  #marks: Mark[] = [];

  tell(stepSeconds: number): void {
    if (stepSeconds <= 0) return;
    this.#told[this.#nextTold] = stepSeconds;
    this.#nextTold = (this.#nextTold + 1) % marksMax;
  }

  arrive(step: number, atMs: number): void {
    const newest = this.#marks.at(-1);
    if (newest !== undefined && (step < newest.step - rewindSteps || atMs < newest.atMs)) this.#marks = [];
    else if (newest !== undefined && step <= newest.step) return;
    else if (newest !== undefined && atMs - newest.sinceMs < markMs) {
      newest.step = step;
      newest.atMs = atMs;
      return;
    }
    this.#marks.push({ sinceMs: atMs, atMs, step });
    if (this.#marks.length > marksMax) this.#marks.shift();
  }

  /** null: not known yet */
  get stepSeconds(): number | null {
    if (this.#told.length > 0) {
      const sorted = this.#told.toSorted((a, b) => a - b);
      return sorted[sorted.length >> 1] ?? null;
    }
    const [oldest, newest] = [this.#marks[0], this.#marks.at(-1)];
    if (oldest === undefined || newest === undefined || newest.step <= oldest.step) return null;
    return (newest.atMs - oldest.atMs) / 1000 / (newest.step - oldest.step);
  }
}
