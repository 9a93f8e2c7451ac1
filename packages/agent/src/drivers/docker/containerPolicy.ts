/**
 * What containers may do on this node. A job asks, and its node decides: a user who may choose what an engine mounts, and
 * which user a container runs as, is root on the node, and the node's owner need not trust the author of a job with that.
 */
import type { AccountIds } from '../../taskFacts/account.ts';
import type { VolumeMount } from '../driver.ts';
import type { ImageDetails } from './engineAnswers.ts';

export interface MountRoot {
  /** Absolute. Jobs may mount it and what is below. */
  readonly path: string;
  readonly readOnly: boolean;
}

export interface ContainerPolicy {
  readonly mountRoots: readonly MountRoot[];
  /** Absolute. What jobs may not mount anyway, nor what is above it or below. */
  readonly mountDenied: readonly string[];
  /**
   * `account`: as the account that bare tasks of the job would have; where they have none, as 65532:65532. `uid:gid` and that
   * last one are for images whose own user is root, or has a name, behind which root may be; an image that names another number
   * keeps it. `image`: every image keeps its user.
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
  user: 'account',
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

/**
 * @param ids of the job's account, whose number no image can choose; null: it has none
 * @returns null: the image's own
 */
export function containerUser(
  ids: AccountIds | null,
  image: Pick<ImageDetails, 'user'>,
  policy: Pick<ContainerPolicy, 'user'>,
): string | null {
  if (ids !== null) return `${ids.uid}:${ids.gid}`;
  if (policy.user === 'image' || /^[1-9]\d*(?::.*)?$/.test(image.user)) return null;
  return policy.user === 'account' ? unprivilegedUser : policy.user;
}

/**
 * What programs ask the user database for, which does not know a user that the image was not made for: without a home that
 * can be written to, and a name, the first cache of PyTorch fails.
 */
export function otherUserEnvironment(name: string): Readonly<Record<string, string>> {
  return { HOME: '/tmp', USER: name, LOGNAME: name };
}

/**
 * Engines look supplementary groups up by name first, even those that are given as numbers, in the database of the image:
 * a group that is named `27` there and has another number would give the container that other number.
 * @param database /etc/group of the image, as Latin-1
 * @returns the group of the account that the image takes for another one; null: there is none
 */
export function misnamedGroup(groups: readonly number[], database: string): number | null {
  const numbers = new Map(groups.map((group) => [String(group), group]));
  for (const line of database.split('\n')) {
    const [name, , number] = line.split(':').map((field) => field.replaceAll(/[^\x21-\x7e]/g, ''));
    const group = numbers.get(name ?? '');
    if (group !== undefined && name !== number) return group;
  }
  return null;
}

/**
 * @param real where the source leads once every link is followed
 * @param roots and `forbidden`: as real paths, too
 * @returns a sentence for the author of the job; null: it may be mounted
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
