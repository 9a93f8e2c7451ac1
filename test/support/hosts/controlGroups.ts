/** Control groups of hosts, as this machine mounts them: to put processes in, to freeze a whole host, to free what is stuck. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { waitFor } from '../services.ts';
import { readLinesOf } from './programs.ts';

export interface Hierarchy {
  /** As /proc/PID/cgroup names it: `freezer`, `name=systemd`, or nothing for version 2. */
  readonly controllers: string;
  readonly mountPoint: string;
  /** What of the hierarchy is mounted. */
  readonly root: string;
}

/** Lines such as `37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer`. */
export function hierarchies(): readonly Hierarchy[] {
  return readLinesOf('/proc/self/mountinfo').flatMap((line) => {
    const [mount = '', source = ''] = line.split(' - ');
    const [, , , root = '', mountPoint = ''] = mount.split(' ');
    const [type, , options = ''] = source.split(' ');
    if (type === 'cgroup2') return [{ controllers: '', mountPoint, root }];
    const controllers = options
      .split(',')
      .filter((option) => option !== 'rw')
      .join(',');
    return type === 'cgroup' ? [{ controllers, mountPoint, root }] : [];
  });
}

/** The groups of a process, one per hierarchy that is mounted here. */
export function controlGroupsOf(pid: number | 'self'): readonly string[] {
  const mounted = hierarchies();
  return readLinesOf(`/proc/${pid}/cgroup`).flatMap((line) => {
    const [, controllers, path = '/'] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    const home = mounted.find((each) => each.controllers === controllers);
    return home === undefined ? [] : [join(home.mountPoint, relative(home.root, path))];
  });
}

/** Can stop all processes below it at once. */
export function isFreezer(group: string): boolean {
  return existsSync(join(group, 'cgroup.freeze')) || existsSync(join(group, 'freezer.state'));
}

/**
 * A group for hosts below the one of this process, in version 2 where that is mounted, else in the version 1 freezer.
 * @throws {Error} where no group can be made
 */
export function makeGroup(name: string): string {
  const own = controlGroupsOf('self');
  const version2 = hierarchies().find(({ controllers }) => controllers === '')?.mountPoint;
  const parent =
    own.find((group) => version2 !== undefined && group.startsWith(version2)) ??
    own.find((group) => existsSync(join(group, 'freezer.state')) || group.endsWith('/freezer'));
  if (parent === undefined) throw new Error('no control groups that could freeze a host are mounted here');
  const group = join(parent, name);
  mkdirSync(group, { recursive: true });
  return group;
}

/** Groups of earlier runs, by name. */
export function groupsNamed(pattern: RegExp): readonly string[] {
  return controlGroupsOf('self').flatMap((parent) =>
    foldersIn(parent)
      .filter((name) => pattern.test(name))
      .map((name) => join(parent, name)),
  );
}

/** Processes in the group and in all below it. */
export function processesIn(group: string): readonly number[] {
  return withAllBelow(group).flatMap((each) => readLinesOf(join(each, 'cgroup.procs')).map(Number));
}

export async function freeze(group: string): Promise<void> {
  if (existsSync(join(group, 'cgroup.freeze'))) {
    writeFileSync(join(group, 'cgroup.freeze'), '1');
    await waitFor(`${group} is frozen`, () => readFileSync(join(group, 'cgroup.events'), 'utf8'), {
      until: (events) => events.includes('frozen 1'),
    });
    return;
  }
  writeFileSync(join(group, 'freezer.state'), 'FROZEN');
  await waitFor(`${group} is frozen`, () => readFileSync(join(group, 'freezer.state'), 'utf8').trim(), {
    until: (state) => state === 'FROZEN',
  });
}

/** Only the group itself: what somebody froze below it stays frozen. */
export function thaw(group: string): void {
  if (existsSync(join(group, 'cgroup.freeze'))) writeFileSync(join(group, 'cgroup.freeze'), '0');
  else if (existsSync(join(group, 'freezer.state'))) writeFileSync(join(group, 'freezer.state'), 'THAWED');
}

/** The group and all below it: in version 1 a frozen process does not even die, and holds up the end of its host. */
export function thawAll(group: string): void {
  for (const each of withAllBelow(group)) {
    try {
      thaw(each);
    } catch {
      // It went away in between.
    }
  }
}

/** @returns false: something is still in there */
export function removeGroup(group: string): boolean {
  try {
    for (const each of withAllBelow(group).reverse()) rmdirSync(each);
    return true;
  } catch {
    return !existsSync(group);
  }
}

function withAllBelow(group: string): string[] {
  return [group, ...foldersIn(group).flatMap((name) => withAllBelow(join(group, name)))];
}

function foldersIn(path: string): readonly string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}
