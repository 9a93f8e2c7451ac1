import { isDivergence, type TrainingSign } from '@muster/common/training';

/** @returns the last step before the loss diverged; null: no step is known; undefined: it has not diverged */
export function goodStepBefore({ kind, step, lastGoodStep }: TrainingSign): number | null | undefined {
  if (!isDivergence(kind)) return undefined;
  return lastGoodStep ?? (step === null ? null : step - 1);
}
