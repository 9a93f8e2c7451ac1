/**
 * Orders the checkpoints that an attempt may resume from: the newest verified one that is not suspect and was saved before
 * the loss diverged comes first, unless a user has chosen another one. The scheduler takes the first that can be read where
 * it places the attempt.
 */
import { type Checkpoint, externalCheckpoint, isSetAside } from '@muster/common/checkpoints';
import type { JobSpec } from '@muster/common/spec/types';
import type { Job } from '../model.ts';

type Saved = Pick<Job, 'checkpoints' | 'resumeChoice'>;

/** Whole, and no attempt has died of it. */
export function isGood({ verdict, suspect }: Pick<Checkpoint, 'verdict' | 'suspect'>): boolean {
  return verdict === 'verified' && !suspect;
}

function isSound({ diverged }: Checkpoint): boolean {
  return diverged !== true;
}

/** What its next attempt may begin from, the best first. */
export function resumeCandidates({ checkpoints, resumeChoice }: Saved): readonly Checkpoint[] {
  const all = checkpoints.filter(isGood).toReversed();
  // What an earlier attempt got to beyond this branch of the training is used only where a user names it.
  const good = all.filter(({ name }) => !isSetAside(name));
  switch (resumeChoice.kind) {
    case 'start':
      return [];
    // What a divergence is in is better than nothing, and worse than all else.
    case 'newest':
      return [...good.filter(isSound), ...good.filter((each) => !isSound(each))];
    case 'step': {
      const upTo = (checkpoint: Checkpoint) =>
        checkpoint.step !== null && checkpoint.step <= resumeChoice.step;
      // The sort is stable: of the same step, the one that was saved last.
      const known = good.filter(upTo).sort((a, b) => (b.step ?? 0) - (a.step ?? 0));
      if (known[0]?.step === resumeChoice.step) return known;
      return [...all.filter(({ name, step }) => isSetAside(name) && step === resumeChoice.step), ...known];
    }
    case 'name':
      return all.filter(({ name }) => name === resumeChoice.name);
    default: {
      const never: never = resumeChoice;
      return never;
    }
  }
}

/** In a directory of its agent's, of which others on the same machine have nothing. */
export function isKeptByNode({ checkpoint: { dir } }: JobSpec, { name }: Checkpoint): boolean {
  const place = externalCheckpoint(name);
  return place === null ? dir === null : place.kind === 'kept';
}
