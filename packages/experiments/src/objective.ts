/** What a sweep optimises, and which of its trials is best. */
import type { TrainingMetricName } from '@muster/common/training';

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
