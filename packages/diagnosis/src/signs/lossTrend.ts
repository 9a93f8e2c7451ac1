/**
 * Distinguishes a spike from a divergence. Both begin with a loss far above the usual (see `UsualLoss`). A spike may return by
 * itself, as they do in large runs within some tens of steps, so it is only reported; it is a divergence once the loss
 *
 * - has stayed high for 50 steps AND 3 lines: a program that prints every 500 steps prints means of many steps;
 * - and is far above the usual now and in most of these lines, so that a spike that is returning does not count.
 *
 * The loss has returned once 3 lines in a row are less than half as far above the median as the limit is.
 */

const divergenceSteps = 50;
const divergenceRows = 3;
/** Where lines have no steps: each may stand for any number of them. */
const divergenceRowsWithoutSteps = 20;
const returnedRows = 3;

type LossSign = 'loss_spike' | 'loss_divergence';

/** Of losses that are too high. */
interface Stretch {
  readonly usual: Usual;
  readonly step: number | null;
  rows: number;
  farRows: number;
  calmRows: number;
  isDivergence: boolean;
}

export class LossTrend {
  private readonly usual = new UsualLoss();
  private stretch: Stretch | null = null;

  /** Whether the newest loss is normal: no stretch of high losses is open, or this loss counts as returned. */
  get isCalm(): boolean {
    return this.stretch === null || this.stretch.calmRows > 0;
  }

  /** @param step null: unknown */
  loss(loss: number, step: number | null): LossSign | null {
    if (this.stretch !== null) return this.withinStretch(this.stretch, loss, step);
    const usual = this.usual.exceededBy(loss);
    if (usual === null) {
      this.usual.accept(loss);
      return null;
    }
    this.stretch = { usual, step, rows: 1, farRows: 1, calmRows: 0, isDivergence: false };
    return 'loss_spike';
  }

  private withinStretch(stretch: Stretch, loss: number, step: number | null): LossSign | null {
    const { median, limit } = stretch.usual;
    if (loss <= median + (limit - median) / 2) {
      stretch.calmRows += 1;
      this.usual.accept(loss);
      if (stretch.calmRows >= returnedRows) this.stretch = null;
      return null;
    }
    stretch.calmRows = 0;
    stretch.rows += 1;
    if (loss <= limit) return null;
    stretch.farRows += 1;
    if (stretch.isDivergence || !lasts(stretch, step) || stretch.farRows * 2 <= stretch.rows) return null;
    stretch.isDivergence = true;
    return 'loss_divergence';
  }
}

function lasts({ rows, step: since }: Stretch, step: number | null): boolean {
  if (since === null || step === null) return rows >= divergenceRowsWithoutSteps;
  return rows >= divergenceRows && step - since >= divergenceSteps;
}

const windowRows = 64;
/** Fewer show nothing about noise: only a loss that many times the highest of them is seen. */
const rowsOfNoise = 5;
const rowsMin = 3;
const timesOfFew = 2.5;
/** A median of fewer is not worth being remembered as the lowest. */
const rowsOfLowest = 32;
const deviationPerDistance = 1.4826;

interface Usual {
  readonly median: number;
  /** Losses above it are far above what is usual. */
  readonly limit: number;
}

/**
 * What is usual for a loss, by its own past, so that noise is not taken for trouble. Medians instead of means: the bad
 * values that are looked for must not move what they are measured by.
 *
 * A loss is far above the usual if it is above the median `m` of the last 64 accepted losses by more than the largest of
 *
 * - half of `m`: a pretraining at 2.2 that jumps to 3.3 has lost weeks; what rises by less comes with other data;
 * - 10 standard deviations (as 1.4826 × the median distance of these 64 from their median): noise of small batches;
 * - twice the worst rise above their median: noise with heavy tails, and the steep beginning of a run;
 * - 0.2: losses that hover around 0 (policies, distances) have no scale that a share could be taken of. Of a loss that is
 *   always smaller than that, nothing is claimed.
 *
 * Of the third to fifth loss, none of this is known yet; there, 2.5 times the highest so far is far above.
 *
 * `m` is never above the lowest such median before: a loss that creeps up for days must not become the usual one.
 */
export class UsualLoss {
  /** In the order of their coming, the oldest at `next` once it is full. */
  private readonly window: number[] = [];
  private next = 0;
  private readonly sorted: number[] = [];
  private lowest = Number.POSITIVE_INFINITY;

  accept(loss: number): void {
    const oldest = this.window[this.next];
    this.window[this.next] = loss;
    this.next = (this.next + 1) % windowRows;
    this.sort(loss, oldest === undefined ? this.sorted.length : placeOf(oldest, this.sorted));
    if (this.window.length >= rowsOfLowest) this.lowest = Math.min(this.lowest, middle(this.sorted));
  }

  /** @param place of what is no longer needed: what stands between it and where `loss` belongs moves by one */
  private sort(loss: number, place: number): void {
    const sorted = this.sorted;
    let at = place;
    for (; at + 1 < sorted.length && (sorted[at + 1] ?? 0) < loss; at += 1) sorted[at] = sorted[at + 1] ?? 0;
    for (; at > 0 && (sorted[at - 1] ?? 0) > loss; at -= 1) sorted[at] = sorted[at - 1] ?? 0;
    sorted[at] = loss;
  }

  /**
   * @param loss the loss to judge: the costly part is skipped where it is not even half above the usual
   * @returns null: `loss` is not far above, or too little is known
   */
  exceededBy(loss: number): Usual | null {
    if (this.sorted.length < rowsMin) return null;
    const present = middle(this.sorted);
    const median = Math.min(present, this.lowest);
    const least = Math.max(0.2, Math.abs(median) / 2);
    if (loss - median <= least) return null;
    if (this.sorted.length < rowsOfNoise) return this.exceedsFew(loss, median);
    const distances = this.sorted.map((each) => Math.abs(each - present)).sort((a, b) => a - b);
    const noise = 10 * deviationPerDistance * middle(distances);
    const worst = 2 * ((this.sorted.at(-1) ?? present) - present);
    const limit = median + Math.max(least, noise, worst);
    return loss > limit ? { median, limit } : null;
  }

  private exceedsFew(loss: number, median: number): Usual | null {
    const highest = this.sorted.at(-1) ?? median;
    const limit = Math.max(timesOfFew * highest, median + 0.2);
    return loss > limit ? { median, limit } : null;
  }
}

function middle(sorted: readonly number[]): number {
  return sorted[sorted.length >> 1] ?? 0;
}

/** @returns the first index of `sorted` whose value is not below `value` */
function placeOf(value: number, sorted: readonly number[]): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const half = (from + to) >> 1;
    if ((sorted[half] ?? 0) < value) from = half + 1;
    else to = half;
  }
  return from;
}
