/**
 * The fence of the guard, which needs no agent (G2 of docs/guarantees.md). At the deadline of a task it freezes or kills the
 * task, and keeps it so until a later lease comes.
 *
 *     armed ── deadline ──▶ expired ── later lease ──▶ armed
 *
 * The guard checks again and again that an expired task is still frozen: a container may be created after its deadline, and
 * somebody may thaw a task that may not run. A later lease does not thaw a task; the agent that brings the lease does. The
 * exception is a task that this fence has only begun to freeze, because the agent does not know of that.
 */

import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import { ControlGroup } from '../fence/controlGroup.ts';
import { Deadlines } from '../fence/deadlines.ts';
import { freezeOrKillWhile, killUntilGone } from '../fence/freeze.ts';
import { isExpired, isLater } from '../fence/leaseFile.ts';
import type { TaskGroup } from '../fence/taskGroup.ts';
import type { Lease, TaskLocation, TaskName } from '../taskFacts/execution.ts';
import type { LeaseFiles, LeaseRecord } from './leaseFiles.ts';

/** The interval of checks on a task that did not exist, or could not be stopped, when its lease expired. */
const lookMs = 200;
/** The interval of checks on a task that was frozen. */
const lookAgainMs = 1_000;

/** A task that the guard itself has started. A container is known by its control groups only. */
export interface OwnTask {
  readonly group: TaskGroup;
  /** Kills the task, and repeats that until nothing of it is left. */
  kill(): void;
  /** Called when the task has got a later lease. */
  leaseRenewed(): void;
}

export interface FenceParts {
  readonly files: LeaseFiles;
  readonly bootId: string;
  readonly boottimeMs: () => number;
  readonly log: Logger;
  /** null: the task has ended, or is a container. */
  readonly ownTask: (key: TaskName) => OwnTask | null;
}

interface Fence extends LeaseRecord {
  /** At least one control group of the task has existed. From then on, their absence means that the task has ended. */
  wasSeen: boolean;
  isActing: boolean;
  /** The last line that was logged about this deadline. */
  logged: string | null;
}

export class Fences {
  private readonly parts: FenceParts;
  private readonly deadlines: Deadlines;
  private readonly fences = new Map<TaskName, Fence>();

  constructor(parts: FenceParts) {
    this.parts = parts;
    this.deadlines = new Deadlines(parts.boottimeMs, (key) => void this.enforce(key));
  }

  /** Takes the leases of an earlier guard over, with their deadlines, including those that have passed meanwhile. */
  takeOver(): void {
    const { files, bootId, log, ownTask } = this.parts;
    for (const record of files.all()) {
      const { key } = record.location;
      const isDead = record.lease.bootId !== bootId || (record.groups === null && ownTask(key) === null);
      if (isDead) this.removeFile(key);
      else this.hold(record);
    }
    if (this.fences.size > 0)
      log.info({ tasks: [...this.fences.keys()] }, 'holding the leases of an earlier guard');
  }

  /** Whether this guard fences containers; a guard that exits would leave them without a second fence. */
  get isHolding(): boolean {
    for (const fence of this.fences.values()) {
      if (fence.groups === null) continue;
      if (!fence.wasSeen || existing(fence.groups).length > 0) return true;
    }
    return false;
  }

  mayRun(key: TaskName): boolean {
    const fence = this.fences.get(key);
    return fence === undefined || !this.isExpired(fence);
  }

  /**
   * Takes the lease of a task that the guard is about to start.
   * @throws {Error} when the lease cannot be written: the next guard would not know it
   */
  armNew(location: TaskLocation, lease: Lease): void {
    this.parts.files.write({ location, lease, groups: null });
    this.hold({ location, lease, groups: null });
  }

  /**
   * Takes a lease of a task.
   * @param lease null: the task is never fenced
   * @param groups the control groups of a container; empty for a task of the guard
   * @throws {Error} for a lease of another boot, and for one that cannot be written. A first lease is then not held; a later
   *   one is held by this guard, but not by the next
   */
  renew(location: TaskLocation, lease: Lease | null, groups: readonly string[]): void {
    const { key } = location;
    const own = this.parts.ownTask(key);
    if (lease === null) {
      this.forget(key);
      own?.leaseRenewed();
      return;
    }
    if (lease.bootId !== this.parts.bootId) {
      throw new Error(`the lease of task ${key} is of another boot of this machine (${lease.bootId})`);
    }
    if (!groups.every(isAbsolute))
      throw new Error(`the control groups of task ${key} are not absolute paths`);
    // Neither here nor anywhere else: it has ended.
    if (own === null && groups.length === 0) return;

    const before = this.fences.get(key);
    const isNewer = isLater(lease, before?.lease ?? null);
    const record: LeaseRecord = {
      location: { key, directory: location.directory },
      lease: isNewer || before === undefined ? lease : before.lease,
      groups: own === null ? groups : null,
    };
    if (before === undefined) this.parts.files.write(record);
    this.hold(record);
    if (isNewer && this.mayRun(key)) own?.leaseRenewed();
    if (before !== undefined) this.parts.files.write(record);
  }

