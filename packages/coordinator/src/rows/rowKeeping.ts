/** The parts around the store of rows, wired. */
import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import type { DiskReserve } from '../diskReserve.ts';
import type { CoordinatorOptions } from '../options.ts';
import type { ClusterState } from '../state/state.ts';
import { RowBudget } from './rowBudget.ts';
import { RowIntake } from './rowIntake.ts';
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

  constructor({ dataDir, budgetBytes, state, reserve, monotonicMs, log }: RowKeepingParts) {
    this.rows = new RowStore(join(dataDir, 'rows'), (jobId, error) =>
      log.warn({ job: jobId, error: messageOf(error) }, 'the metrics of a job could not be thinned'),
    );
    this.budget = new RowBudget({
      ...{ rows: this.rows, bytesMax: budgetBytes, monotonicMs, log },
      isLive: (jobId) => state.jobs.has(jobId),
    });
    this.intake = new RowIntake({ reserve, budget: this.budget, monotonicMs });
  }
}
