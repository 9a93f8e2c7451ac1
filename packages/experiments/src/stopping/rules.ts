/**
 * Which running trials are not worth their time any longer. Each answer follows from the curves as they are now, so it is the same after
 * a restart.
 *
 * - median: worse than the median of the complete trials at the same step (D. Golovin and others, Google Vizier, KDD 2017)
 * - ASHA: not among the best of those that have reached the same rung (L. Li and others, A System for Massively Parallel Hyperparameter
 *   Tuning, MLSys 2020). A trial is judged at the highest rung that it has reached, and again as others reach it.
 * - Hyperband: ASHA with several first rungs, each for a part of the trials, because nobody knows how early a curve tells its end
 *   (L. Li and others, Hyperband, JMLR 2018)
 */

export type StoppingRule =
  | { readonly kind: 'median'; readonly minSteps: number; readonly minTrials: number }
  | { readonly kind: 'asha'; readonly minSteps: number; readonly reduction: number }
  | {
      readonly kind: 'hyperband';
      readonly minSteps: number;
      readonly maxSteps: number;
      readonly reduction: number;
    };

export interface TrialCurve {
  readonly number: number;
  /** `complete`: it has come to its end by itself. `over`: it was stopped, or has failed. */
  readonly state: 'running' | 'complete' | 'over';
  /** By step. Less is better. */
  readonly points: readonly { readonly step: number; readonly loss: number }[];
}

/** @returns numbers of running trials to be stopped */
export function trialsToStop(rule: StoppingRule, curves: readonly TrialCurve[]): readonly number[] {
  switch (rule.kind) {
    case 'median':
      return belowMedian(rule, curves);
    case 'asha':
      return outrun(rule, curves);
    default: {
      const count = bracketsOf(rule);
      const brackets = Map.groupBy(curves, ({ number }) => bracketOf(rule, count, number));
      return [...brackets].flatMap(([bracket, own]) => {
        const minSteps = rule.minSteps * rule.reduction ** bracket;
        return outrun({ minSteps, reduction: rule.reduction }, own);
      });
    }
  }
}

function belowMedian(
  { minSteps, minTrials }: { readonly minSteps: number; readonly minTrials: number },
  curves: readonly TrialCurve[],
): readonly number[] {
  const complete = curves.filter(({ state }) => state === 'complete');
  return curves
    .filter(({ state, points }) => {
      const step = points.at(-1)?.step;
      if (state !== 'running' || step === undefined || step < minSteps) return false;
      const others = complete.flatMap((curve) => lossAt(curve, step) ?? []).sort((a, b) => a - b);
      if (others.length < minTrials) return false;
      return Math.min(...points.map(({ loss }) => loss)) > medianOf(others);
    })
    .map(({ number }) => number);
}

function outrun(
  { minSteps, reduction }: { readonly minSteps: number; readonly reduction: number },
  curves: readonly TrialCurve[],
): readonly number[] {
  return curves
    .filter((curve) => {
      const last = curve.points.at(-1)?.step ?? 0;
      if (curve.state !== 'running' || last < minSteps) return false;
      // A rung that is reached exactly must not be missed by a logarithm.
      const rung = minSteps * reduction ** Math.floor(Math.log(last / minSteps) / Math.log(reduction) + 1e-9);
      const own = lossAt(curve, rung);
      const reached = curves.flatMap((each) => lossAt(each, rung) ?? []).sort((a, b) => a - b);
      const kept = Math.max(1, Math.floor(reached.length / reduction));
      return own !== null && own > (reached[kept - 1] ?? own);
    })
    .map(({ number }) => number);
}

/** The loss with which a trial reached a step. @returns null: it has not */
function lossAt({ points }: TrialCurve, step: number): number | null {
  return points.find((point) => point.step >= step)?.loss ?? null;
}

/** @param sorted not empty */
function medianOf(sorted: readonly number[]): number {
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2;
}

type Hyperband = Extract<StoppingRule, { kind: 'hyperband' }>;

function bracketsOf({ minSteps, maxSteps, reduction }: Hyperband): number {
  return Math.max(1, Math.floor(Math.log(maxSteps / minSteps) / Math.log(reduction) + 1e-9));
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
