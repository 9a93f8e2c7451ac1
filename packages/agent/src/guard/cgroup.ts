/** Control groups as plain files; version 2 and the version 1 freezer differ little for what the guard needs. */
import { type Dirent, existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { TaskLocation } from '../drivers/driver.ts';
import type { Containment, TaskGroup } from './containment.ts';
import { isGone, readKernelFile } from './processes.ts';

/** Directories of the control groups this process is in; null: that hierarchy is not mounted where we can see it. */
export interface CgroupHomes {
  readonly cgroup2: string | null;
  readonly freezer: string | null;
}

/**
 * A line of mountinfo is `36 25 0:31 / /sys/fs/cgroup/freezer rw,relatime shared:9 - cgroup cgroup rw,freezer`,
 * a line of /proc/self/cgroup `6:freezer:/user` (version 1) or `0::/user` (version 2).
 */
export function parseCgroupHomes(mountinfo: string, selfCgroup: string): CgroupHomes {
  const ownPath = (controller: string): string | null => {
    for (const line of selfCgroup.split('\n')) {
      const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
      if (path !== undefined && controllers?.split(',').includes(controller)) return path;
    }
    return null;
  };
  const home = (type: string, option: string, controller: string): string | null => {
    const path = ownPath(controller);
    if (path === null) return null;
    for (const line of mountinfo.split('\n')) {
      const [mount = '', source = ''] = line.split(' - ');
      const [, , , root, mountPoint] = mount.split(' ').map(unescapeOctal);
      const [fileSystem, , options = ''] = source.split(' ');
      if (root === undefined || mountPoint === undefined || fileSystem !== type) continue;
      if (option !== '' && !options.split(',').includes(option)) continue;
      // In a container the mount may show only a part of the hierarchy; our own group can lie outside it.
      const inside = relative(root, path);
      if (!inside.startsWith('..') && !path.startsWith('/..')) return join(mountPoint, inside);
    }
    return null;
  };
  return { cgroup2: home('cgroup2', '', ''), freezer: home('cgroup', 'freezer', 'freezer') };
}

export class CgroupContainment implements Containment {
  readonly mode: 'cgroup2' | 'freezer';
  readonly #home: string;
  readonly #base: string;

  /**
   * @param home the guard's own group; tasks go below it, so it cannot vanish while the guard is in one of theirs
   * @throws {Error} when no group can be made or entered there
   */
  static open(mode: 'cgroup2' | 'freezer', home: string, instance: string): CgroupContainment {
    const containment = new CgroupContainment(mode, home, join(home, `muster-${instance}`));
    const probe = { key: '_probe', directory: '/' };
    try {
      containment.spawnInside(probe, () => {});
    } finally {
      removeEmpty(containment.cgroupOf(probe));
    }
    return containment;
  }

  private constructor(mode: 'cgroup2' | 'freezer', home: string, base: string) {
    this.mode = mode;
    this.#home = home;
    this.#base = base;
  }

  cgroupOf(task: TaskLocation): string {
    return join(this.#base, task.key);
  }

  /**
   * A process is born into the group of its parent, so the guard goes in, spawns, and goes back. Moving the child
   * after the spawn would leave it time to fork outside; a shell that moves itself and then execs would drop
   * environment names that are not shell names and turn "command not found" into an exit status of 127.
   */
  spawnInside<T>(task: TaskLocation, spawn: () => T): T {
    const cgroup = this.cgroupOf(task);
    mkdirSync(cgroup, { recursive: true });
    enter(cgroup);
    try {
      return spawn();
    } finally {
      try {
        enter(this.#home);
      } catch (error) {
        // A guard that stays in a task's group would be killed with it, and all it spawns too. Tasks outlive us.
        process.stderr.write(`the guard cannot leave ${cgroup}: ${(error as Error).message}\n`);
        process.exit(1);
      }
    }
  }

  close(): void {
    removeEmpty(this.#base);
  }
}

export class CgroupGroup implements TaskGroup {
  readonly emptySightings = 1;
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  pids(): number[] {
    return groupsBelow(this.#path).flatMap(readProcs);
  }

  isEmpty(): boolean {
    const events = readKernelFile(join(this.#path, 'cgroup.events'));
    return events === null ? this.pids().length === 0 : events.includes('populated 0');
  }

  kill(): void {
    const killFile = join(this.#path, 'cgroup.kill');
    if (existsSync(killFile)) {
      writeFileSync(killFile, '1');
      return;
    }
    for (const pid of this.pids()) {
      // Read a moment ago from the kernel's own list: as close to "this very process" as a pid can come.
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // Gone already, or not ours to kill: then the group stays populated and the task is not called ended.
      }
    }
  }

  release(): boolean {
    return removeEmpty(this.#path);
  }
}

function enter(cgroup: string): void {
  writeFileSync(join(cgroup, 'cgroup.procs'), '0');
}

/** The group and all groups that its processes made below it, deepest last. */
function groupsBelow(path: string): string[] {
  let entries: Dirent[];
  try {
    entries = readdirSync(path, { withFileTypes: true });
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return [path, ...names.flatMap((name) => groupsBelow(join(path, name)))];
}

function readProcs(path: string): number[] {
  const procs = readKernelFile(join(path, 'cgroup.procs')) ?? '';
  // 0 stands for a process that our pid namespace does not show.
  return procs
    .split('\n')
    .filter((line) => line !== '' && line !== '0')
    .map(Number);
}

/** false: something is still in there. */
function removeEmpty(path: string): boolean {
  try {
    for (const group of groupsBelow(path).reverse()) rmdirSync(group);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

function unescapeOctal(text: string): string {
  return text.replace(/\\(\d{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
