/**
 * The fence that holds without an agent: what may run no longer is frozen or killed at its deadline, and kept so until a
 * later lease comes.
 *
 *     armed ── deadline ──▶ expired ── later lease ──▶ armed
 *
 * Of an expired task it is looked again and again whether it is still frozen: a container may come into being after its
 * deadline, and somebody may thaw what may not run. A later lease thaws nothing by itself (whoever brings it does), but
 * for what this fence had only just begun to freeze: nobody else would know of it.
 */
import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import type { Lease, TaskKey, TaskLocation } from '../drivers/driver.ts';
import { ControlGroup } from '../fence/controlGroup.ts';
import { Deadlines } from '../fence/deadlines.ts';
import { freezeOrKill, killUntilGone } from '../fence/freeze.ts';
import { isExpired, isLater } from '../fence/lease.ts';
import type { TaskGroup } from '../fence/taskGroup.ts';
import type { LeaseFiles, LeaseRecord } from './leaseFiles.ts';

/** How often it is looked for a task that was not there, or could not be stopped, when its lease ran out. */
const LOOK_MS = 200;
/** How often it is looked whether a frozen task still is. */
const LOOK_AGAIN_MS = 1_000;

/** Of the guard's own tasks; those of a container engine are known by their control groups alone. */
export interface OwnTask {
  readonly group: TaskGroup;
  /** Until nothing is left, however long that takes. */
  kill(): void;
  /** It has got a later lease. */
  leaseRenewed(): void;
}

export interface FenceParts {
  readonly files: LeaseFiles;
  readonly bootId: string;
  readonly boottimeMs: () => number;
  readonly log: Logger;
  /** null: it has ended, or is not the guard's own. */
  readonly ownTask: (key: TaskKey) => OwnTask | null;
}

interface Fence extends LeaseRecord {
  /** At least one of its control groups was there once: from then on their absence means that it has ended. */
  wasSeen: boolean;
  isActing: boolean;
  /** What the log has already said about this deadline. */
  said: string | null;
}

export class Fences {
  readonly #parts: FenceParts;
  readonly #deadlines: Deadlines;
  readonly #fences = new Map<TaskKey, Fence>();

  constructor(parts: FenceParts) {
    this.#parts = parts;
    this.#deadlines = new Deadlines(parts.boottimeMs, (key) => void this.#enforce(key));
  }

