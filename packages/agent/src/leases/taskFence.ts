/**
 * What a task's lease makes of it: frozen when it has run out, thawed by a fresh one. A fence never waits for a call that
 * is under way; calls to arm the second fence do, and of the deadlines that come meanwhile the newest wins.
 */
import { messageOf } from '@muster/common/errors';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { Driver, Lease, TaskLocation } from '../drivers/driver.ts';
import { type HeldLease, isLive } from './lease.ts';

/** A task that runs, or is about to. */
export interface FencedTask {
  readonly driver: Pick<Driver, 'renew' | 'freeze' | 'thaw' | 'stop'>;
  readonly location: TaskLocation;
  readonly onExpiry: Lease['onExpiry'];
}

export interface TaskFenceParts {
  readonly bootId: string;
  /** CLOCK_BOOTTIME. */
  readonly boottimeMs: () => number;
  readonly log: Logger;
  /** It was frozen or thawed, or has got a lease: to be looked at again. */
  readonly onChange: () => void;
}

/** Of a fence or a thaw that has failed. */
const tryAgainMs = 1_000;
/** The guard may have fenced a task shortly before it got the lease that this agent had in time. */
const closeCallMs = 1_000;

export class TaskFence {
  readonly fenced: FencedTask;
  private readonly parts: TaskFenceParts;
  private readonly task: TaskRef;
  private lease: HeldLease;
  private state: 'open' | 'frozen' | 'killed' | 'gone';
  /** Its time is up and it is to be killed for that: no lease brings it back. */
  private doomed = false;
  /** Its driver has been asked to start it, with the lease of then. */
  private starting: boolean;
  private fencing = false;
  private thawing = false;
  private renewing = false;
  /** Deadlines that the second fence has, and was last asked to take; undefined: nobody knows. */
  private armedMs: number | null | undefined;
  private offeredMs: number | null | undefined;

  private constructor(parts: TaskFenceParts, task: TaskRef, fenced: FencedTask, lease: HeldLease) {
    this.parts = parts;
    this.task = task;
    this.fenced = fenced;
    this.lease = lease;
    this.state = 'open';
    this.starting = false;
  }

  /** Of a task that its driver is about to be asked to start, with this lease. */
  static ofStart(parts: TaskFenceParts, task: TaskRef, fenced: FencedTask, lease: HeldLease): TaskFence {
    const fence = new TaskFence(parts, task, fenced, lease);
    fence.starting = true;
    fence.armedMs = lease.deadlineMs;
    fence.offeredMs = lease.deadlineMs;
    return fence;
  }

  /** Of a task that was found running. */
  static ofFound(
    parts: TaskFenceParts,
    task: TaskRef,
    fenced: FencedTask,
    lease: HeldLease,
    isFrozen: boolean,
  ): TaskFence {
    const fence = new TaskFence(parts, task, fenced, lease);
    if (isFrozen) fence.state = 'frozen';
    return fence;
  }

  get isFrozen(): boolean {
    return this.state === 'frozen';
  }

  /** The task was killed by this fence, or is being. */
  get isKilled(): boolean {
    return this.fencing || this.state === 'killed';
  }

  /** null: never fenced. */
  leaseInFull(): Lease | null {
    const { deadlineMs } = this.lease;
    if (deadlineMs === null) return null;
    return { deadlineBoottimeMs: deadlineMs, bootId: this.parts.bootId, onExpiry: this.fenced.onExpiry };
  }

  /** It runs now. While it started there was nothing to give a later lease to. */
  runs(): void {
    this.starting = false;
    this.renew(this.lease);
  }

  /** Passes a lease on to the second fence. */
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
   * Fences what has run out, thaws what may run.
   * @returns CLOCK_BOOTTIME at which to look again; infinity: when something has changed
   */
  look(nowMs: number): number {
    const { deadlineMs } = this.lease;
    if (this.state === 'killed' || this.state === 'gone') return Number.POSITIVE_INFINITY;
    if (isLive(this.lease, nowMs) && !this.doomed) {
      const deadline = deadlineMs ?? Number.POSITIVE_INFINITY;
      if (this.state === 'open') return deadline;
      // Thawed when the second fence has the lease, or has failed to take it: then the first one holds alone.
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
    if (this.fenced.onExpiry === 'kill') this.doomed = true;
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
        // What has failed is tried again when its time comes, not at once.
        if (this.state !== 'open' && !(this.doomed && this.state === 'frozen')) this.parts.onChange();
      });
  }

  /** @returns false: there is nothing to fence yet */
  private async freezeOrKill(): Promise<boolean> {
    const { driver, location, onExpiry } = this.fenced;
    // Frozen first though it is to be killed: that is done at once, whatever becomes of the engine or the guard.
    const outcome = await driver.freeze(location);
    // An engine that gave no answer may start it yet, at any time.
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
        // Even when its time has run out again meanwhile: then it is to be frozen once more.
        this.state = 'open';
      })
      .catch((error: unknown) => {
        // Also one that only the guard may have frozen: tried again in a while, and with every lease.
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

  /** @param deadlineMs that it had until now */
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
