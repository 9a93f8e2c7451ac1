/** The parts around the store of rows, wired. */
import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { MusterError, messageOf } from '@muster/common/errors';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { DiskReserve } from '../diskReserve.ts';
import type { CoordinatorOptions } from '../options.ts';
import type { ClusterState } from '../state/state.ts';
import { Allowance, type Rate } from '../work/allowance.ts';
import { RowBudget } from './rowBudget.ts';
import type { EndMark } from './rowFormat.ts';
import { RowStore } from './rowStore.ts';

export interface RowKeepingParts {
  readonly dataDir: string;
  /** Of all rows, bytes. */
  readonly budgetBytes: number;
  readonly state: Pick<ClusterState, 'jobs'>;
  readonly reserve: DiskReserve;
  readonly monotonicMs: () => number;
  readonly log: Logger;
}

/** What was not chosen follows from the disk. */
export function rowBudgetBytes(options: Pick<CoordinatorOptions, 'dataDir' | 'metricsBudgetBytes'>): number {
  const { blocks, bsize } = statfsSync(options.dataDir);
  return options.metricsBudgetBytes ?? Math.min(5 * 1024 ** 3, (blocks * bsize) / 50);
}

export class RowKeeping {
  readonly rows: RowStore;
  readonly budget: RowBudget;
  readonly intake: RowIntake;
  /** Called when the last rows of a task are here. */
  onComplete: (task: TaskRef) => void = () => {};

  constructor({ dataDir, budgetBytes, state, reserve, monotonicMs, log }: RowKeepingParts) {
    this.rows = new RowStore(join(dataDir, 'rows'), (jobId, error) =>
      log.warn({ jobId, error: messageOf(error) }, 'the metrics of a job could not be thinned'),
    );
    this.budget = new RowBudget({
      rows: this.rows,
      bytesMax: budgetBytes,
      monotonicMs,
      log,
      isLive: (jobId) => state.jobs.has(jobId),
    });
    this.intake = new RowIntake({ reserve, budget: this.budget, monotonicMs });
  }

  /**
   * The agent has sent the last rows of a task. What is here of them is on the disk when this resolves.
   * @param mark to be stored behind them. null: the report of the end of the task says where they end, and they are here up to there
   */
  async ended(task: TaskRef, mark: EndMark | null): Promise<void> {
    if (mark === null) await this.rows.sync(task.jobId);
    else await this.rows.markEnd(task, mark);
    this.onComplete(task);
  }
}

/** Rows of one task: no training has more steps in a second, and what waited while somebody was away may come at once. */
const taskRate: Rate = { perSecond: 2_000, atOnce: 100_000 };
const tasksMax = 4_096;

/** Rows that are not taken at present. */
export interface NotNow {
  readonly waitMs: number;
  /** They come faster than the task may send: waiting alone would let it fall further behind. */
  readonly isTooFast: boolean;
}

const tooFast: NotNow = { waitMs: 1_000, isTooFast: true };
const noSpace: NotNow = { waitMs: 5_000, isTooFast: false };
/** More than a row takes on disk. */
const rowBytesMax = 128;

interface RowIntakeParts {
  readonly reserve: Pick<DiskReserve, 'requireSpace' | 'noteWritten'>;
  readonly budget: Pick<RowBudget, 'isUsedUp'>;
  readonly monotonicMs: () => number;
}

class RowIntake {
  private readonly parts: RowIntakeParts;
  private readonly allowances = new Map<TaskKey, Allowance>();

  constructor(parts: RowIntakeParts) {
    this.parts = parts;
  }

  /** @param rows how many; what is taken counts as written @returns null: take them */
  admit(task: TaskRef, rows: number): NotNow | null {
    if (rows === 0) return null;
    const { reserve, budget, monotonicMs } = this.parts;
    const nowMs = monotonicMs();
    if (budget.isUsedUp) return noSpace;
    try {
      reserve.requireSpace(nowMs, rows * rowBytesMax);
    } catch (error) {
      if (error instanceof MusterError) return noSpace;
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
    if (!allowance.take(nowMs, rows)) return tooFast;
    reserve.noteWritten(rows * rowBytesMax);
    return null;
  }
}
