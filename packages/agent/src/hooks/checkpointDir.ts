/**
 * A directory that this node keeps for the checkpoints of a bare process that names none: work is kept by default, and
 * the next attempt on this node finds it. Muster never deletes one that holds anything.
 *
 * Everything here goes by the job whose checkpoints they are (`Assignment.checkpointJobId`), which a requeued job shares
 * with the one that it takes the place of.
 */
import { mkdir, rmdir } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { JobId } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';

export interface CheckpointDirs {
  /** As the job sees it; null: the job has none, because what a container writes inside itself would not outlive it. */
  pathFor(checkpointJobId: JobId, spec: JobSpec): string | null;
  /** Where this agent finds it; null: the job has none, or it lies inside its container. */
  hostPathFor(checkpointJobId: JobId, spec: JobSpec): string | null;
  /** It is the node's own: nothing but checkpoints of this job is in it. */
  isOwn(spec: JobSpec): boolean;
  /** Makes the node's own directory; one that the spec names is the user's business. */
  prepare(checkpointJobId: JobId, spec: JobSpec): Promise<void>;
  /** Takes the node's own directory away if it is empty. */
  cleanUp(checkpointJobId: JobId, spec: JobSpec): Promise<void>;
}

/** @param root absolute, of this agent */
export function checkpointDirs(root: string): CheckpointDirs {
  const isOwn = (spec: JobSpec) => spec.checkpoint.dir === null && spec.image === null;
  const own = (jobId: JobId) => join(root, jobId);
  return {
    isOwn,
    pathFor: (jobId, spec) => (isOwn(spec) ? own(jobId) : spec.checkpoint.dir),
    hostPathFor(jobId, spec) {
      const { dir } = spec.checkpoint;
      if (dir === null) return isOwn(spec) ? own(jobId) : null;
      const path = spec.image === null ? posix.normalize(dir) : outsideContainer(dir, spec.volumes);
      // With a slash at its end the kernel would follow a link there.
      return path?.replace(/(?<=.)\/+$/, '') ?? null;
    },
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

/** The innermost mount that it lies in decides, as in the container. */
function outsideContainer(dir: string, volumes: JobSpec['volumes']): string | null {
  const path = posix.normalize(`${dir}/`);
  const mounts = volumes
    .map(({ source, target }) => ({ source, target: posix.normalize(`${target}/`) }))
    .filter(({ target }) => path.startsWith(target))
    .sort((a, b) => b.target.length - a.target.length);
  const [innermost] = mounts;
  if (innermost === undefined) return null;
  return join(innermost.source, path.slice(innermost.target.length));
}
