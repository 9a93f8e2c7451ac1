/**
 * Groups of version 2 that limit CPU and memory. The kernel lets a group pass these controllers on to the groups below it only while
 * it has no processes itself, and the guard is a process of its own unit. So the groups of tasks are below a second unit
 * (`muster-tasks.service`), whose only process is moved into a group below it. Nothing of that is kept: systemd may have removed the
 * groups of a unit that was stopped, so they are made again before each start of a task.
 *
 *     muster-guard.service     the guard
 *     muster-tasks.service     no process; passes cpu and memory on
 *       main                   the process of the unit, which only keeps it there
 *       muster-INSTANCE        no process; passes them on
 *         KEY                  a task, with its limits
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import { readKernelFileUnlessGone } from '../host/kernelFiles.ts';

export const limitControllers = ['cpu', 'memory'] as const;
export type LimitController = (typeof limitControllers)[number];

/** The group of the unit's own process. */
const mainGroup = 'main';

export class TasksUnit {
  private readonly path: string;
  private readonly base: string;
  private readonly log: Logger;
  private isReported = false;

  /**
   * @param path of the unit's group, which need not exist
   * @param name of the group for all tasks of this guard
   */
  constructor(path: string, name: string, log: Logger) {
    this.path = path;
    this.base = join(path, name);
    this.log = log;
  }

  /** Where groups of tasks are made, or were while the unit could hold them. */
  get tasksGroup(): string {
    return this.base;
  }

  /** @returns whether groups of tasks can be made there, which then have the controllers that the machine has */
  prepare(): boolean {
    const offered = namesIn(join(this.path, 'cgroup.controllers'));
    const wanted = limitControllers.filter((controller) => offered.includes(controller));
    if (wanted.length === 0) return false;
    const passed = namesIn(join(this.base, 'cgroup.subtree_control'));
    if (wanted.every((controller) => passed.includes(controller))) return true;
    try {
      mkdirSync(join(this.path, mainGroup), { recursive: true });
      for (const pid of namesIn(join(this.path, 'cgroup.procs'))) move(pid, join(this.path, mainGroup));
      mkdirSync(this.base, { recursive: true });
      for (const group of [this.path, this.base])
        writeFileSync(join(group, 'cgroup.subtree_control'), wanted.map((name) => `+${name}`).join(' '));
      return true;
    } catch (error) {
      if (!this.isReported) {
        const fields = { group: this.path, error: messageOf(error) };
        this.log.warn(
          fields,
          'the unit for control groups of tasks passes no limits on: tasks run without them',
        );
      }
      this.isReported = true;
      return false;
    }
  }
}

function move(pid: string, group: string): void {
  try {
    writeFileSync(join(group, 'cgroup.procs'), pid);
  } catch (error) {
    // It has ended, and systemd starts another one.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** @returns words of a file of the kernel; empty: it is not there */
function namesIn(path: string): readonly string[] {
  return (readKernelFileUnlessGone(path) ?? '').split(/\s+/).filter((word) => word !== '');
}
