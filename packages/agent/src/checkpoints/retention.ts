/**
 * Which checkpoints the rules of a job give up. A plain function; it never gives up
 *
 * - the newest verified one, and one that the running attempt has resumed from: the next attempt may need them,
 * - one that its program itself calls its best or final one, whenever that was saved: it keeps these by its own rules,
 * - one that is not verified: a corrupt one is evidence and none of the job's good ones, and of an unknown format nobody
 *   can say that a newer one is any better,
 * - one that an evaluation needs, or may need,
 * - anything at all while no verified one is newer.
 */
import { isChosenName } from '@muster/checkpoints/names';
import type { CheckpointFacts, KeptCheckpoints } from '@muster/common/checkpoints';
import type { JobCheckpoint } from '@muster/common/spec/types';

export type KeepRules = Pick<JobCheckpoint, 'keepLast' | 'keepEvery' | 'keepBest'>;

/**
 * @param checkpoints all that are there of this job
 * @param kept names that somebody needs
 * @returns names, oldest first
 */
export function toDelete(
  checkpoints: readonly CheckpointFacts[],
  { keepLast, keepEvery, keepBest }: KeepRules,
  kept: ReadonlySet<string | null | undefined>,
): readonly string[] {
  // Left out, all are kept: it is the rule that the others make exceptions of.
  if (keepLast === null) return [];
  const verified = checkpoints
    .filter(({ name, verdict }) => verdict === 'verified' && !isChosenName(name))
    .sort(newestFirst);
  const best = keepBest === null ? null : bestOf(verified, keepBest);
  return verified
    .slice(Math.max(1, keepLast))
    .filter(({ name, step }) => {
      const isOfEvery = keepEvery !== null && step !== null && step % keepEvery === 0;
      return !isOfEvery && name !== best && !kept.has(name);
    })
    .map(({ name }) => name)
    .reverse();
}

/**
 * Those that evaluations need: the coordinator names them, and it has not decided yet about what was saved last.
 * @param kept null: it has said nothing
 * @param isEvaluated whether it is going to
 */
export function neededNames(
  checkpoints: readonly Pick<CheckpointFacts, 'name' | 'version' | 'savedAtMs'>[],
  kept: KeptCheckpoints | null,
  isEvaluated: boolean,
): readonly string[] {
  if (kept === null) return isEvaluated ? checkpoints.map(({ name }) => name) : [];
  const versions = new Map(kept.held.map(({ name, version }) => [name, version]));
  return checkpoints
    .filter(
      ({ name, version, savedAtMs }) =>
        versions.get(name) === version || (isEvaluated && savedAtMs > kept.decidedSavedAtMs),
    )
    .map(({ name }) => name);
}

/** Of equals the newest. */
function bestOf(newest: readonly CheckpointFacts[], rule: NonNullable<KeepRules['keepBest']>): string | null {
  const sign = rule.mode === 'min' ? 1 : -1;
  let best: { readonly name: string; readonly value: number } | null = null;
  for (const { name, metrics } of newest) {
    const value = metrics[rule.metric];
    if (value === undefined) continue;
    if (best === null || sign * value < sign * best.value) best = { name, value };
  }
  return best?.name ?? null;
}

type Age = Pick<CheckpointFacts, 'name' | 'step' | 'savedAtMs'>;

/**
 * By when they were saved: an attempt that was taken back behind a divergence saves lower steps than are there already.
 * The order is total.
 */
export function newestFirst(a: Age, b: Age): number {
  return b.savedAtMs - a.savedAtMs || (b.step ?? -1) - (a.step ?? -1) || (a.name < b.name ? 1 : -1);
}
