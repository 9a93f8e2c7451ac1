/**
 * The control groups of a container, which the fence acts on directly. The kernel tells them once the container runs; the
 * fence is armed before that, so their names have to be known beforehand: they carry the container's id.
 */
import { readFileSync } from 'node:fs';
import { cgroupDirectory, parseCgroupHomes } from '../../fence/cgroupMounts.ts';
import { readKernelFileUnlessGone } from '../../fence/processes.ts';

/** As Docker names them with its `cgroupfs` and `systemd` drivers, and Podman likewise. */
function candidatePaths(id: string): readonly string[] {
  return [
    `/docker/${id}`,
    `/system.slice/docker-${id}.scope`,
    `/libpod_parent/libpod-${id}`,
    `/machine.slice/libpod-${id}.scope`,
  ];
}

/**
 * Where the groups of a container that has not been started may come into being, as absolute paths.
 * @param mountinfo of ourselves
 * @returns empty: no hierarchy that can freeze is mounted where we can see it
 */
export function candidateGroups(mountinfo: string, id: string): readonly string[] {
  // Where there is a version 1 freezer, engines use it, also beside version 2.
  const hierarchy = cgroupDirectory(mountinfo, 'freezer', '/') === null ? 'cgroup2' : 'freezer';
  return candidatePaths(id).flatMap((path) => cgroupDirectory(mountinfo, hierarchy, path) ?? []);
}

/**
 * The group of a process of a container, and nothing if it could be anybody else's: freezing the group of a slice, or our
 * own, would stop the node. So a part of its path has to name the container.
 * @param cgroups the process's /proc/<pid>/cgroup
 */
export function groupsOfProcess(mountinfo: string, cgroups: string, id: string): readonly string[] {
  const { freezer, cgroup2 } = parseCgroupHomes(mountinfo, cgroups);
  for (const home of [freezer, cgroup2]) {
    const parts = home?.split('/') ?? [];
    const own = parts.findIndex((part) => part.includes(id));
    // Below its own group a container may make others.
    if (own >= 0) return [parts.slice(0, own + 1).join('/')];
  }
  return [];
}

export function readCandidateGroups(id: string): readonly string[] {
  return candidateGroups(readMounts(), id);
}

/** null: the process has ended. */
export function readGroupsOfProcess(pid: number, id: string): readonly string[] | null {
  const cgroups = readKernelFileUnlessGone(`/proc/${pid}/cgroup`);
  return cgroups === null ? null : groupsOfProcess(readMounts(), cgroups, id);
}

function readMounts(): string {
  return readFileSync('/proc/self/mountinfo', 'utf8');
}
