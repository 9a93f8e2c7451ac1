/**
 * Which checkpoints the rules of a job give up. A plain function; it never gives up
 *
 * - the newest verified one, and one that the running attempt has resumed from: the next attempt may need them,
 * - one that its program itself calls its best or final one, whenever that was saved: it keeps these by its own rules,
 * - one that is not verified: a corrupt one is evidence and none of the job's good ones, and for an unknown format
 *   nothing shows that a newer one is any better,
 * - one that an evaluation needs, or may need,
 * - one that was set aside, while none of a higher step is verified: it is the furthest that the job has got,
 * - anything at all while no verified one is newer.
 */
import { isChosenName } from '@muster/checkpoints/names';
import { type CheckpointFacts, isSetAside, type KeptCheckpoints } from '@muster/common/checkpoints';
import type { JobCheckpoint } from '@muster/common/spec/types';

export type KeepRules = Pick<JobCheckpoint, 'keepLast' | 'keepEvery' | 'keepBest'>;

/**
 * @param checkpoints all that are there of this job, as `latestFirst` orders them
 * @param kept names that somebody needs
 * @returns names, oldest first
 */
export function toDelete(
  checkpoints: readonly CheckpointFacts[],
  { keepLast, keepEvery, keepBest }: KeepRules,
  kept: ReadonlySet<string | null | undefined>,
): readonly string[] {
  // Without `keepLast` all are kept: the other rules only make exceptions from it.
  if (keepLast === null) return [];
  const all = checkpoints.filter(({ name, verdict }) => verdict === 'verified' && !isChosenName(name));
  const current = all.filter(({ name }) => !isSetAside(name));
  // What was set aside comes after all others, and takes their places as far as they need them.
  const verified = [...current, ...all.filter(({ name }) => isSetAside(name))];
  const best = keepBest === null ? null : bestOf(verified, keepBest);
  const last = Math.max(1, keepLast);
  // Steps say nothing where a program trains several models, and the clock nothing once it was set back: each may keep the last.
  const lastByClock = new Set(current.toSorted(newestFirst).slice(0, last));
  return verified
    .slice(last)
    .filter((checkpoint) => {
      const { name, step } = checkpoint;
      const isOfEvery = keepEvery !== null && step !== null && step % keepEvery === 0;
      const isFurthest = isSetAside(name) && !current.some((each) => isFurther(each, step));
      return !isOfEvery && name !== best && !kept.has(name) && !lastByClock.has(checkpoint) && !isFurthest;
    })
    .map(({ name }) => name)
    .reverse();
}

/**
 * Those that evaluations need: the coordinator names them, and it has not decided yet about what was saved last.
 * @param checkpoints as `latestFirst` orders them
 * @param kept null: it has named none yet
 * @param isEvaluated whether the job has evaluations, so that the coordinator will name some
 */
export function neededNames(
  checkpoints: readonly Pick<CheckpointFacts, 'name' | 'version' | 'savedAtMs'>[],
  kept: KeptCheckpoints | null,
  isEvaluated: boolean,
): readonly string[] {
  if (kept === null) return isEvaluated ? checkpoints.map(({ name }) => name) : [];
  const versions = new Map(kept.held.map(({ name, version }) => [name, version]));
  const decidedAt = checkpoints.findIndex(({ savedAtMs }) => savedAtMs === kept.decidedSavedAtMs);
  return checkpoints
    .filter(({ name, version, savedAtMs }, at) => {
      // The clock alone does not tell: it may have been set back since.
      const isUndecided = savedAtMs > kept.decidedSavedAtMs || at < decidedAt;
      return versions.get(name) === version || (isEvaluated && isUndecided);
    })
    .map(({ name }) => name);
}

function isFurther({ step }: Pick<CheckpointFacts, 'step'>, than: number | null): boolean {
  return than === null || (step !== null && step > than);
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

/** By the clock of the node. The order is total. */
export function newestFirst(a: Age, b: Age): number {
  return b.savedAtMs - a.savedAtMs || (b.step ?? -1) - (a.step ?? -1) || (a.name < b.name ? 1 : -1);
}

/** A checkpoint, and who saved it. */
interface Saved {
  readonly facts: Age & { readonly by: string | null; readonly attempt: number };
}

/**
 * As the coordinator orders them: what a later attempt has saved is newer, for one that was taken back behind a divergence saves
 * lower steps than are there already. Within an attempt steps decide where all are known, because the clock may be set back.
 * Attempts of other jobs cannot be compared, neither with each other nor with those of this one, before which they ran.
 */
export function latestFirst<T extends Saved>(checkpoints: Iterable<T>, jobId: string): readonly T[] {
  const byAttempt = Map.groupBy(checkpoints, ({ facts: { by, attempt } }) =>
    by === jobId || by === null ? attempt : 0,
  );
  return [...byAttempt.keys()]
    .sort((a, b) => b - a)
    .flatMap((attempt) => {
      const saved = byAttempt.get(attempt) ?? [];
      const isByStep = attempt > 0 && saved.every(({ facts: { step } }) => step !== null);
      const stepOf = ({ facts: { step } }: Saved) => (isByStep ? (step ?? 0) : 0);
      return saved.sort((a, b) => stepOf(b) - stepOf(a) || newestFirst(a.facts, b.facts));
    });
}
