/**
 * How often a directory is looked at: regularly, sooner after a hint, and never so often that looking takes more than a
 * small part of the time, however much lies there.
 */

export interface LookPace {
  /** Between two looks without a hint. */
  readonly longestMs: number;
  /** Between two looks in any case. */
  readonly shortestMs: number;
}

/** A look every second is as good as none to the disk; while a task is stopped every moment holds GPUs. */
const usual: LookPace = { longestMs: 1_000, shortestMs: 100 };
const whileStopping: LookPace = { longestMs: 100, shortestMs: 20 };
/** Pauses are so many times as long as a look. */
const usualRest = 50;
const leastRest = 4;
/** A checkpoint is noticed within about a minute however slow the directory is, unless a look alone takes a quarter of that. */
const restMaxMs = 60_000;

/**
 * @param tooksMs of the last looks, at least one, each ≥ 0; the shortest one counts, because a single long one shows a
 *   machine that stood still and not a directory that takes long to read
 */
export function paceAfter(tooksMs: readonly number[], isStopping: boolean): LookPace {
  const { longestMs, shortestMs } = isStopping ? whileStopping : usual;
  const tookMs = Math.min(...tooksMs);
  const leastMs = tookMs * leastRest;
  const restMs = isStopping ? leastMs : Math.min(tookMs * usualRest, Math.max(leastMs, restMaxMs));
  return { longestMs: Math.max(longestMs, restMs), shortestMs: Math.max(shortestMs, restMs) };
}

export class Pacer {
  private readonly monotonicMs: () => number;
  private isHinted = false;
  private isEnded = false;
  /** Of the pause that is under way. */
  private shorten: (() => void) | null = null;

  constructor(monotonicMs: () => number) {
    this.monotonicMs = monotonicMs;
  }

  /** There may be something new. */
  hint(): void {
    this.isHinted = true;
    this.shorten?.();
  }

  /** Pauses are over for good. */
  end(): void {
    this.isEnded = true;
    this.hint();
  }

  /** Resolves when it is time for the next look. */
  pause(pace: () => LookPace): Promise<void> {
    const beganMs = this.monotonicMs();
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | null = null;
      const wait = () => {
        if (timer !== null) clearTimeout(timer);
        const { longestMs, shortestMs } = pace();
        const wantedMs = this.isEnded ? 0 : this.isHinted ? shortestMs : longestMs;
        timer = setTimeout(done, Math.max(0, wantedMs - (this.monotonicMs() - beganMs)));
      };
      const done = () => {
        this.shorten = null;
        this.isHinted = false;
        resolve();
      };
      this.shorten = wait;
      wait();
    });
  }
}
