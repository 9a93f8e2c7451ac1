/** What a sweep optimises, and which of its trials is best. */
import type { TrainingMetricName } from '@muster/common/training';
import { frontsOf } from './pareto.ts';

export interface Objective {
  readonly metric: TrainingMetricName;
  readonly goal: 'min' | 'max';
  /** Which of the values that a trial prints counts: the last, the best, or the last one up to a step. */
  readonly of: 'last' | 'best' | { readonly atStep: number };
}

/** A value as samplers want it: less is better. */
export function lossOf({ goal }: Pick<Objective, 'goal'>, value: number): number {
  return goal === 'min' ? value : -value;
}

/** What has the value of a trial for each objective. */
export interface ValuedTrial {
  readonly state: string;
  /** Of the first objective. */
  readonly value: number | null;
  /** Of the others, in their order. */
  readonly furtherValues?: readonly number[];
}

/** @returns null: it has no value, or not of each objective */
export function lossesOf(
  objectives: readonly Pick<Objective, 'goal'>[],
  { value, furtherValues = [] }: Omit<ValuedTrial, 'state'>,
): readonly number[] | null {
  if (value === null || furtherValues.length !== objectives.length - 1) return null;
  return objectives.map((objective, index) =>
    lossOf(objective, index === 0 ? value : (furtherValues[index - 1] ?? 0)),
  );
}

/** The complete trials that no other is better than in one objective without being worse in another, in their order. */
export function paretoFront<Trial extends ValuedTrial>(
  objectives: readonly Pick<Objective, 'goal'>[],
  trials: readonly Trial[],
): readonly Trial[] {
  const valued = trials.flatMap((trial) => {
    const losses = trial.state === 'complete' ? lossesOf(objectives, trial) : null;
    return losses === null ? [] : [{ trial, losses }];
  });
  const [front = []] = frontsOf(
    valued.map(({ losses }) => losses),
    1,
  );
  return front.flatMap((index) => valued[index]?.trial ?? []);
}

/** The complete trial with the best value, of equal ones the first. @returns null: there is none */
export function bestTrial<Trial extends { readonly state: string; readonly value: number | null }>(
  objective: Pick<Objective, 'goal'>,
  trials: readonly Trial[],
): Trial | null {
  let best: Trial | null = null;
  for (const trial of trials) {
    if (trial.state !== 'complete' || trial.value === null) continue;
    if (best?.value == null || lossOf(objective, trial.value) < lossOf(objective, best.value)) best = trial;
  }
  return best;
}
