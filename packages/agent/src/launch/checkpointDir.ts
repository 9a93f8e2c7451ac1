/**
 * A directory that this node keeps for the checkpoints of a bare process that names none: work is kept by default, and
 * the next attempt on this node finds it. Muster never deletes one that holds anything.
 *
 * Everything here goes by the job whose checkpoints they are (`Assignment.checkpointJobId`), which a requeued job shares
 * with the one that it takes the place of.
 */
import { mkdirSync, rmdirSync } from 'node:fs';
import { join, posix } from 'node:path';
import { externalCheckpoint } from '@muster/common/checkpoints';
import type { JobId } from '@muster/common/ids';
import { namedCheckpointDir } from '@muster/common/spec/checkpointDir';
import type { JobSpec } from '@muster/common/spec/types';

export interface CheckpointPlace {
  readonly root: string;
  /** Path below the root. */
  readonly name: string;
}

export interface CheckpointDirs {
  /** As the job sees it; null: the job has none, because what a container writes inside itself would not outlive it. */
  pathFor(checkpointJobId: JobId, spec: JobSpec): string | null;
  /** Where this agent finds it; null: the job has none, or it lies inside its container. */
  hostPathFor(checkpointJobId: JobId, spec: JobSpec): string | null;
  /** Where this agent finds a checkpoint of the job, or of another one; null: it lies inside the container. */
  placeOf(checkpointJobId: JobId, spec: JobSpec, name: string): CheckpointPlace | null;
  /** The same as the job sees it, as an absolute path; null: the job has no directory. */
  pathOf(checkpointJobId: JobId, spec: JobSpec, name: string): string | null;
  /** It is the node's own: nothing but checkpoints of this job is in it. */
  isOwn(spec: JobSpec): boolean;
  /**
   * Makes the node's own directory; one that the spec names is the user's business. It lies beside the records of the
   * tasks, so a thread for the call would cost more than it does.
   * @throws {Error} with the kernel's code
   */
  prepare(checkpointJobId: JobId, spec: JobSpec): void;
  /** Removes the node's own directory if it is empty. */
  cleanUp(checkpointJobId: JobId, spec: JobSpec): void;
}

/** @param root absolute, of this agent */
export function checkpointDirs(root: string): CheckpointDirs {
  const isOwn = (spec: JobSpec) => spec.checkpoint.dir === null && spec.image === null;
  const own = (jobId: JobId) => join(root, jobId);
  const pathFor = (jobId: JobId, spec: JobSpec) => (isOwn(spec) ? own(jobId) : spec.checkpoint.dir);
  const hostPathFor = (jobId: JobId, spec: JobSpec) => (isOwn(spec) ? own(jobId) : namedCheckpointDir(spec));
  return {
    isOwn,
    pathFor,
    hostPathFor,
    placeOf(jobId, spec, full) {
      const place = externalCheckpoint(full);
      if (place === null) return placed(hostPathFor(jobId, spec), full);
      if (place.kind === 'kept') return placed(own(place.jobId), place.name);
      const checkpoint = { ...spec.checkpoint, dir: place.directory };
      return placed(namedCheckpointDir({ ...spec, checkpoint }), place.name);
    },
    pathOf(jobId, spec, full) {
      const place = externalCheckpoint(full);
      if (place?.kind === 'path') return full;
      const directory = place === null ? pathFor(jobId, spec) : own(place.jobId);
      return directory === null ? null : posix.join(directory, place?.name ?? full);
    },
    prepare(jobId, spec) {
      if (isOwn(spec)) mkdirSync(own(jobId), { recursive: true, mode: 0o700 });
    },
    cleanUp(jobId, spec) {
      if (!isOwn(spec)) return;
      try {
        rmdirSync(own(jobId));
      } catch {
        // It is not empty, or not there: both are as they should be.
      }
    },
  };
}

function placed(root: string | null, name: string): CheckpointPlace | null {
  return root === null ? null : { root, name };
}
