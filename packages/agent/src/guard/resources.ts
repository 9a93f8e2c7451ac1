/**
 * Limits of CPU and memory that a task's processes share, through control groups. Each controller is in one hierarchy of
 * the machine: of version 1 in one of its own, where a task gets a group besides the one that it is frozen by; of version 2 in
 * the one that it is frozen by, where a unit for the groups of tasks passes the controllers on (`fence/tasksUnit.ts`).
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from '@muster/common/log';
import type { CgroupHomes } from '../fence/cgroupMounts.ts';
import { removeEmptyGroups } from '../fence/controlGroup.ts';
import { type LimitController, limitControllers } from '../fence/tasksUnit.ts';
import type { TaskLocation } from '../taskFacts/execution.ts';

export interface TaskLimits {
  /** Of a CPU, such as 1.5; null: all. */
  readonly cpus: number | null;
  /** MiB; null: what the node has. */
  readonly memoryMb: number | null;
}

/** Microseconds in which a task may use its share: the kernel's own choice. */
const periodUs = 100_000;
/** The least that the kernel takes for a share. */
const shareUsMin = 1_000;
const mebibyte = 1024 * 1024;

export class ResourceLimits {
  private readonly homes: Pick<CgroupHomes, LimitController>;
  private readonly instance: string;
  private readonly log: Logger;
  private readonly reported = new Set<LimitController>();

  /** @param homes the guard's own groups of version 1 @param instance distinguishes guards on one machine */
  constructor(homes: Pick<CgroupHomes, LimitController>, instance: string, log: Logger) {
    this.homes = homes;
    this.instance = instance;
    this.log = log;
  }

  /** Groups of version 1 that the task has for its limits alone. */
  groupsOf({ key }: TaskLocation, limits: TaskLimits): readonly string[] {
    return wanted(limits).flatMap((controller) => {
      const home = this.homes[controller];
      return home === null ? [] : [join(this.baseIn(home), key)];
    });
  }

  /**
   * Moves this process into the groups that will have the limits. They have none yet: this process is larger than most tasks
   * are at first, and the kernel would kill it under the limit of a task.
   * @returns to leave the groups again
   * @throws {Error} with the kernel's code
   */
  enter(task: TaskLocation, limits: TaskLimits): () => void {
    const left: string[] = [];
    const leave = () => {
      for (const home of left) enterGroup(home);
    };
    try {
      for (const controller of wanted(limits)) {
        const home = this.homes[controller];
        if (home === null) continue;
        const group = join(this.baseIn(home), task.key);
        mkdirSync(group, { recursive: true });
        enterGroup(group);
        left.push(home);
      }
      return leave;
    } catch (error) {
      leave();
      throw error;
    }
  }

  /**
   * Sets the limits of a task that has been started.
   * @param own the task's group of version 2; null: it has none
   * @returns false: it needs more memory already
   * @throws {Error} with the kernel's code
   */
  set(task: TaskLocation, limits: TaskLimits, own: string | null): boolean {
    return wanted(limits).every((controller) => {
      const home = this.homes[controller];
      const group = home === null ? own : join(this.baseIn(home), task.key);
      const result = group === null ? 'absent' : limit(group, controller, limits, home !== null);
      if (result === 'absent') this.report(controller, task);
      return result !== 'exceeded';
    });
  }

  close(): void {
    for (const home of Object.values(this.homes)) if (home !== null) removeEmptyGroups(this.baseIn(home));
  }

  private baseIn(home: string): string {
    return join(home, `muster-${this.instance}`);
  }

  private report(controller: LimitController, { key }: TaskLocation): void {
    if (this.reported.has(controller)) return;
    this.reported.add(controller);
    this.log.warn(
      { task: key, controller },
      'the limit of a task is not enforced: its control group has no such controller; see `muster doctor` on this node',
    );
  }
}

function wanted({ cpus, memoryMb }: TaskLimits): readonly LimitController[] {
  return limitControllers.filter((controller) => (controller === 'cpu' ? cpus : memoryMb) !== null);
}

/** @returns `absent`: the group has no files of that controller */
function limit(
  group: string,
  controller: LimitController,
  limits: TaskLimits,
  isVersion1: boolean,
): 'set' | 'absent' | 'exceeded' {
  const files = limitFiles(controller, limits, isVersion1).filter(
    ({ name, isOptional }) => !isOptional || existsSync(join(group, name)),
  );
  if (!files.every(({ name }) => existsSync(join(group, name)))) return 'absent';
  try {
    for (const { name, value } of files) writeFileSync(join(group, name), value);
    return 'set';
  } catch (error) {
    // Version 1 refuses what is exceeded. Version 2 sets it, and kills.
    if ((error as NodeJS.ErrnoException).code === 'EBUSY') return 'exceeded';
    throw error;
  }
}

interface LimitFile {
  readonly name: string;
  readonly value: string;
  /** Only kernels that count swap have it. */
  readonly isOptional?: true;
}

/** In the order of writing: version 1 refuses memory without swap above the sum of both. */
function limitFiles(
  controller: LimitController,
  { cpus, memoryMb }: TaskLimits,
  isVersion1: boolean,
): readonly LimitFile[] {
  if (controller === 'cpu') {
    const shareUs = Math.max(shareUsMin, Math.round((cpus ?? 0) * periodUs));
    if (!isVersion1) return [{ name: 'cpu.max', value: `${shareUs} ${periodUs}` }];
    return [
      { name: 'cpu.cfs_period_us', value: `${periodUs}` },
      { name: 'cpu.cfs_quota_us', value: `${shareUs}` },
    ];
  }
  const bytes = `${(memoryMb ?? 0) * mebibyte}`;
  // Without swap: a task that leaks would slow the node for hours instead.
  return isVersion1
    ? [
        { name: 'memory.limit_in_bytes', value: bytes },
        { name: 'memory.memsw.limit_in_bytes', value: bytes, isOptional: true },
      ]
    : [
        { name: 'memory.swap.max', value: '0', isOptional: true },
        // A training that has lost one process waits for it; so all of them end. Before the limit, which may end some at once.
        { name: 'memory.oom.group', value: '1', isOptional: true },
        { name: 'memory.max', value: bytes },
      ];
}

function enterGroup(group: string): void {
  writeFileSync(join(group, 'cgroup.procs'), '0');
}