  /** What an earlier guard held: at the same deadlines, also those that have passed meanwhile. */
  takeOver(): void {
    const { files, bootId, log, ownTask } = this.#parts;
    for (const record of files.all()) {
      const { key } = record.location;
      const isDead = record.lease.bootId !== bootId || (record.groups === null && ownTask(key) === null);
      if (isDead) files.remove(key);
      else this.#hold(record);
    }
    if (this.#fences.size > 0)
      log.info({ tasks: [...this.#fences.keys()] }, 'holding the leases of an earlier guard');
  }

  /** Whether tasks are held that nobody but this guard's fence may know of. */
  get isHolding(): boolean {
    for (const fence of this.#fences.values()) {
      if (fence.groups === null) continue;
      if (!fence.wasSeen || existing(fence.groups).length > 0) return true;
    }
    return false;
  }

  mayRun(key: TaskKey): boolean {
    const fence = this.#fences.get(key);
    return fence === undefined || !this.#isExpired(fence);
  }

  /**
   * Before a task of the guard's own is started.
   * @throws {Error} when the lease cannot be written down: another guard would not hold it
   */
  armNew(location: TaskLocation, lease: Lease): void {
    this.#parts.files.write({ location, lease, groups: null });
    this.#hold({ location, lease, groups: null });
  }

  /**
   * @param lease null: never fenced
   * @param groups of a task that is not the guard's own
   * @throws {Error} for a lease of another boot, and for one that cannot be written down: a first one is not held then,
   *   a later one is, but not by another guard
   */
  renew(location: TaskLocation, lease: Lease | null, groups: readonly string[]): void {
    const { key } = location;
    const own = this.#parts.ownTask(key);
    if (lease === null) {
      this.forget(key);
      own?.leaseRenewed();
      return;
    }
    if (lease.bootId !== this.#parts.bootId) {
      throw new Error(`the lease of task ${key} is of another boot of this machine (${lease.bootId})`);
    }
    if (!groups.every(isAbsolute))
      throw new Error(`the control groups of task ${key} are not absolute paths`);
    // Neither here nor anywhere else: it has ended.
    if (own === null && groups.length === 0) return;

    const before = this.#fences.get(key);
    const isNewer = isLater(lease, before?.lease ?? null);
    const record: LeaseRecord = {
      location: { key, directory: location.directory },
      lease: isNewer || before === undefined ? lease : before.lease,
      groups: own === null ? groups : null,
    };
    if (before === undefined) this.#parts.files.write(record);
    this.#hold(record);
    if (isNewer && this.mayRun(key)) own?.leaseRenewed();
    if (before !== undefined) this.#parts.files.write(record);
  }

  forget(key: TaskKey): void {
    if (!this.#fences.delete(key)) return;
    this.#deadlines.delete(key);
    this.#parts.files.remove(key);
  }

  #hold(record: LeaseRecord): void {
    const { key } = record.location;
    const before = this.#fences.get(key);
    const isSame = before?.lease.deadlineBoottimeMs === record.lease.deadlineBoottimeMs;
    this.#fences.set(key, {
      ...record,
      wasSeen: before?.wasSeen === true || existing(record.groups ?? []).length > 0,
      isActing: before?.isActing === true,
      said: isSame ? before.said : null,
    });
    this.#deadlines.set(key, record.lease.deadlineBoottimeMs);
  }

  #isExpired({ lease }: Fence): boolean {
    return isExpired(lease, this.#parts.bootId, this.#parts.boottimeMs());
  }

  async #enforce(key: TaskKey): Promise<void> {
    const fence = this.#fences.get(key);
    if (fence === undefined || fence.isActing || !this.#isExpired(fence)) return;
    const isWanted = () => !this.mayRun(key);
    fence.isActing = true;
    let isHeld = false;
    try {
      isHeld = await this.#stop(fence, isWanted);
    } catch (error) {
      this.#say(key, 'error', 'the lease of a task has run out, and it could not be stopped', error);
    }
    // A renewal has put another one in its place.
    const now = this.#fences.get(key);
    if (now === undefined) return;
    now.isActing = false;
    if (isWanted()) this.#deadlines.set(key, this.#parts.boottimeMs() + (isHeld ? LOOK_AGAIN_MS : LOOK_MS));
  }

  /** @returns false: not there yet, or not stopped; look again soon */
  async #stop(fence: Fence, isWanted: () => boolean): Promise<boolean> {
    const { key } = fence.location;
    const own = fence.groups === null ? this.#parts.ownTask(key) : null;
    if (fence.groups === null && own === null) {
      this.forget(key);
      return true;
    }
    const groups = own === null ? this.#groupsOf(fence) : [own.group];
    let isHeld = groups.length > 0;
    for (const group of groups) isHeld = (await this.#stopGroup(fence, group, own, isWanted)) && isHeld;
    return isHeld;
  }

  async #stopGroup(
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
      this.#say(key, 'warn', 'the lease of a task has run out: killed', null);
      return isKilled;
    }
    if (group.isFrozen() && !group.isEmpty()) {
      this.#say(key, 'warn', 'the lease of a task has run out: it was frozen already', null);
      return true;
    }
    const outcome = await freezeOrKill(group, isWanted);
    if (outcome === 'killed') {
      await kill();
      this.#say(key, 'warn', 'the lease of a task has run out, and it did not freeze in time: killed', null);
    } else if (!isWanted()) {
      group.thaw();
      this.#parts.log.info({ task: key }, 'a later lease came while a task was being frozen: thawed');
    } else if (outcome === 'frozen') {
      this.#say(key, 'warn', 'the lease of a task has run out: frozen', null);
    }
    return outcome === 'frozen' || own !== null;
  }

  #groupsOf(fence: Fence): TaskGroup[] {
    const paths = existing(fence.groups ?? []);
    if (paths.length > 0) fence.wasSeen = true;
    return paths.map((path) => new ControlGroup(path));
  }

  /** Once per deadline and thing to say, however often it is looked. */
  #say(key: TaskKey, level: 'warn' | 'error', message: string, error: unknown): void {
    const fence = this.#fences.get(key);
    if (fence === undefined || fence.said === message) return;
    fence.said = message;
    const { deadlineBoottimeMs } = fence.lease;
    const fields = { task: key, deadlineBoottimeMs, boottimeMs: this.#parts.boottimeMs() };
    const reason = error === null ? {} : { error: messageOf(error) };
    this.#parts.log[level]({ ...fields, ...reason }, message);
  }
}

function existing(paths: readonly string[]): string[] {
  return paths.filter((path) => existsSync(path));
}
