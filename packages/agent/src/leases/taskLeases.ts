/**
 * The leases of the tasks of this node, and the first of their two fences (G2 of docs/guarantees.md). At the deadline of a
 * task, this agent freezes the task through its driver, which needs only the kernel for that. The second fence is the
 * guard's, and every lease is passed to it. One timer waits for the earliest deadline of all tasks.
 */

import { messageOf } from '@muster/common/errors';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { type HeldLease, isLive, noLease, renewed } from '../fence/heldLease.ts';
import { readLease, writeLease } from '../fence/leaseFile.ts';
import type { Lease, TaskExit } from '../taskFacts/execution.ts';
import { type FencedTask, LeasedTask } from './leasedTask.ts';

export interface TaskLeasesParts {
  readonly bootId: string;
  /** CLOCK_BOOTTIME. */
  readonly boottimeMs: () => number;
  readonly log: Logger;
  /** Called when a task may start, was frozen, or was thawed; also at other times. */
  readonly onChange: (task: TaskRef) => void;
}

/** The longest wait for a deadline. Timers do not count time in which a machine sleeps, and deadlines do. */
const timerMsMax = 1_000;

interface Entry {
  lease: HeldLease;
  /** null: the task does not run. */
  fence: LeasedTask | null;
}

export class TaskLeases {
  private readonly parts: TaskLeasesParts;
  private readonly entries = new Map<TaskKey, Entry>();
  private timer: NodeJS.Timeout | null = null;
  private closed = false;

  constructor(parts: TaskLeasesParts) {
    this.parts = parts;
  }

  /**
   * Applies an answer of the coordinator about a task.
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
    const lease = this.entries.get(taskKey(task))?.lease;
    if (lease === undefined) return false;
    // A reading of the clock costs a call of the system, and a task that is never fenced needs none.
    return lease.deadlineMs === null || isLive(lease, this.parts.boottimeMs());
  }

  /** Writes the lease of a task that is about to start, so that the next agent knows until when the task may run. */
  onStarting(task: TaskRef, fenced: FencedTask): void {
    const entry = this.entry(task);
    this.write(task, fenced, entry.lease);
    const fence = LeasedTask.ofStart(this.fenceParts(task), task, fenced, entry.lease);
    entry.fence = fence;
    this.look();
  }

  /** @returns the lease of a task that is about to start, for the second fence. null: the task is never fenced */
  leaseOf(task: TaskRef): Lease | null {
    return this.entries.get(taskKey(task))?.fence?.leaseInFull() ?? null;
  }

  /** Called when the task runs. */
  onRunning(task: TaskRef): void {
    this.entry(task).fence?.onRunning();
    this.look();
  }

  /** Called when the start of the task was refused or given up, and nothing runs. */
  onNotStarted(task: TaskRef): void {
    this.entry(task).fence = null;
    this.look();
  }

  /** Called for a task that was found running, by a new agent or after a start whose answer was lost. */
  adopt(task: TaskRef, fenced: FencedTask, isFrozen: boolean): void {
    const entry = this.entry(task);
    const isGranted = entry.lease !== noLease;
    if (!isGranted) entry.lease = readLease(fenced.location.directory, this.parts.bootId);
    const fence = LeasedTask.ofFound(this.fenceParts(task), task, fenced, entry.lease, isFrozen);
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
   * What happened to a task because its lease had expired, as a sentence for users. null: nothing, it ended on its own.
   * @param endedMs CLOCK_BOOTTIME
   */
  killedByLease(
    task: TaskRef,
    { location, onExpiry }: FencedTask,
    exit: TaskExit,
    endedMs: number,
  ): string | null {
    if (exit.signal !== 'SIGKILL') return null;
    const entry = this.entries.get(taskKey(task));
    const byThisFence = entry?.fence?.isKilled === true;
    if (onExpiry === 'freeze') {
      return byThisFence ? 'killed because its lease ran out and it did not freeze' : null;
    }
    // The guard may have killed the task without this agent.
    const { deadlineMs } = entry?.lease ?? readLease(location.directory, this.parts.bootId);
    const byEither = byThisFence || (deadlineMs !== null && endedMs >= deadlineMs);
    return byEither ? 'killed because its lease ran out: no contact with the coordinator' : null;
  }

  /** Called when the task has ended, and nothing of it needs a fence. */
  drop(task: TaskRef): void {
    this.entries.delete(taskKey(task));
  }

  /** Stops the first fence. The second one continues. */
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

  /** Fences tasks whose lease has expired, thaws tasks that may run, and sets the timer for the next deadline. */
  private look(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (this.closed) return;
    let readMs: number | null = null;
    const now = () => (readMs ??= this.parts.boottimeMs());
    const times = Array.from(
      this.entries.values(),
      ({ fence }) => fence?.look(now) ?? Number.POSITIVE_INFINITY,
    );
    const nextMs = times.reduce((earliest, time) => Math.min(earliest, time), Number.POSITIVE_INFINITY);
    if (nextMs === Number.POSITIVE_INFINITY) return;
    // The clock has steps of 10 ms. A wait of 0 would repeat without pause until its next step.
    const waitMs = Math.min(Math.max(nextMs - now(), 1), timerMsMax);
    this.timer = setTimeout(() => this.look(), waitMs);
  }

  /** When the write fails, an earlier deadline stays on disk, and a new agent would fence the task too early. */
  private write(task: TaskRef, { location }: FencedTask, { deadlineMs }: HeldLease): void {
    try {
      writeLease(location.directory, this.parts.bootId, deadlineMs);
    } catch (error) {
      // A task that was found running without a record has no directory.
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return;
      const fields = { task: taskKey(task), error: messageOf(error) };
      this.parts.log.error(fields, 'the lease of a task could not be written down');
    }
  }
}
