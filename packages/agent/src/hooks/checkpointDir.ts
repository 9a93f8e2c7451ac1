/**
 * A directory that this node keeps for the checkpoints of a bare process that names none: work is kept by default, and
 * the next attempt on this node finds it. Muster never deletes one that holds anything.
 */
import { mkdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { JobId } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';

export interface CheckpointDirs {
  /** As the job sees it; null: the job has none, because what a container writes inside itself would not outlive it. */
  pathFor(jobId: JobId, spec: JobSpec): string | null;
  /** Makes the node's own directory; one that the spec names is the user's business. */
  prepare(jobId: JobId, spec: JobSpec): Promise<void>;
  /** Takes the node's own directory away if it is empty. */
  cleanUp(jobId: JobId, spec: JobSpec): Promise<void>;
}

/** @param root absolute, of this agent */
export function checkpointDirs(root: string): CheckpointDirs {
  const isOwn = (spec: JobSpec) => spec.checkpoint.dir === null && spec.image === null;
  const own = (jobId: JobId) => join(root, jobId);
  return {
    pathFor: (jobId, spec) => (isOwn(spec) ? own(jobId) : spec.checkpoint.dir),
    async prepare(jobId, spec) {
      if (!isOwn(spec)) return;
      const make = () => mkdir(own(jobId), { recursive: true, mode: 0o700 });
      await make().catch((error: NodeJS.ErrnoException) => {
        // The clean-up of an earlier attempt has taken it away between the two looks that one call takes.
        if (error.code !== 'ENOENT') throw error;
        return make();
      });
    },
    async cleanUp(jobId, spec) {
      // Fails for one that is not empty, or not there: both are as they should be.
      if (isOwn(spec)) await rmdir(own(jobId)).catch(() => {});
    },
  };
}
