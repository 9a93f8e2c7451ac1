/**
 * Which running trials are not worth their time now, and which of those that were stopped for that are worth it by now. Each answer
 * follows from the curves as they are, so it is the same after a restart.
 *
 * - median: worse than the median of the complete trials at the same step (D. Golovin and others, Google Vizier, KDD 2017)
 * - ASHA: not among the best of those that have reached the same rung (L. Li and others, A System for Massively Parallel Hyperparameter
 *   Tuning, MLSys 2020). A trial is judged at the highest rung that it has reached, and again as others reach it: the more come, the
 *   more are among the best, so that one that was stopped may continue. It then runs to the next rung, whoever comes meanwhile.
 * - Hyperband: ASHA with several first rungs, each for a part of the trials, because nobody knows how early a curve shows its end
 *   (L. Li and others, Hyperband, JMLR 2018)
 */

export type StoppingRule =
  | (FirstRung & { readonly kind: 'median'; readonly minTrials: number })
  | (FirstRung & { readonly kind: 'asha'; readonly reduction: number })
  | (FirstRung & {
      readonly kind: 'hyperband';
      /** Where trials end. */
      readonly max: number;
      readonly reduction: number;
    });

interface FirstRung {
  /** Of `min`, of `max`, and of the positions of curves. */
  readonly unit: 'steps' | 'epochs';
  /** Before it no trial is stopped. */
  readonly min: number;
}

export interface TrialCurve {
  readonly number: number;
  /** `paused`: it was stopped at a rung, and can be resumed. `complete`: it has come to its end by itself. `over`: anything else. */
  readonly state: 'running' | 'paused' | 'complete' | 'over';
  /** By their position, in steps or epochs. Less loss is better. */
  readonly points: readonly { readonly at: number; readonly loss: number }[];
  /** The rung for which it was resumed last: it is judged again at the next one. null: it never was. */
  readonly promotedAt: number | null;
}

export interface RungVerdict {
  /** Numbers of running trials to stop. */
  readonly stop: readonly number[];
  /** Paused trials that are among the best of their rung by now, the highest rung first, then the best. */
  readonly promote: readonly Promotion[];
}

export interface Promotion {
  readonly number: number;
  readonly rung: number;
}

/** Whether trials that a rule stops may be resumed by it later. */
export function pausesTrials({ kind }: StoppingRule): boolean {
  return kind !== 'median';
}

export function judgeTrials(rule: StoppingRule, curves: readonly TrialCurve[]): RungVerdict {
  switch (rule.kind) {
    case 'median':
      return { stop: belowMedian(rule, curves), promote: [] };
    case 'asha':
      return ofRungs(atRungs(rule, curves));
    default: {
      const count = bracketsOf(rule);
      const brackets = Map.groupBy(curves, ({ number }) => bracketOf(rule, count, number));
      return ofRungs(
        [...brackets].flatMap(([bracket, own]) => {
          const min = rule.min * rule.reduction ** bracket;
          return atRungs({ min, reduction: rule.reduction }, own);
        }),
      );
    }
  }
}

function belowMedian(
  { min, minTrials }: { readonly min: number; readonly minTrials: number },
  curves: readonly TrialCurve[],
): readonly number[] {
  const complete = curves.filter(({ state }) => state === 'complete');
  return curves
    .filter(({ state, points }) => {
      const last = points.at(-1)?.at;
      if (state !== 'running' || last === undefined || last < min) return false;
      const others = complete.flatMap((curve) => lossAt(curve, last) ?? []).sort((a, b) => a - b);
      if (others.length < minTrials) return false;
      return Math.min(...points.map(({ loss }) => loss)) > medianOf(others);
    })
    .map(({ number }) => number);
}

interface AtRung {
  readonly curve: TrialCurve;
  readonly rung: number;
  /** With which it has reached the rung. */
  readonly loss: number;
  readonly isAmongBest: boolean;
}

/** Running and paused trials at the highest rung that each has reached. */
function atRungs(
  { min, reduction }: { readonly min: number; readonly reduction: number },
  curves: readonly TrialCurve[],
): readonly AtRung[] {
  const bars = new Map<number, number>();
  // Of all that have reached a rung, the loss that is still good enough.
  const barOf = (rung: number) => {
    const known = bars.get(rung);
    if (known !== undefined) return known;
    const reached = curves.flatMap((each) => lossAt(each, rung) ?? []).sort((a, b) => a - b);
    const bar = reached[Math.max(1, Math.floor(reached.length / reduction)) - 1] ?? Number.POSITIVE_INFINITY;
    bars.set(rung, bar);
    return bar;
  };
  return curves.flatMap((curve): readonly AtRung[] => {
    const last = curve.points.at(-1)?.at ?? 0;
    if ((curve.state !== 'running' && curve.state !== 'paused') || last < min) return [];
    // A rung that is reached exactly must not be missed by a logarithm.
    const rung = min * reduction ** Math.floor(Math.log(last / min) / Math.log(reduction) + 1e-9);
    const loss = lossAt(curve, rung);
    return loss === null ? [] : [{ curve, rung, loss, isAmongBest: loss <= barOf(rung) }];
  });
}

function ofRungs(trials: readonly AtRung[]): RungVerdict {
  const stop = trials.filter(
    ({ curve, rung, isAmongBest }) =>
      curve.state === 'running' && !isAmongBest && rung > (curve.promotedAt ?? 0),
  );
  const promote = trials
    .filter(({ curve, isAmongBest }) => curve.state === 'paused' && isAmongBest)
    .sort((a, b) => b.rung - a.rung || a.loss - b.loss);
  return {
    stop: stop.map(({ curve }) => curve.number),
    promote: promote.map(({ curve, rung }) => ({ number: curve.number, rung })),
  };
}

/** The loss with which a trial reached a position. @returns null: it has not */
function lossAt({ points }: TrialCurve, position: number): number | null {
  let [low, high] = [0, points.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((points[middle]?.at ?? 0) < position) low = middle + 1;
    else high = middle;
  }
  return points[low]?.loss ?? null;
}

/** @param sorted not empty */
function medianOf(sorted: readonly number[]): number {
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2;
}

type Hyperband = Extract<StoppingRule, { kind: 'hyperband' }>;

function bracketsOf({ min, max, reduction }: Hyperband): number {
  return Math.max(1, Math.floor(Math.log(max / min) / Math.log(reduction) + 1e-9));
}

/** In proportion to the sizes that Hyperband gives its brackets: most trials have the earliest first rung. */
function bracketOf({ reduction }: Hyperband, count: number, number: number): number {
  const sizes = Array.from({ length: count }, (_, bracket) =>
    Math.ceil((count / (count - bracket)) * reduction ** (count - 1 - bracket)),
  );
  let place = number % sizes.reduce((sum, size) => sum + size, 0);
  for (const [bracket, size] of sizes.entries()) {
    if (place < size) return bracket;
    place -= size;
  }
  return 0;
}
