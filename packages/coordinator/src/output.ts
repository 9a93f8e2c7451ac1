/**
 * What the coordinator keeps on disk beside its store: the output of tasks, their rows of metrics, and status pages; and
 * what removes all of it with the jobs that it belongs to.
 */
import { join } from 'node:path';
import type { JobId } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { TrustedClock } from './clock/trustedClock.ts';
import type { DiskReserve } from './diskReserve.ts';
import type { LogIntake } from './logs/logIntake.ts';
import { type LogEvents, LogKeeping, type LogLimits } from './logs/logKeeping.ts';
import { LogStore } from './logs/logStore.ts';
import type { Loop } from './loop.ts';
import type { Keep } from './options.ts';
import { Retention } from './reconcilers/retention.ts';
import { RowKeeping } from './rows/rowKeeping.ts';
import type { Committed } from './state/committed.ts';
import type { ClusterState } from './state/state.ts';
import type { JobRecord, Store, StoreError } from './store/store.ts';
import { StatusFiles } from './training/statusFiles.ts';
import type { DiskBudget } from './upkeep/diskUse.ts';
import type { ContainedWork } from './work/contained.ts';

/** What the output follows. */
export interface OutputSources {
  readonly state: ClusterState;
  readonly store: Store;
  readonly loop: Loop;
  readonly statusOf: (record: JobRecord) => string;
  readonly clock: TrustedClock;
}

/** What calls use of it. */
export interface OutputParts {
  readonly logs: LogStore;
  readonly logEvents: LogEvents;
  readonly intake: LogIntake;
  readonly rowKeeping: Pick<RowKeeping, 'rows' | 'budget' | 'intake' | 'onComplete' | 'ended'>;
  /** What is kept on disk up to a limit. */
  readonly budgets: () => readonly DiskBudget[];
}

export interface OutputFiles {
  readonly parts: OutputParts;
  /** Periodic work, by name. */
  readonly reconcilers: Readonly<Record<string, ContainedWork>>;
  committed(change: Committed): void;
  close(): Promise<void>;
}

export type OpenOutput = (sources: OutputSources) => OutputFiles;

export interface OutputSettings {
  /** Absolute. */
  readonly dataDir: string;
  readonly logLimits: LogLimits;
  /** Of all rows, bytes. */
  readonly rowBudgetBytes: number;
  readonly keep: Keep;
  /** Events up to this one are published, and may be removed. */
  readonly publishedSeq: () => Promise<number>;
  readonly reserve: DiskReserve;
  readonly log: Logger;
  readonly onFatal: (error: StoreError) => void;
}

/** Output on the disk of this machine. */
export function outputIn(settings: OutputSettings): OpenOutput {
  const { dataDir, logLimits: limits, reserve, log } = settings;
  return ({ state, store, loop, statusOf, clock }) => {
    const { wallMs, monotonicMs, isCertain, countedMs } = clock;
    const logs: LogStore = new LogStore(join(dataDir, 'logs'), {
      capBytes: limits.capBytes,
      onTruncated: (task, reason) => logKeeping.logEvents.truncated(task, reason),
    });
    const logKeeping = new LogKeeping({ logs, limits, state, loop, reserve, monotonicMs, log });
    const rowKeeping = new RowKeeping({
      dataDir,
      budgetBytes: settings.rowBudgetBytes,
      state,
      reserve,
      monotonicMs,
      log,
    });
    const statusFiles = new StatusFiles({
      state,
      store,
      statusOf,
      directoryOf: (jobId: JobId) => logs.directoryOf(jobId),
      monotonicMs,
      log,
    });
    const { keep, publishedSeq, onFatal } = settings;
    const retention = new Retention({
      wallMs,
      monotonicMs,
      isCertain,
      countedMs,
      loop,
      state,
      store,
      logs,
      rows: rowKeeping.rows,
      log,
      keep,
      publishedSeq,
      onFatal,
    });
    return {
      parts: {
        logs,
        logEvents: logKeeping.logEvents,
        intake: logKeeping.intake,
        rowKeeping,
        budgets: () => [
          { part: 'events', usedBytes: retention.eventBytes, limitBytes: keep.eventsBytes },
          { part: 'logs', usedBytes: logKeeping.usedBytes, limitBytes: limits.budgetBytes },
          { part: 'rows', usedBytes: rowKeeping.budget.usedBytes, limitBytes: settings.rowBudgetBytes },
        ],
      },
      reconcilers: {
        retention: () => retention.run(),
        statusFiles: () => statusFiles.run(),
        logKeeping: () => logKeeping.run(),
        rowBudget: () => rowKeeping.budget.run(),
      },
      committed: (change) => statusFiles.committed(change),
      async close() {
        await statusFiles.close();
        await rowKeeping.rows.close();
        await logs.close();
      },
    };
  };
}
