/**
 * How the guard holds a task's processes together, so that ending the task leaves none of them behind.
 *
 * A process can leave its process group, its session and its parent, but not its control group. So control groups are
 * used wherever the guard may make some: version 2 first, else the version 1 freezer. Elsewhere (an unprivileged
 * user, a container with a read-only /sys) a task is what shares its session or carries its marker in the environment;
 * a process that leaves the session *and* clears its environment gets away there. Freezing such a task means SIGSTOP to
 * each of them.
 */

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Logger } from '@muster/common/log';
import { parseCgroupHomes } from '../fence/cgroupMounts.ts';
import { ControlGroup } from '../fence/controlGroup.ts';
import { SessionGroup } from '../fence/sessionGroup.ts';
import type { TaskGroup } from '../fence/taskGroup.ts';
import { TasksUnit } from '../fence/tasksUnit.ts';
import type { TaskLocation } from '../taskFacts/execution.ts';
import { CgroupContainment } from './cgroup.ts';
import type { ProcessRecord } from './records.ts';
import { ResourceLimits, type TaskLimits } from './resources.ts';

export const containmentModes = ['auto', 'cgroup2', 'freezer', 'session'] as const;
export type ContainmentMode = (typeof containmentModes)[number];

/** Where new tasks are put. */
export interface Containment {
  readonly mode: Exclude<ContainmentMode, 'auto'>;
  /** Where the task's group is, or would be; null: it has none. */
  cgroupOf(task: TaskLocation): string | null;
  /** Groups that it has besides, for its limits. */
  limitGroupsOf(task: TaskLocation, limits: TaskLimits): readonly string[];
  /**
   * Makes the group, and runs `spawn` so that the new process is in it from its first instruction: nothing can slip out.
   */
  spawnInside<T>(task: TaskLocation, limits: TaskLimits, spawn: () => T): T;
  /**
   * Sets the limits of a task that has just been started.
   * @returns false: it needs more memory already
   * @throws {Error} with the kernel's code
   */
  limit(task: TaskLocation, limits: TaskLimits): boolean;
  close(): void;
}

export function openGroup(task: TaskLocation, record: Pick<ProcessRecord, 'cgroup' | 'main'>): TaskGroup {
  if (record.cgroup !== null && existsSync(record.cgroup)) return new ControlGroup(record.cgroup);
  return new SessionGroup(task, record.main);
}

export interface ContainmentWish {
  readonly mode: ContainmentMode;
  /** Distinguishes guards on one machine. */
  readonly instance: string;
  /** The unit of systemd for groups of tasks, in the slice of the guard's own; null: there is none. */
  readonly tasksUnit: string | null;
}

/** @throws {Error} when a mode asked for by name cannot be had here */
export function chooseContainment({ mode, instance, tasksUnit }: ContainmentWish, log: Logger): Containment {
  const homes = parseCgroupHomes(
    readFileSync('/proc/self/mountinfo', 'utf8'),
    readFileSync('/proc/self/cgroup', 'utf8'),
  );
  const refusals: string[] = [];
  for (const candidate of ['cgroup2', 'freezer'] as const) {
    if (mode !== 'auto' && mode !== candidate) continue;
    const home = homes[candidate];
    if (home === null) {
      refusals.push(`${candidate}: not mounted, or our own group lies outside the mount`);
      continue;
    }
    try {
      const name = `muster-${instance}`;
      const unitGroup = tasksUnit === null || candidate !== 'cgroup2' ? null : join(dirname(home), tasksUnit);
      const places = {
        home,
        base: join(home, name),
        tasksUnit: unitGroup === null ? null : new TasksUnit(unitGroup, name, log),
      };
      return CgroupContainment.open(candidate, places, new ResourceLimits(homes, instance, log));
    } catch (error) {
      refusals.push(`${candidate}: ${(error as Error).message}`);
    }
  }
  if (mode !== 'auto' && mode !== 'session')
    throw new Error(`no control groups here (${refusals.join('; ')})`);
  if (mode === 'auto') {
    log.warn({ refusals }, 'no control groups here: tasks are identified by session and environment');
  }
  return sessionContainment;
}

const sessionContainment: Containment = {
  mode: 'session',
  cgroupOf: () => null,
  limitGroupsOf: () => [],
  spawnInside: (_task, _limits, spawn) => spawn(),
  limit: () => true,
  close() {},
};
