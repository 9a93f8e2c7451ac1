/** Which checkpoints in a directory were saved by the chain of attempts that an attempt continues. */
import type { CheckpointCandidate } from '@muster/checkpoints/scan';
import type { JobId } from '@muster/common/ids';
import type { CheckpointIndex } from './indexFile.ts';

export interface Chain {
  /** The job whose checkpoints the attempt continues. */
  readonly checkpointJobId: JobId;
  /** The directory is the node's own, so that nothing but checkpoints of this chain is in it. */
  readonly isOwn: boolean;
  /** What the last agent has written beside the checkpoints. null: nothing. */
  readonly index: CheckpointIndex | null;
}

/** True if an attempt of the chain has saved the checkpoint. What stood in the directory before the chain began is none of it. */
export function belongsToChain(
  { checkpointJobId, isOwn, index }: Chain,
  { name, savedAtMs }: Pick<CheckpointCandidate, 'name' | 'savedAtMs'>,
): boolean {
  if (isOwn) return true;
  if (index === null || index.job !== checkpointJobId) return false;
  return index.checkpoints.some((each) => each.name === name) || savedAtMs >= index.sinceMs;
}
