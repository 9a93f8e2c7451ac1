/**
 * Distinguishes a task that hangs from one that takes its time, without help of the program. Pure: times are arguments.
 *
 * A sign of progress is a byte of output (so every step that is reported is one), or something new of a checkpoint. Let `quiet`
 * be the time since the last one, and `usual` the longest time between two of them (`UsualInterval`). The task hangs if
 *
 *     quiet > times × usual   and   quiet > atLeastMs   and   all its GPUs have been still for the last half of `quiet`
 *
 * with `times` and `atLeastMs` of the job, and still as in gpuStillness.ts. Silence alone is no verdict: without GPUs,
 * without readings of them, or as long as nothing is known of what is usual, there is none.
 *
 * All of it is of one task of one attempt, as this agent has seen it; the next attempt begins with nothing.
 */
import type { HangSign } from '@muster/common/training';
import { type GpuFacts, GpuStillness } from './gpuStillness.ts';

/** The share of the quiet time for which the GPUs have to have been still. */
const stillShare = 0.5;
/** Looks are some times a second: with a longer gap the agent itself stood still, or the machine slept. */
const lookGapMaxMs = 10_000;

export interface HangLimits {
  readonly times: number;
  readonly atLeastMs: number;
}

export class HangDetector {
  private readonly limits: HangLimits;
  private readonly gpuUuids: readonly string[];
  private readonly interval = new UsualInterval();
  private readonly gpus = new GpuStillness();
  private readonly ranks = new SilentRank();
  private lookedMs: number | null = null;

  constructor(limits: HangLimits, gpuUuids: readonly string[]) {
    this.limits = limits;
    this.gpuUuids = gpuUuids;
  }

  /**
   * To be called at every look at the task, before what it showed is reported.
   * @param nowMs monotonic
   * @param isFrozen the agent itself keeps it from running: that time does not count
   */
  look(nowMs: number, isFrozen: boolean): void {
    const gapMs = this.lookedMs === null ? 0 : nowMs - this.lookedMs;
    this.lookedMs = nowMs;
    if (isFrozen || gapMs > lookGapMaxMs) this.interval.interrupt(nowMs);
  }

  progressed(nowMs: number): void {
    this.interval.sign(nowMs);
    this.gpus.progressed();
  }

  stepPrinted(): void {
    if (this.interval.step()) this.ranks.restart();
  }

  rankSpoke(rank: number, nowMs: number): void {
    this.ranks.line(rank, nowMs);
  }

  gpuSampled(gpuUuid: string, facts: GpuFacts, nowMs: number): void {
    this.gpus.sample(gpuUuid, facts, nowMs);
  }

  /** null: it makes progress, or it cannot be determined */
  verdict(nowMs: number): HangSign | null {
    const { times, atLeastMs } = this.limits;
    const usualMs = this.interval.usualMs(atLeastMs);
    const quietForMs = this.interval.quietMs(nowMs);
    if (usualMs === null || quietForMs === null) return null;
    if (quietForMs <= times * usualMs || quietForMs <= atLeastMs) return null;
    const gpus = this.gpus.of(this.gpuUuids, nowMs - stillShare * quietForMs, nowMs);
    if (gpus === null) return null;
    const rank = this.ranks.first(nowMs - quietForMs, usualMs);
    return { quietForMs: Math.round(quietForMs), usualMs: Math.round(usualMs), gpus, rank };
  }
}

/**
 * Which rank of a task was the first to stop printing, where its lines carry ranks (`[rank3]:`). Pure.
 *
 * The rank whose next line was due first: each at the time of its last line plus its own longest interval between two.
 * Ranks that had written nothing for three times what is usual before the last sign of the task as a whole are excluded: they
 * print little by nature, as all but rank 0 do in many programs.
 */
const recentTimes = 3;
/** More than any node has: what else a program writes between such brackets must not fill our memory. */
const ranksMax = 256;

interface RankHistory {
  lastMs: number;
  longestMs: number;
  lines: number;
  /** Order of its last line among those of all ranks: lines that were read together have one time. */
  order: number;
}

class SilentRank {
  private readonly ranks = new Map<number, RankHistory>();
  private order = 0;

  /** @param nowMs monotonic */
  line(rank: number, nowMs: number): void {
    this.order += 1;
    const history = this.ranks.get(rank);
    if (history === undefined) {
      if (this.ranks.size >= ranksMax) return;
      this.ranks.set(rank, { lastMs: nowMs, longestMs: 0, lines: 1, order: this.order });
      return;
    }
    history.longestMs = Math.max(history.longestMs, nowMs - history.lastMs);
    history.lastMs = nowMs;
    history.lines += 1;
    history.order = this.order;
  }

  /** What was printed until now was starting up. */
  restart(): void {
    this.ranks.clear();
  }

  /**
   * @param lastSignMs of the task as a whole
   * @param usualMs between two signs of progress of the task
   * @returns null: fewer than two ranks can be distinguished
   */
  first(lastSignMs: number, usualMs: number): number | null {
    const sinceMs = lastSignMs - recentTimes * usualMs;
    const recent = [...this.ranks].filter(([, history]) => history.lines > 1 && history.lastMs >= sinceMs);
    if (recent.length < 2) return null;
    const dueMs = ({ lastMs, longestMs }: RankHistory) => lastMs + longestMs;
    recent.sort(([, a], [, b]) => dueMs(a) - dueMs(b) || a.order - b.order);
    return recent[0]?.[0] ?? null;
  }
}

const bucketMs = 10 * 60_000;
const bucketsMax = 36;
/** Fewer show nothing of what is usual. */
const intervalsMin = 5;
/** Of a program that prints no steps. */
const startupSigns = 2;

interface Bucket {
  readonly number: number;
  longestMs: number;
}

/**
 * How long it usually takes a task to show the next sign of progress, by its own past in this attempt. Pure.
 *
 *     usual = the longest time between two signs of progress in the last six hours
 *
 * The longest and not the mean, because what is usual includes what comes seldom: a step takes a second, the evaluation
 * after every thousand of them ten minutes, and both are progress. Six hours, because one bad moment of a file system must
 * not blind us for the rest of a run of weeks.
 *
 * Starting up is not usual: loading data, compiling kernels. So intervals count from the second step of the output
 * on. Of a program that prints no steps the first two signs are excluded, and its past has to be as long as the silence
 * that is judged by it: its first lines come quickly whatever it does afterwards.
 */
class UsualInterval {
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
   * The output has named a step.
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

  /** Nobody looked for a while: the time since the last sign means nothing. */
  interrupt(nowMs: number): void {
    if (this.lastMs !== null) this.lastMs = nowMs;
  }

  /** Since the last sign of progress; null: there was none yet. */
  quietMs(nowMs: number): number | null {
    return this.lastMs === null ? null : nowMs - this.lastMs;
  }

  /**
   * @param judgedMs the shortest silence that is judged by it
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
