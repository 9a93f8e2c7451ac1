/**
 * The leases of this node's tasks, and the first of their two fences: at a task's deadline this agent freezes it through
 * its driver, which acts on the kernel and asks nobody. The second fence is the guard's; every lease is passed on to it.
 * One timer waits for the earliest deadline of all.
 */
import { messageOf } from '@muster/common/errors';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { Lease, TaskExit } from '../drivers/driver.ts';
import { type HeldLease, isLive, noLease, renewed } from './lease.ts';
import { readLease, writeLease } from './leaseFile.ts';
import { type FencedTask, TaskFence } from './taskFence.ts';

export interface LeaseKeeperParts {
  readonly bootId: string;
  /** CLOCK_BOOTTIME. */
  readonly boottimeMs: () => number;
  readonly log: Logger;
  /** It may start now, or was frozen or thawed. May be said more often than that. */
  readonly onChange: (task: TaskRef) => void;
}

/** Timers do not count the time that a machine sleeps; deadlines do. */
const timerMsMax = 1_000;

interface Entry {
  lease: HeldLease;
  /** null: it does not run. */
  fence: TaskFence | null;
}

export class LeaseKeeper {
  private readonly parts: LeaseKeeperParts;
  private readonly entries = new Map<TaskKey, Entry>();
  private timer: NodeJS.Timeout | null = null;
  private closed = false;

  constructor(parts: LeaseKeeperParts) {
    this.parts = parts;
  }

  /**
   * The coordinator has answered.
   * @param askedMs CLOCK_BOOTTIME at which the question was sent
   * @param leaseMs 0: never fenced
   */
  grant(task: TaskRef, askedMs: number, leaseMs: number): void {
    const entry = this.entry(task);
    const lease = renewed(entry.lease, askedMs, leaseMs);
    if (this.closed || lease === entry.lease) return;
    const wasLive = this.isLive(task);
    entry.lease = lease;
    if (entry.fence !== null) {
      this.write(task, entry.fence.fenced, lease);
      entry.fence.renew(lease);
    }
    this.look();
    if (!wasLive && this.isLive(task)) this.parts.onChange(task);
  }

  isLive(task: TaskRef): boolean {
    const entry = this.entries.get(taskKey(task));
    return entry !== undefined && isLive(entry.lease, this.parts.boottimeMs());
  }

  /**
   * It is about to start. On disk before it does: the next agent has to know until when it may run.
   * @returns what its second fence is to be armed with. null: it is never fenced
   */
  starts(task: TaskRef, fenced: FencedTask): Lease | null {
    const entry = this.entry(task);
    this.write(task, fenced, entry.lease);
    const fence = TaskFence.ofStart(this.fenceParts(task), task, fenced, entry.lease);
    entry.fence = fence;
    this.look();
    return fence.leaseInFull();
  }

  /** It runs now. */
  runs(task: TaskRef): void {
    this.entry(task).fence?.runs();
    this.look();
  }

  /** Its start was refused or given up, and nothing runs. */
  startsNot(task: TaskRef): void {
    this.entry(task).fence = null;
    this.look();
  }

  /** Found running by a new agent, or after a start whose answer was lost. */
  adopt(task: TaskRef, fenced: FencedTask, isFrozen: boolean): void {
    const entry = this.entry(task);
    const isGranted = entry.lease !== noLease;
    if (!isGranted) entry.lease = readLease(fenced.location.directory, this.parts.bootId);
    const fence = TaskFence.ofFound(this.fenceParts(task), task, fenced, entry.lease, isFrozen);
    entry.fence = fence;
    if (isGranted) {
      this.write(task, fenced, entry.lease);
      fence.renew(entry.lease);
    }
    this.look();
  }

  isFrozen(task: TaskRef): boolean {
    return this.entries.get(taskKey(task))?.fence?.isFrozen === true;
  }

  /**
   * What became of a task because its lease had run out, in words for people. null: nothing; it ended by itself.
   * @param endedMs CLOCK_BOOTTIME
   */
  deathBy(task: TaskRef, { location, onExpiry }: FencedTask, exit: TaskExit, endedMs: number): string | null {
    if (exit.signal !== 'SIGKILL') return null;
    const entry = this.entries.get(taskKey(task));
    const byThisFence = entry?.fence?.isKilled === true;
    if (onExpiry === 'freeze') {
      return byThisFence ? 'killed because its lease ran out and it did not freeze' : null;
    }
    // The other fence may have done it without this agent.
    const { deadlineMs } = entry?.lease ?? readLease(location.directory, this.parts.bootId);
    const byEither = byThisFence || (deadlineMs !== null && endedMs >= deadlineMs);
    return byEither ? 'killed because its lease ran out: no contact with the coordinator' : null;
  }

  /** It does not run any more: nothing is left to be fenced. */
  drop(task: TaskRef): void {
    this.entries.delete(taskKey(task));
  }

  /** Stops looking. The second fence holds on. */
  close(): void {
    this.closed = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  private entry(task: TaskRef): Entry {
    const key = taskKey(task);
    let entry = this.entries.get(key);
    if (entry === undefined) {
      entry = { lease: noLease, fence: null };
      this.entries.set(key, entry);
    }
    return entry;
  }

  private fenceParts(task: TaskRef) {
    const onChange = () => {
      this.look();
      if (!this.closed && this.entries.has(taskKey(task))) this.parts.onChange(task);
    };
    return { ...this.parts, onChange };
  }

  /** Fences what has run out, thaws what may run, and sees to it that the next deadline is not missed. */
  private look(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (this.closed) return;
    const nowMs = this.parts.boottimeMs();
    const times = Array.from(
      this.entries.values(),
      ({ fence }) => fence?.look(nowMs) ?? Number.POSITIVE_INFINITY,
    );
    const nextMs = times.reduce((earliest, time) => Math.min(earliest, time), Number.POSITIVE_INFINITY);
    if (nextMs === Number.POSITIVE_INFINITY) return;
    // The clock moves in steps of 10 ms: a wait of nothing would spin until it does.
    const waitMs = Math.min(Math.max(nextMs - nowMs, 1), timerMsMax);
    this.timer = setTimeout(() => this.look(), waitMs);
  }

  /** What cannot be written leaves an earlier deadline on disk, and a new agent fences that much too early. */
  private write(task: TaskRef, { location }: FencedTask, { deadlineMs }: HeldLease): void {
    try {
      writeLease(location.directory, this.parts.bootId, deadlineMs);
    } catch (error) {
      // One that was found running without a record has no directory either.
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return;
      const fields = { task: taskKey(task), error: messageOf(error) };
      this.parts.log.error(fields, 'the lease of a task could not be written down');
    }
  }
}
