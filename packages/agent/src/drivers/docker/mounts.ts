/** The volumes of a task as they will be mounted: what they lead to is looked up, and held against the node's policy. */

import { DriverError } from '../../taskFacts/errors.ts';
import type { Fence, TaskLaunch, VolumeMount } from '../driver.ts';
import { type ContainerPolicy, forbiddenMounts, mountProblem } from './containerPolicy.ts';
import { missingSource } from './startErrors.ts';

export interface MountRules {
  readonly policy: Pick<ContainerPolicy, 'mountRoots' | 'mountDenied'>;
  /** Of the agent. */
  readonly dataDir: string;
  readonly dockerSocket: string;
  readonly fence: Pick<Fence, 'realPaths'>;
}

/**
 * Links are followed here and what they lead to is handed to the engine, which follows none on the way then. Known limit:
 * anyone who may rename directories above a source on the node can still exchange one in the moment before the mount.
 * @throws {DriverError} for a source that is not there or may not be mounted
 */
export async function allowedVolumes(
  { volumes, ownVolumes }: Pick<TaskLaunch, 'volumes' | 'ownVolumes'>,
  { policy, dataDir, dockerSocket, fence }: MountRules,
): Promise<readonly VolumeMount[]> {
  if (volumes.length === 0) return ownVolumes;
  const roots = policy.mountRoots;
  const forbidden = [...policy.mountDenied, ...forbiddenMounts(dataDir, dockerSocket)];
  const asked = [...volumes.map(({ source }) => source), ...roots.map(({ path }) => path), ...forbidden];
  const answers = await fence.realPaths(asked);
  const real = new Map(asked.map((path, index) => [path, answers[index] ?? null]));
  /** What is not there now may be later; nobody follows a link to it. */
  const realOr = (path: string) => real.get(path) ?? path;
  const realRoots = roots.map((root) => ({ ...root, path: realOr(root.path) }));
  const realForbidden = forbidden.map(realOr);
  const allowed = volumes.map((volume) => {
    const source = real.get(volume.source) ?? null;
    if (source === null) {
      // What may not be mounted is no business of a job either, whether it is there or not.
      const problem = mountProblem(volume, volume.source, realRoots, realForbidden);
      throw problem === null ? missingSource(volume.source) : new DriverError('unknown', problem);
    }
    const problem = mountProblem(volume, source, realRoots, realForbidden);
    if (problem !== null) throw new DriverError('unknown', problem);
    return { ...volume, source };
  });
  return [...allowed, ...ownVolumes];
}
