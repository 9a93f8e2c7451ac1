/**
 * One task under a lease: it freezes the task when its lease has expired, and thaws it with a new lease. A freeze never waits
 * for a call that is in progress. A call to arm the second fence does, and only the newest deadline is then passed.
 */

import { messageOf } from '@muster/common/errors';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { Driver, TaskFence } from '../drivers/driver.ts';
import { type HeldLease, isLive } from '../fence/heldLease.ts';
import type { Lease, TaskLocation } from '../taskFacts/execution.ts';

/** What a fence needs of a task that runs, or is about to. */
export interface FencedTask {
  readonly driver: Pick<Driver, 'stop'> & TaskFence;
  readonly location: TaskLocation;
  readonly onExpiry: Lease['onExpiry'];
}

export interface LeasedTaskParts {
  readonly bootId: string;
  /** CLOCK_BOOTTIME. */
  readonly boottimeMs: () => number;
  readonly log: Logger;
  /** Called when the task was frozen or thawed, or has got a lease. `look` is due again. */
  readonly onChange: () => void;
}

/** The pause before a freeze or a thaw that has failed is repeated. */
const tryAgainMs = 1_000;
/** The guard may have fenced a task shortly before it got a lease that this agent got in time. */
const closeCallMs = 1_000;

export class LeasedTask {
  readonly fenced: FencedTask;
  private readonly parts: LeasedTaskParts;
  private readonly task: TaskRef;
  private lease: HeldLease;
  private state: 'open' | 'frozen' | 'killed' | 'gone';
  /** The lease has expired, and the job asks for a kill. No lease cancels that. */
  private mustKill = false;
  /** The driver was asked to start the task, with the lease of that time. */
  private starting: boolean;
  private fencing = false;
  private thawing = false;
  private renewing = false;
  /** The deadlines that the second fence has, and was last asked to take; undefined: unknown. */
  private armedMs: number | null | undefined;
  private offeredMs: number | null | undefined;

  private constructor(parts: LeasedTaskParts, task: TaskRef, fenced: FencedTask, lease: HeldLease) {
    this.parts = parts;
    this.task = task;
    this.fenced = fenced;
    this.lease = lease;
    this.state = 'open';
    this.starting = false;
  }

  /** The fence of a task whose driver is about to start it, with this lease. */
  static ofStart(parts: LeasedTaskParts, task: TaskRef, fenced: FencedTask, lease: HeldLease): LeasedTask {
    const fence = new LeasedTask(parts, task, fenced, lease);
    fence.starting = true;
    fence.armedMs = lease.deadlineMs;
    fence.offeredMs = lease.deadlineMs;
    return fence;
  }

  /** The fence of a task that was found running. */
  static ofFound(
    parts: LeasedTaskParts,
    task: TaskRef,
    fenced: FencedTask,
    lease: HeldLease,
    isFrozen: boolean,
  ): LeasedTask {
    const fence = new LeasedTask(parts, task, fenced, lease);
    if (isFrozen) fence.state = 'frozen';
    return fence;
  }

  get isFrozen(): boolean {
    return this.state === 'frozen';
  }

  /** Whether this fence has killed the task, or is killing it. */
  get isKilled(): boolean {
    return this.fencing || this.state === 'killed';
  }

  /** The deadline of the task. null: it is never fenced. */
  leaseInFull(): Lease | null {
    const { deadlineMs } = this.lease;
    if (deadlineMs === null) return null;
    return { deadlineBoottimeMs: deadlineMs, bootId: this.parts.bootId, onExpiry: this.fenced.onExpiry };
  }

  /** Called when the task runs. A lease that came during its start is passed to the second fence now. */
  onRunning(): void {
    this.starting = false;
    this.renew(this.lease);
  }

  /** Passes a lease to the second fence. */
  renew(lease: HeldLease): void {
    this.lease = lease;
    const { deadlineMs } = lease;
    if (this.renewing || this.starting || this.armedMs === deadlineMs) return;
    const beforeMs = this.armedMs;
    this.renewing = true;
    this.offeredMs = deadlineMs;
    const { driver, location } = this.fenced;
    driver
      .renew(location, this.leaseInFull())
      .then(() => {
        this.armedMs = deadlineMs;
        if (this.state === 'open' && this.isLive() && this.mayBeFrozenBy(beforeMs)) this.thaw();
      })
      .catch((error: unknown) => {
        this.parts.log.warn(this.about({ error }), 'the second fence of a task does not have its lease');
      })
      .finally(() => {
        this.renewing = false;
        if (this.offeredMs !== this.lease.deadlineMs) this.renew(this.lease);
        this.parts.onChange();
      });
  }

