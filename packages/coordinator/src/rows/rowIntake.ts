/** Whether rows of metrics are taken now. What is not taken waits on its node, task by task. */
import { MusterError } from '@muster/common/errors';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { DiskReserve } from '../diskReserve.ts';
import { Allowance, type Rate } from '../work/allowance.ts';
import type { RowBudget } from './rowBudget.ts';

/** Rows of one task: no training has more steps in a second, and what waited while somebody was away may come at once. */
const taskRate: Rate = { perSecond: 2_000, atOnce: 100_000 };
const tasksMax = 4_096;
const waitForRateMs = 1_000;
const waitForSpaceMs = 5_000;
/** More than a row takes on disk. */
const rowBytesMax = 128;

export interface RowIntakeParts {
  readonly reserve: Pick<DiskReserve, 'requireSpace' | 'noteWritten'>;
  readonly budget: Pick<RowBudget, 'isUsedUp'>;
  readonly monotonicMs: () => number;
}

export class RowIntake {
  private readonly parts: RowIntakeParts;
  private readonly allowances = new Map<TaskKey, Allowance>();

  constructor(parts: RowIntakeParts) {
    this.parts = parts;
  }

  /** @param rows how many; what is taken counts as written @returns milliseconds to wait; 0: take them */
  admit(task: TaskRef, rows: number): number {
    if (rows === 0) return 0;
    const { reserve, budget, monotonicMs } = this.parts;
    const nowMs = monotonicMs();
    if (budget.isUsedUp) return waitForSpaceMs;
    try {
      reserve.requireSpace(nowMs, rows * rowBytesMax);
    } catch (error) {
      if (error instanceof MusterError) return waitForSpaceMs;
      throw error;
    }
    const key = taskKey(task);
    const allowance = this.allowances.get(key) ?? new Allowance(taskRate, nowMs);
    this.allowances.delete(key);
    this.allowances.set(key, allowance);
    for (const oldest of this.allowances.keys()) {
      if (this.allowances.size <= tasksMax) break;
      this.allowances.delete(oldest);
    }
    if (!allowance.take(nowMs, rows)) return waitForRateMs;
    reserve.noteWritten(rows * rowBytesMax);
    return 0;
  }
}
