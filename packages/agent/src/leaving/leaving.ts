/**
 * The machine will be switched off: the agent reports to the coordinator how much time there is, so that the coordinator has
 * the tasks saved and stopped by then, and reschedules them. Until no task is left the agent keeps running, heartbeats
 * included; it stops no task of its own accord.
 */
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';

/** How soon it is seen that the last task is gone. */
const lookIntervalMs = 100;

export interface LeavingParts {
  /** From the notice to the end. */
  readonly graceMs: number;
  /** Tasks that the coordinator has not done with: they run, or their end or output must still be reported. */
  readonly tasks: () => number;
  /** Reports `leavingInMs` to the coordinator. */
  readonly onLeaving: () => Promise<void>;
  readonly monotonicMs: () => number;
  readonly log: Logger;
}

export class Leaving {
  private readonly parts: LeavingParts;
  private deadlineMs: number | null = null;
  private isClosed = false;
  private readonly left = Promise.withResolvers<void>();
  private timer: NodeJS.Timeout | null = null;

  constructor(parts: LeavingParts) {
    this.parts = parts;
  }

  /** null: it stays. */
  leavingInMs(): number | null {
    if (this.deadlineMs === null) return null;
    return Math.max(0, Math.round(this.deadlineMs - this.parts.monotonicMs()));
  }

  /** Resolves when no task is left or the time is over. Asked again, it is the same leaving. */
  leave(): Promise<void> {
    if (this.deadlineMs !== null || this.isClosed) return this.left.promise;
    const { graceMs, tasks, onLeaving, monotonicMs, log } = this.parts;
    this.deadlineMs = monotonicMs() + graceMs;
    log.info({ graceMs, tasks: tasks() }, 'this machine is shutting down; its tasks must leave it');
    onLeaving().catch((error: unknown) =>
      log.warn(
        { error: messageOf(error) },
        'the shutdown could not be reported to the coordinator; the next Hello repeats it',
      ),
    );
    this.look();
    return this.left.promise;
  }

  /** The agent ends anyway. */
  close(): void {
    this.isClosed = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.left.resolve();
  }

  private look(): void {
    const { tasks, log } = this.parts;
    const remaining = tasks();
    const isOver = this.leavingInMs() === 0;
    if (remaining > 0 && !isOver) {
      this.timer = setTimeout(() => this.look(), lookIntervalMs);
      return;
    }
    if (remaining > 0) log.warn({ tasks: remaining }, 'the deadline has passed, and tasks still run here');
    this.left.resolve();
  }
}
