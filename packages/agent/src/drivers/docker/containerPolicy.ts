/**
 * What containers may do on this node. A job asks; its node decides, because whoever writes a job need not be somebody
 * whom the node's owner would give root: an engine makes root of everybody who may say what it mounts and as whom it runs.
 */
import type { TaskLaunch, VolumeMount } from '../driver.ts';
import type { ImageDetails } from './engineAnswers.ts';

export interface MountRoot {
  /** Absolute. Jobs may mount it and what is below. */
  readonly path: string;
  readonly readOnly: boolean;
}

export interface ContainerPolicy {
  readonly mountRoots: readonly MountRoot[];
  /** Absolute. What jobs may not mount all the same, nor what is above it or below. */
  readonly mountDenied: readonly string[];
  /**
   * `uid:gid` for images whose own user is root, or has a name, behind which root may be; an image that names another
   * number keeps it. `image`: every image keeps its user.
   */
  readonly user: string;
  /** Without `CAP_`. All others are dropped. */
  readonly capabilities: readonly string[];
  /** Of tasks that have no peers on other nodes. Those that do need the node's own network. */
  readonly network: 'bridge' | 'host';
  /** The image's file system cannot be written to; /tmp can, in memory. */
  readonly readOnlyRoot: boolean;
}

/** Of nobody: neither a person nor a service has it, and images that know a user of no rank use it. */
const unprivilegedUser = '65532:65532';

export const containerDefaults: ContainerPolicy = {
  mountRoots: [],
  mountDenied: [],
  user: unprivilegedUser,
  capabilities: [],
  network: 'bridge',
  readOnlyRoot: false,
};

/** What no job mounts, whatever the roots are: with it, it would be this agent, the engine or the kernel. */
export function forbiddenMounts(dataDir: string, dockerSocket: string): readonly string[] {
  return [
    dataDir,
    dockerSocket,
    '/run/docker.sock',
    '/run/containerd',
    '/run/systemd',
    '/proc',
    '/sys',
    '/dev',
  ];
}

/** @returns null: the image's own */
export function containerUser(
  launch: Pick<TaskLaunch, 'user'>,
  image: Pick<ImageDetails, 'user'>,
  policy: Pick<ContainerPolicy, 'user'>,
): string | null {
  if (launch.user !== null) return launch.user;
  if (policy.user === 'image' || /^[1-9]\d*(?::.*)?$/.test(image.user)) return null;
  return policy.user;
}

/**
 * What programs ask the user database for, which does not know a user that the image was not made for: without a home that
 * can be written to, and a name, the first cache of PyTorch fails.
 */
export const otherUserEnvironment: Readonly<Record<string, string>> = {
  HOME: '/tmp',
  USER: 'muster',
  LOGNAME: 'muster',
};

/**
 * @param real where the source leads once every link is followed
 * @param roots and `forbidden`: as real paths, too
 * @returns a sentence for whoever wrote the job; null: it may be mounted
 */
export function mountProblem(
  volume: VolumeMount,
  real: string,
  roots: readonly MountRoot[],
  forbidden: readonly string[],
): string | null {
  const { source } = volume;
  const name = real === source.replace(/(?<=.)\/+$/, '') ? source : `${source}, which is ${real},`;
  const touched = forbidden.find((path) => holds(path, real) || holds(real, path));
  if (touched !== undefined) return `no job on this node may mount ${name} because of ${touched}: mount less`;
  const within = roots.filter(({ path }) => holds(path, real));
  const allowed = roots.map(({ path, readOnly }) => `${path}${readOnly ? ' (read-only)' : ''}`);
  if (within.length === 0) {
    const those = allowed.length === 0 ? 'none' : allowed.join(', ');
    return (
      `this node does not let jobs mount ${name} (allowed: ${those}): ` +
      `use one of these, or let its agent allow it with \`--mount-root ${real}\``
    );
  }
  if (volume.readOnly || within.some(({ readOnly }) => !readOnly)) return null;
  return `this node lets jobs mount ${name} read-only: add \`:ro\` to the volume`;
}

/** Whether `path` is `folder` or below it. */
function holds(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}
