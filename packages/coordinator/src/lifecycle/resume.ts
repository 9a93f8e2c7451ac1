/**
 * Chooses the checkpoint that an attempt begins from: the newest verified one that is not suspect and was saved before the
 * loss diverged, unless a user has chosen another one.
 */
import { type Checkpoint, externalCheckpoint } from '@muster/common/checkpoints';
import type { NodeName } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import type { Resume } from '@muster/common/views';
import type { Job, Node } from '../model.ts';

type Saved = Pick<Job, 'checkpoints' | 'resumeChoice'>;

/** Whole, and no attempt has died of it. */
export function isGood({ verdict, suspect }: Checkpoint): boolean {
  return verdict === 'verified' && !suspect;
}

function isSound({ diverged }: Checkpoint): boolean {
  return diverged !== true;
}

/** What its next attempt may begin from, the best first. */
export function resumeCandidates({ checkpoints, resumeChoice }: Saved): readonly Checkpoint[] {
  const good = checkpoints.filter(isGood).toReversed();
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
      return good.filter(upTo).sort((a, b) => (b.step ?? 0) - (a.step ?? 0));
    }
    default: {
      const never: never = resumeChoice;
      return never;
    }
  }
}

/** A node of a placement, and the boot that tells its machine. */
export type PlacedNode = Pick<Node, 'name' | 'bootId'>;

/**
 * @param nodes of the placement
 * @param where what is known of any node; undefined: nothing is
 * @returns the best one that the placement can read. null: it begins from nothing
 */
export function chooseResume(
  job: Saved & Pick<Job, 'spec'>,
  nodes: readonly PlacedNode[],
  where: (node: NodeName) => Pick<Node, 'bootId'> | undefined,
): Resume | null {
  const chosen = resumeCandidates(job).find((checkpoint) => {
    if (checkpoint.shared || nodes.some(({ name }) => name === checkpoint.node)) return true;
    // Several agents may share a machine, and so a directory that a job names itself.
    const bootId = isKeptByNode(job.spec, checkpoint)
      ? undefined
      : where(checkpoint.node as NodeName)?.bootId;
    return bootId !== undefined && nodes.some((node) => node.bootId === bootId);
  });
  return chosen === undefined ? null : { name: chosen.name, step: chosen.step };
}

/** In a directory of its agent's, of which others on the same machine have nothing. */
export function isKeptByNode({ checkpoint: { dir } }: JobSpec, { name }: Checkpoint): boolean {
  const place = externalCheckpoint(name);
  return place === null ? dir === null : place.kind === 'kept';
}

/** What the next attempt would best begin from, if one node alone has it: elsewhere its work would have to be done again. */
export function pinnedCheckpoint(job: Saved): Checkpoint | null {
  // Of every job that waits, in every pass: mostly without a list of all the others.
  const isUsual = job.resumeChoice.kind === 'newest';
  const newest = isUsual ? job.checkpoints.findLast(isGood) : undefined;
  const best = newest !== undefined && isSound(newest) ? newest : resumeCandidates(job)[0];
  return best === undefined || best.shared ? null : best;
}
