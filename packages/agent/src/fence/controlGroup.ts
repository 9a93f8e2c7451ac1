/**
 * A control group as plain files. Version 2 and the version 1 freezer differ little for what is needed here:
 *
 *                 version 2                          version 1 freezer
 *     freeze      1 > cgroup.freeze                  FROZEN > freezer.state, again for as long as it says FREEZING
 *     frozen?     `frozen 1` in cgroup.events        FROZEN in freezer.state
 *     SIGKILL     ends frozen processes              waits until they are thawed
 *
 * In both versions, a group is frozen together with the groups below it.
 */
import {
  closeSync,
  constants,
  type Dirent,
  existsSync,
  openSync,
  readdirSync,
  rmdirSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { isGoneError, readKernelFileUnlessGone } from '../host/kernelFiles.ts';
import type { TaskGroup } from './taskGroup.ts';

export class ControlGroup implements TaskGroup {
  readonly looksNeeded = 1;
  private readonly path: string;

  /** @param path absolute; the group may not exist yet */
  constructor(path: string) {
    this.path = path;
  }

  pids(): number[] {
    return groupsBelow(this.path).flatMap(readProcs).filter(isVisible);
  }

  isEmpty(): boolean {
    const events = readKernelFileUnlessGone(join(this.path, 'cgroup.events'));
    return events === null ? this.pids().length === 0 : events.includes('populated 0');
  }

  kill(): boolean {
    if (existsSync(join(this.path, 'cgroup.kill'))) {
      this.write('cgroup.kill', '1');
      return true;
    }
    let reachedAll = true;
    for (const pid of groupsBelow(this.path).flatMap(readProcs)) {
      if (!isVisible(pid)) {
        reachedAll = false;
        continue;
      }
      // The pid was just read from the list of the kernel, so it is very unlikely to belong to another process by now.
      try {
        process.kill(pid, 'SIGKILL');
      } catch (error) {
        // ESRCH: the process is gone. Otherwise this user may not kill it: the group stays populated, and the task does not end.
        reachedAll &&= (error as NodeJS.ErrnoException).code === 'ESRCH';
      }
    }
    return reachedAll;
  }

  freeze(): void {
    if (existsSync(join(this.path, 'cgroup.freeze'))) this.write('cgroup.freeze', '1');
    else this.write('freezer.state', 'FROZEN');
  }

  isFrozen(): boolean {
    const state = readKernelFileUnlessGone(join(this.path, 'freezer.state'));
    if (state !== null) return state.trim() === 'FROZEN';
    return readKernelFileUnlessGone(join(this.path, 'cgroup.events'))?.includes('frozen 1') === true;
  }

  thaw(): void {
    if (existsSync(join(this.path, 'cgroup.freeze'))) this.write('cgroup.freeze', '0');
    else this.write('freezer.state', 'THAWED');
  }

  release(): boolean {
    return removeEmptyGroups(this.path);
  }

  /** Writes a file of the group. A group that no longer exists was empty, and needs no write. */
  private write(file: string, value: string): void {
    let descriptor: number | null = null;
    try {
      descriptor = openSync(join(this.path, file), constants.O_WRONLY);
      writeSync(descriptor, value);
    } catch (error) {
      const isThere = existsSync(this.path) && (error as NodeJS.ErrnoException).code !== 'ENODEV';
      if (isThere) throw error;
    } finally {
      if (descriptor !== null) closeSync(descriptor);
    }
  }
}

/** Whether the kernel has killed a process of one of these groups because the memory of the group ran out. */
export function hasRunOutOfMemory(groups: readonly string[]): boolean {
  return groups.some((group) =>
    ['memory.oom_control', 'memory.events'].some((name) =>
      /^oom_kill [1-9]/m.test(readKernelFileUnlessGone(join(group, name)) ?? ''),
    ),
  );
}

/** Removes a group. @returns false: it still contains something */
export function removeEmptyGroups(path: string): boolean {
  // Most have none below them, and then nothing needs to be listed.
  return removeGroups([path]) || removeGroups(groupsBelow(path).reverse());
}

/** @returns false: one of them still contains something */
function removeGroups(paths: readonly string[]): boolean {
  try {
    for (const path of paths) rmdirSync(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

/** The group and all groups below it, the deepest last. */
function groupsBelow(path: string): string[] {
  let entries: Dirent[];
  try {
    entries = readdirSync(path, { withFileTypes: true });
  } catch (error) {
    if (isGoneError(error)) return [];
    throw error;
  }
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return [path, ...names.flatMap((name) => groupsBelow(join(path, name)))];
}

function readProcs(path: string): number[] {
  const procs = readKernelFileUnlessGone(join(path, 'cgroup.procs')) ?? '';
  return procs
    .split('\n')
    .filter((line) => line !== '')
    .map(Number);
}

/** Reads the pids of a group. 0 stands for a process outside the pid namespace of this agent. */
function isVisible(pid: number): boolean {
  return pid !== 0;
}
