/** A control group for each task, below the guard's own. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ControlGroup, removeEmptyGroups } from '../fence/controlGroup.ts';
import type { TaskLocation } from '../taskFacts/execution.ts';
import type { Containment } from './containment.ts';
import type { ResourceLimits, TaskLimits } from './resources.ts';

export class CgroupContainment implements Containment {
  readonly mode: 'cgroup2' | 'freezer';
  private readonly home: string;
  private readonly base: string;
  private readonly resources: ResourceLimits;

  /**
   * @param home the guard's own group; tasks go below it, so it cannot vanish while the guard is in one of theirs
   * @throws {Error} when no group can be made or entered there
   */
  static open(
    mode: 'cgroup2' | 'freezer',
    home: string,
    instance: string,
    resources: ResourceLimits,
  ): CgroupContainment {
    const containment = new CgroupContainment(mode, home, join(home, `muster-${instance}`), resources);
    const probe = { key: '_probe', directory: '/' };
    try {
      containment.spawnInside(probe, { cpus: null, memoryMb: null }, () => {});
    } finally {
      removeEmptyGroups(containment.cgroupOf(probe));
    }
    return containment;
  }

  private constructor(mode: 'cgroup2' | 'freezer', home: string, base: string, resources: ResourceLimits) {
    this.mode = mode;
    this.home = home;
    this.base = base;
    this.resources = resources;
  }

  cgroupOf(task: TaskLocation): string {
    return join(this.base, task.key);
  }

  limitGroupsOf(task: TaskLocation, limits: TaskLimits): readonly string[] {
    return this.resources.groupsOf(task, limits);
  }

  limit(task: TaskLocation, limits: TaskLimits): boolean {
    return this.resources.set(task, limits, this.mode === 'cgroup2' ? this.cgroupOf(task) : null);
  }

  /**
   * A process is born into the group of its parent, so the guard goes in, spawns, and goes back. Moving the child
   * after the spawn would leave it time to fork outside; a shell that moves itself and then execs would drop
   * environment names that are not shell names and turn "command not found" into an exit status of 127.
   */
  spawnInside<T>(task: TaskLocation, limits: TaskLimits, spawn: () => T): T {
    const cgroup = this.cgroupOf(task);
    // One that an earlier guard left behind may be frozen, and anyone who enters it then is frozen too.
    if (!makeGroup(cgroup)) new ControlGroup(cgroup).thaw();
    const leave = this.resources.enter(task, limits);
    try {
      enter(cgroup);
      return spawn();
    } finally {
      try {
        enter(this.home);
        leave();
      } catch (error) {
        // A guard that stays in a task's group would be killed with it, and all it spawns too. Tasks outlive us.
        process.stderr.write(`the guard cannot leave ${cgroup}: ${(error as Error).message}\n`);
        process.exit(1);
      }
    }
  }

  close(): void {
    this.resources.close();
    removeEmptyGroups(this.base);
  }
}

/** @returns false: it was there before */
function makeGroup(cgroup: string): boolean {
  try {
    mkdirSync(cgroup);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    if (code !== 'ENOENT') throw error;
    // The first task of this guard: the group of all of them is missing.
    mkdirSync(cgroup, { recursive: true });
    return true;
  }
}

function enter(cgroup: string): void {
  writeFileSync(join(cgroup, 'cgroup.procs'), '0');
}