  /**
   * Freezes the task if its lease has expired, and thaws it if it may run.
   * @param now CLOCK_BOOTTIME. A task that is never fenced does not ask for it.
   * @returns CLOCK_BOOTTIME at which to call it again; infinity: after the next change
   */
  look(now: () => number): number {
    const { deadlineMs } = this.lease;
    if (this.state === 'killed' || this.state === 'gone') return Number.POSITIVE_INFINITY;
    if (this.state === 'open' && deadlineMs === null && !this.mustKill) return Number.POSITIVE_INFINITY;
    const nowMs = now();
    if (isLive(this.lease, nowMs) && !this.mustKill) {
      const deadline = deadlineMs ?? Number.POSITIVE_INFINITY;
      if (this.state === 'open') return deadline;
      // The thaw waits until the second fence has the lease, or has refused it. In the latter case only the first fence holds.
      if (!this.renewing && this.offeredMs === deadlineMs) this.thaw();
      else this.renew(this.lease);
      return Math.min(deadline, nowMs + tryAgainMs);
    }
    if (this.state === 'frozen' && this.fenced.onExpiry === 'freeze') return Number.POSITIVE_INFINITY;
    this.fence(nowMs);
    return nowMs + tryAgainMs;
  }

  private fence(nowMs: number): void {
    if (this.fencing) return;
    this.fencing = true;
    if (this.fenced.onExpiry === 'kill') this.mustKill = true;
    const { deadlineMs } = this.lease;
    const overdueMs = deadlineMs !== null && Number.isFinite(deadlineMs) ? nowMs - deadlineMs : null;
    this.freezeOrKill()
      .then((isDone) => {
        if (!isDone) return;
        this.parts.log.warn(this.about({ overdueMs, now: this.state }), 'the lease of a task has run out');
      })
      .catch((error: unknown) => {
        this.parts.log.error(this.about({ error }), 'a task whose lease has run out could not be fenced');
      })
      .finally(() => {
        this.fencing = false;
        // A call that has failed is repeated after a pause.
        if (this.state !== 'open' && !(this.mustKill && this.state === 'frozen')) this.parts.onChange();
      });
  }

  /** @returns false: the task does not exist yet */
  private async freezeOrKill(): Promise<boolean> {
    const { driver, location, onExpiry } = this.fenced;
    // A task that will be killed is frozen first: a freeze takes effect at once, even if the engine or the guard hangs.
    const outcome = await driver.freeze(location);
    // An engine that has not answered may still start the task, at any time.
    if (outcome === 'ended' && this.starting) return false;
    this.state = outcome === 'ended' ? 'gone' : outcome;
    if (outcome !== 'frozen' || onExpiry !== 'kill') return true;
    await driver.stop(location, { signal: 'SIGKILL', graceMs: 0 });
    this.state = 'killed';
    return true;
  }

  private thaw(): void {
    if (this.thawing || this.fencing) return;
    this.thawing = true;
    const { driver, location } = this.fenced;
    driver
      .thaw(location)
      .then(() => {
        if (this.state !== 'frozen') return;
        this.parts.log.info(this.about({}), 'a task resumes with a new lease');
        // Also when the lease has expired again meanwhile: the next look freezes the task.
        this.state = 'open';
      })
      .catch((error: unknown) => {
        // Also a task that only the guard may have frozen. The thaw is repeated after a pause, and with every lease.
        if (this.state === 'open') this.state = 'frozen';
        this.parts.log.error(this.about({ error }), 'a task that may run again could not be thawed');
      })
      .finally(() => {
        this.thawing = false;
        if (this.state === 'open') this.parts.onChange();
      });
  }

  private isLive(): boolean {
    return isLive(this.lease, this.parts.boottimeMs());
  }

  /** @param deadlineMs the deadline of the task until now */
  private mayBeFrozenBy(deadlineMs: number | null | undefined): boolean {
    if (deadlineMs === undefined) return true;
    return deadlineMs !== null && this.parts.boottimeMs() + closeCallMs >= deadlineMs;
  }

  private about({
    error,
    ...fields
  }: {
    readonly error?: unknown;
    readonly [name: string]: unknown;
  }): object {
    return {
      task: taskKey(this.task),
      ...fields,
      ...(error === undefined ? {} : { error: messageOf(error) }),
    };
  }
}
