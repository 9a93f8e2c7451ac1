/**
 * How long it usually takes a task to show the next sign of progress, by its own past in this attempt. Pure.
 *
 *     usual = the longest time between two signs of progress in the last six hours
 *
 * The longest and not the mean, because what is usual includes what comes seldom: a step takes a second, the evaluation
 * after every thousand of them ten minutes, and both are progress. Six hours, because one bad moment of a file system must
 * not blind us for the rest of a run of weeks.
 *
 * Starting up is not usual: loading data, compiling kernels. So intervals count from the second step that the output
 * tells on. A program that tells no steps has its first two signs left out, and its past has to be as long as the silence
 * that it is to judge: its first lines come quickly whatever it does afterwards.
 */

const bucketMs = 10 * 60_000;
const bucketsMax = 36;
/** Fewer say nothing about what is usual. */
const intervalsMin = 5;
/** Of a program that tells no steps. */
const startupSigns = 2;

interface Bucket {
  readonly number: number;
  longestMs: number;
}

export class UsualInterval {
  private buckets: Bucket[] = [];
  private lastMs: number | null = null;
  private signs = 0;
  private intervals = 0;
  /** When the first interval that counts began. */
  private sinceMs: number | null = null;
  private steps = 0;

  /** @param nowMs monotonic; does not go back */
  sign(nowMs: number): void {
    const { lastMs } = this;
    this.lastMs = nowMs;
    this.signs += 1;
    if (lastMs === null) return;
    if (this.steps === 0 && this.signs <= startupSigns + 1) return;
    this.intervals += 1;
    this.sinceMs ??= lastMs;
    const number = Math.floor(nowMs / bucketMs);
    const newest = this.buckets.at(-1);
    const intervalMs = nowMs - lastMs;
    if (newest?.number === number) newest.longestMs = Math.max(newest.longestMs, intervalMs);
    else this.buckets = [...this.buckets.slice(1 - bucketsMax), { number, longestMs: intervalMs }];
  }

  /**
   * The output has told a step.
   * @returns whether it was the second one: what was measured by then was starting up, and is forgotten
   */
  step(): boolean {
    this.steps += 1;
    if (this.steps !== 2) return false;
    this.buckets = [];
    this.intervals = 0;
    this.sinceMs = null;
    return true;
  }

  /** Nobody looked for a while: the time since the last sign tells nothing. */
  interrupt(nowMs: number): void {
    if (this.lastMs !== null) this.lastMs = nowMs;
  }

  /** Since the last sign of progress; null: there was none yet. */
  quietMs(nowMs: number): number | null {
    return this.lastMs === null ? null : nowMs - this.lastMs;
  }

  /**
   * @param judgedMs the least silence that is to be judged by it
   * @returns null: not known yet
   */
  usualMs(judgedMs: number): number | null {
    const { lastMs, sinceMs } = this;
    if (this.intervals < intervalsMin || lastMs === null || sinceMs === null) return null;
    if (this.steps < 2 && lastMs - sinceMs < judgedMs) return null;
    // Seen from the last sign, not from now: what was usual must not be forgotten while the task is silent.
    const oldest = Math.floor(lastMs / bucketMs) - bucketsMax;
    return Math.max(0, ...this.buckets.filter(({ number }) => number > oldest).map((each) => each.longestMs));
  }
}
