/** A control group for each task, below the unit for groups of tasks, or below the guard's own. */

import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ControlGroup, removeEmptyGroups } from '../fence/controlGroup.ts';
import type { TasksUnit } from '../fence/tasksUnit.ts';
import type { TaskLocation } from '../taskFacts/execution.ts';
import type { Containment } from './containment.ts';
import type { ResourceLimits, TaskLimits } from './resources.ts';

export interface TaskGroupPlaces {
  /** The guard's own group, to which it returns after each start. */
  readonly home: string;
  /** Below which groups of tasks are made, unless the unit for them holds them. */
  readonly base: string;
  /** null: there is none. */
  readonly tasksUnit: TasksUnit | null;
}

export class CgroupContainment implements Containment {
  readonly mode: 'cgroup2' | 'freezer';
  private readonly home: string;
  private readonly base: string;
  private readonly tasksUnit: TasksUnit | null;
  private readonly resources: ResourceLimits;

  /** @throws {Error} when no group can be made or entered there */
  static open(
    mode: 'cgroup2' | 'freezer',
    places: TaskGroupPlaces,
    resources: ResourceLimits,
  ): CgroupContainment {
    const containment = new CgroupContainment(mode, places, resources);
    const probe = { key: '_probe', directory: '/' };
    try {
      containment.spawnInside(probe, { cpus: null, memoryMb: null }, () => {});
    } finally {
      removeEmptyGroups(containment.cgroupOf(probe));
    }
    return containment;
  }

  private constructor(
    mode: 'cgroup2' | 'freezer',
    { home, base, tasksUnit }: TaskGroupPlaces,
    resources: ResourceLimits,
  ) {
    this.mode = mode;
    this.home = home;
    this.base = base;
    this.tasksUnit = tasksUnit;
    this.resources = resources;
  }

  /** The unit may have come or gone since the group was made. */
  cgroupOf({ key }: TaskLocation): string {
    const inUnit = this.tasksUnit === null ? null : join(this.tasksUnit.tasksGroup, key);
    return inUnit !== null && existsSync(inUnit) ? inUnit : join(this.base, key);
  }

  private placeFor(task: TaskLocation): string {
    const now = this.cgroupOf(task);
    if (this.tasksUnit === null || existsSync(now) || !this.tasksUnit.prepare()) return now;
    return join(this.tasksUnit.tasksGroup, task.key);
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
    const cgroup = this.placeFor(task);
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
    if (this.tasksUnit !== null) removeEmptyGroups(this.tasksUnit.tasksGroup);
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
