/**
 * Decides whether a piece of output is taken now. Other output waits on its node, task by task: a task that writes too much
 * never makes another one wait.
 */
import { MusterError } from '@muster/common/errors';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { DiskReserve } from '../diskReserve.ts';
import { Allowance } from '../work/allowance.ts';
import type { LogBudget } from './logBudget.ts';

export interface LogIntakeParts {
  readonly reserve: DiskReserve;
  readonly budget: Pick<LogBudget, 'holds'>;
  /** Bytes a second that are taken of one task in the long run. */
  readonly rateBytes: number;
  readonly monotonicMs: () => number;
  readonly log: Logger;
}

export type Admission =
  | { readonly kind: 'take' }
  | { readonly kind: 'wait'; readonly ms: number; readonly reason: string };

/** The output that is taken at once, as seconds of the rate: that of a short task, or of the time that an agent was disconnected. */
const burstSeconds = 8;
const waitForSpaceMs = 1_000;
const allowancesMax = 4_096;

export class LogIntake {
  private readonly parts: LogIntakeParts;
  /** Least recently used first. */
  private readonly allowances = new Map<TaskKey, Allowance>();
  /** The newest warning; it is logged once. */
  private lastWarning: string | null = null;

  constructor(parts: LogIntakeParts) {
    this.parts = parts;
  }

  /** @param bytes of the piece; what is taken counts as written */
  admit(task: TaskRef, bytes: number): Admission {
    const { reserve, budget, monotonicMs } = this.parts;
    // The end of an output alone takes no space.
    if (bytes === 0) return { kind: 'take' };
    const nowMs = monotonicMs();
    try {
      reserve.requireSpace(nowMs, bytes);
    } catch (error) {
      if (!(error instanceof MusterError)) throw error;
      return this.waitForSpace(error.message, 'output is not accepted because space is missing');
    }
    if (budget.holds(task)) {
      const reason = 'the logs of running jobs have used up the budget of logs';
      return this.waitForSpace(
        reason,
        'output of the largest tasks is not accepted: the budget of logs is used up',
      );
    }
    this.lastWarning = null;
    const ms = this.rateWaitMs(task, bytes, nowMs);
    if (ms > 0) return { kind: 'wait', ms, reason: 'it arrives faster than the limit for one task' };
    reserve.noteWritten(bytes);
    return { kind: 'take' };
  }

  private waitForSpace(reason: string, message: string): Admission {
    if (this.lastWarning !== message) this.parts.log.warn({ reason }, message);
    this.lastWarning = message;
    return { kind: 'wait', ms: waitForSpaceMs, reason };
  }

  /** 0: now. A piece is taken whole as soon as anything may be. */
  private rateWaitMs(task: TaskRef, bytes: number, nowMs: number): number {
    const { rateBytes } = this.parts;
    if (rateBytes === Number.POSITIVE_INFINITY) return 0;
    const key = taskKey(task);
    const rate = { perSecond: rateBytes, atOnce: rateBytes * burstSeconds };
    const allowance = this.allowances.get(key) ?? new Allowance(rate, nowMs);
    this.allowances.delete(key);
    this.allowances.set(key, allowance);
    const [oldest] = this.allowances.keys();
    if (oldest !== undefined && this.allowances.size > allowancesMax) this.allowances.delete(oldest);
    return allowance.take(nowMs, bytes) ? 0 : allowance.waitMs;
  }
}
