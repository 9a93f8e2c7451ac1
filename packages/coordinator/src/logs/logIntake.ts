/**
 * Whether a piece of output is taken now. What is not taken waits on its node, task by task: a task that writes too much
 * never makes another one wait.
 */
import { MusterError } from '@muster/common/errors';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { DiskReserve } from '../diskReserve.ts';
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

/** How much may come at once, as seconds of the rate: a short task, or what waited while somebody was away. */
const burstSeconds = 8;
const waitForSpaceMs = 1_000;
const bucketsMax = 4_096;

interface Bucket {
  bytes: number;
  atMs: number;
}

export class LogIntake {
  private readonly parts: LogIntakeParts;
  private readonly buckets = new Map<TaskKey, Bucket>();
  /** What is in the way and has been said. */
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
    const full = rateBytes * burstSeconds;
    const before = this.buckets.get(key) ?? { bytes: full, atMs: nowMs };
    const bucket = {
      bytes: Math.min(full, before.bytes + ((nowMs - before.atMs) / 1_000) * rateBytes),
      atMs: nowMs,
    };
    const isTaken = bucket.bytes > 0;
    if (isTaken) bucket.bytes -= bytes;
    this.buckets.delete(key);
    this.buckets.set(key, bucket);
    for (const oldest of this.buckets.keys()) {
      if (this.buckets.size <= bucketsMax) break;
      this.buckets.delete(oldest);
    }
    return isTaken ? 0 : Math.max(1, Math.ceil((-bucket.bytes / rateBytes) * 1_000));
  }
}
