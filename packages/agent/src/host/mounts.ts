/** What is mounted, from /proc/self/mountinfo: reading it asks no file system, so nothing here can hang. */
import { join } from 'node:path';
import { tryReadKernelFile } from './kernelFiles.ts';

export interface Mount {
  readonly mountPoint: string;
  /** `/dev/nvme0n1p2`, `storage:/export/home`, `tank/data` */
  readonly device: string;
  readonly type: string;
  /** The file system itself: so the kernel makes it when its disk fails. */
  readonly readOnly: boolean;
  /** This mount of it: so the sandbox of a service makes most of them, and nothing is wrong. */
  readonly mountedReadOnly: boolean;
  /** Reached over a network, or by a program of a user: may not answer. */
  readonly remote: boolean;
}

/** A container may have hundreds of mounts, an inventory should not. */
const fileSystemsMax = 64;

const remoteTypes =
  /^(?:nfs4?|cifs|smb3|9p|virtiofs|lustre|ceph|glusterfs|beegfs(?:_nodev)?|gpfs|wekafs|panfs|pvfs2|orangefs|ocfs2|gfs2|afs|fuse(?:\..+)?)$/;
/** Images that come with software, and kernel files. */
const neverFull = /^(?:squashfs|erofs|iso9660|udf|cramfs|romfs)$/;

/** All of them, in the order they were mounted; those of the kernel itself too. */
export function readMounts(root = '/'): readonly Mount[] {
  return (tryReadKernelFile(join(root, 'proc/self/mountinfo')) ?? '')
    .split('\n')
    .flatMap((line) => parseMount(line) ?? []);
}

/**
 *     27 1 254:0 / /data rw,relatime shared:1 - ext4 /dev/vda rw,discard
 *
 * Between the options and the dash stands any number of fields.
 */
function parseMount(line: string): Mount | null {
  const [left, right] = line.split(' - ', 2);
  const [, , , , mountPoint, options] = left?.split(' ') ?? [];
  const [type, device, superOptions = ''] = right?.split(' ') ?? [];
  if (mountPoint === undefined || options === undefined || type === undefined || device === undefined) {
    return null;
  }
  return {
    mountPoint: unescaped(mountPoint),
    device: unescaped(device),
    type,
    readOnly: superOptions.split(',').includes('ro'),
    mountedReadOnly: options.split(',').includes('ro'),
    remote: remoteTypes.test(type),
  };
}

/** The kernel writes a space as `\040`. */
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/**
 * File systems that hold data, each once: on disks, over a network, and the root of a container. A disk that is mounted
 * in several places is named by the shortest. Local ones come first.
 */
export function dataFileSystems(mounts: readonly Mount[]): readonly Mount[] {
  const byDevice = new Map<string, Mount>();
  for (const mount of mounts) {
    if (!holdsData(mount)) continue;
    const known = byDevice.get(mount.device);
    if (known === undefined || mount.mountPoint.length < known.mountPoint.length) {
      byDevice.set(mount.device, mount);
    }
  }
  return [...byDevice.values()]
    .sort((a, b) => Number(a.remote) - Number(b.remote) || (a.mountPoint < b.mountPoint ? -1 : 1))
    .slice(0, fileSystemsMax);
}

function holdsData({ mountPoint, device, type, remote }: Mount): boolean {
  if (neverFull.test(type)) return false;
  // Container engines mount single files of the host there.
  if (mountPoint.startsWith('/etc/')) return false;
  if (type === 'overlay') return mountPoint === '/';
  // Programs that show their own state as files.
  if (/^fuse\.(?:lxcfs|gvfsd-fuse|portal|snapfuse)$/.test(type)) return false;
  return remote || type === 'zfs' || device.startsWith('/dev/');
}

/** The mount that holds a path: of the mounts above it the longest, and of equals the last, which covers the others. */
export function mountOf(path: string, mounts: readonly Mount[]): Mount | null {
  let best: Mount | null = null;
  for (const mount of mounts) {
    const prefix = mount.mountPoint === '/' ? '/' : `${mount.mountPoint}/`;
    if (path !== mount.mountPoint && !path.startsWith(prefix)) continue;
    if (best === null || mount.mountPoint.length >= best.mountPoint.length) best = mount;
  }
  return best;
}