  forget(key: TaskName): void {
    if (!this.fences.delete(key)) return;
    this.deadlines.delete(key);
    this.removeFile(key);
  }

  /** A file that stays, such as on a disk that is read-only now, is no reason to leave other tasks without their fence. */
  private removeFile(key: TaskName): void {
    try {
      this.parts.files.remove(key);
    } catch (error) {
      const fields = { task: key, error: messageOf(error) };
      this.parts.log.error(fields, 'the lease of a task that has ended cannot be removed from the disk');
    }
  }

  private hold(record: LeaseRecord): void {
    const { key } = record.location;
    const before = this.fences.get(key);
    const isSame = before?.lease.deadlineBoottimeMs === record.lease.deadlineBoottimeMs;
    this.fences.set(key, {
      ...record,
      wasSeen: before?.wasSeen === true || existing(record.groups ?? []).length > 0,
      isActing: before?.isActing === true,
      logged: isSame ? before.logged : null,
    });
    this.deadlines.set(key, record.lease.deadlineBoottimeMs);
  }

  private isExpired({ lease }: Fence): boolean {
    return isExpired(lease, this.parts.bootId, this.parts.boottimeMs());
  }

  private async enforce(key: TaskName): Promise<void> {
    const fence = this.fences.get(key);
    if (fence === undefined || fence.isActing || this.mayRun(key)) return;
    const isWanted = () => !this.mayRun(key);
    fence.isActing = true;
    let isHeld = false;
    try {
      isHeld = await this.stop(fence, isWanted);
    } catch (error) {
      this.logOnce(key, 'error', 'the lease of a task has run out, and it could not be stopped', error);
    }
    // A renewal may have replaced the fence.
    const now = this.fences.get(key);
    if (now === undefined) return;
    now.isActing = false;
    if (isWanted()) this.deadlines.set(key, this.parts.boottimeMs() + (isHeld ? lookAgainMs : lookMs));
  }

  /** @returns false: the task does not exist yet, or was not stopped; it is checked again soon */
  private async stop(fence: Fence, isWanted: () => boolean): Promise<boolean> {
    const { key } = fence.location;
    const own = fence.groups === null ? this.parts.ownTask(key) : null;
    if (fence.groups === null && own === null) {
      this.forget(key);
      return true;
    }
    const groups = own === null ? this.groupsOf(fence) : [own.group];
    let isHeld = groups.length > 0;
    for (const group of groups) isHeld = (await this.stopGroup(fence, group, own, isWanted)) && isHeld;
    return isHeld;
  }

  private async stopGroup(
    { location: { key }, lease }: Fence,
    group: TaskGroup,
    own: OwnTask | null,
    isWanted: () => boolean,
  ): Promise<boolean> {
    const kill = async () => {
      if (own === null) return killUntilGone(group);
      own.kill();
      return true;
    };
    if (lease.onExpiry === 'kill') {
      if (group.isEmpty()) return own !== null;
      const isKilled = await kill();
      this.logOnce(key, 'warn', 'the lease of a task has run out: killed', null);
      return isKilled;
    }
    if (group.isFrozen() && !group.isEmpty()) {
      this.logOnce(key, 'warn', 'the lease of a task has run out: it was frozen already', null);
      return true;
    }
    const outcome = await freezeOrKillWhile(group, isWanted);
    if (outcome === 'killed') {
      await kill();
      this.logOnce(
        key,
        'warn',
        'the lease of a task has run out, and it did not freeze in time: killed',
        null,
      );
    } else if (!isWanted()) {
      group.thaw();
      this.parts.log.info({ task: key }, 'a later lease came while a task was being frozen: thawed');
    } else if (outcome === 'frozen') {
      this.logOnce(key, 'warn', 'the lease of a task has run out: frozen', null);
    }
    return outcome === 'frozen' || own !== null;
  }

  private groupsOf(fence: Fence): TaskGroup[] {
    const paths = existing(fence.groups ?? []);
    if (paths.length > 0) fence.wasSeen = true;
    return paths.map((path) => new ControlGroup(path));
  }

  /** Logs a line once per deadline, however often the task is checked. */
  private logOnce(key: TaskName, level: 'warn' | 'error', message: string, error: unknown): void {
    const fence = this.fences.get(key);
    if (fence === undefined || fence.logged === message) return;
    fence.logged = message;
    const { deadlineBoottimeMs } = fence.lease;
    const fields = { task: key, deadlineBoottimeMs, boottimeMs: this.parts.boottimeMs() };
    const reason = error === null ? {} : { error: messageOf(error) };
    this.parts.log[level]({ ...fields, ...reason }, message);
  }
}

function existing(paths: readonly string[]): string[] {
  return paths.filter((path) => existsSync(path));
}
