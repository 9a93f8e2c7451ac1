/** Where a job saves its checkpoints, by its spec alone. Pure. */
import { posix } from 'node:path';
import type { JobSpec } from './types.ts';

/**
 * The directory that the spec names, as the node sees it: of a container the place behind the innermost volume.
 * @returns an absolute path without a slash at its end; null: the spec names none, or it lies inside the container
 */
export function namedCheckpointDir({ checkpoint: { dir }, image, volumes }: JobSpec): string | null {
  if (dir === null) return null;
  const path = image === null ? posix.normalize(dir) : outsideContainer(dir, volumes);
  // With a slash at its end the kernel would follow a link there.
  return path?.replace(/(?<=.)\/+$/, '') ?? null;
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
  return posix.join(innermost.source, path.slice(innermost.target.length));
}
