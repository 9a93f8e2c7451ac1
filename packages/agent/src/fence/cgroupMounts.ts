/** Where control groups are mounted on this machine, as this process sees it. */
import { join, relative } from 'node:path';

/** Directories of control groups; null: that hierarchy is not mounted where we can see it. */
export interface CgroupHomes {
  readonly cgroup2: string | null;
  readonly freezer: string | null;
  /** Of version 1; null where it belongs to version 2. */
  readonly cpu: string | null;
  readonly memory: string | null;
}

/**
 * Of a process, by its /proc/<pid>/cgroup: lines such as `6:freezer:/user` (version 1) or `0::/user` (version 2).
 * @param mountinfo of ourselves
 */
export function parseCgroupHomes(mountinfo: string, cgroups: string): CgroupHomes {
  const pathIn = (hierarchy: string): string | null => {
    for (const line of cgroups.split('\n')) {
      const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
      if (path !== undefined && controllers?.split(',').includes(hierarchy)) return path;
    }
    return null;
  };
  const homeIn = (hierarchy: keyof CgroupHomes): string | null => {
    const path = pathIn(hierarchy === 'cgroup2' ? '' : hierarchy);
    return path === null ? null : cgroupDirectory(mountinfo, hierarchy, path);
  };
  return {
    cgroup2: homeIn('cgroup2'),
    freezer: homeIn('freezer'),
    cpu: homeIn('cpu'),
    memory: homeIn('memory'),
  };
}

/**
 * Where a group of a hierarchy is found, whether it exists or not. A line of mountinfo is
 * `36 25 0:31 / /sys/fs/cgroup/freezer rw,relatime shared:9 - cgroup cgroup rw,freezer`.
 * @param path as the kernel names it: `/docker/…`
 * @returns null: the hierarchy is not mounted here, or the mount does not show the group
 */
export function cgroupDirectory(
  mountinfo: string,
  hierarchy: keyof CgroupHomes,
  path: string,
): string | null {
  for (const line of mountinfo.split('\n')) {
    const [mount = '', source = ''] = line.split(' - ');
    const [, , , root, mountPoint] = mount.split(' ').map(unescapeOctal);
    const [fileSystem, , options = ''] = source.split(' ');
    if (root === undefined || mountPoint === undefined) continue;
    if (fileSystem !== (hierarchy === 'cgroup2' ? 'cgroup2' : 'cgroup')) continue;
    if (hierarchy !== 'cgroup2' && !options.split(',').includes(hierarchy)) continue;
    // In a container the mount may show only a part of the hierarchy; the group can lie outside it.
    const inside = relative(root, path);
    if (!inside.startsWith('..') && !path.startsWith('/..')) return join(mountPoint, inside);
  }
  return null;
}

function unescapeOctal(text: string): string {
  return text.replace(/\\(\d{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
