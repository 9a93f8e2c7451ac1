/** The parts around the store of logs, wired: what is taken, what is removed, and the events about both. */
import { statfsSync } from 'node:fs';
import { messageOf } from '@muster/common/errors';
import { clusterSubject, type EventData, type EventKind, type NewEvent } from '@muster/common/eventKinds';
import type { JobId, TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { type Caller, coordinatorPart } from '../caller.ts';
import type { DiskReserve } from '../diskReserve.ts';
import type { Loop } from '../loop.ts';
import type { CoordinatorOptions } from '../options.ts';
import type { ClusterState } from '../state/state.ts';
import { LogBudget } from './logBudget.ts';
import { LogIntake } from './logIntake.ts';
import type { LogStore } from './logStore.ts';
import type { LossReason } from './segments.ts';

export interface LogLimits {
  /** Bytes of all logs. */
  readonly budgetBytes: number;
  /** Bytes of one task's. */
  readonly capBytes: number;
  /** Bytes a second that are taken of one task in the long run. */
  readonly rateBytes: number;
}

const gibibyte = 1024 ** 3;

/** What was not chosen follows from the disk: a fifth of it for all logs, and a quarter of that for one task. */
export function logLimits(
  options: Pick<CoordinatorOptions, 'dataDir' | 'logBudgetBytes' | 'logCapBytes' | 'logRateBytes'>,
): LogLimits {
  const { blocks, bsize } = statfsSync(options.dataDir);
  const budgetBytes = options.logBudgetBytes ?? Math.min(50 * gibibyte, (blocks * bsize) / 5);
  const capBytes = options.logCapBytes ?? Math.min(gibibyte, budgetBytes / 4);
  return { budgetBytes, capBytes, rateBytes: options.logRateBytes };
}

interface LogKeepingParts {
  readonly logs: LogStore;
  readonly limits: LogLimits;
  readonly state: Pick<ClusterState, 'jobs'>;
  readonly loop: Pick<Loop, 'run'>;
  readonly reserve: DiskReserve;
  readonly monotonicMs: () => number;
  readonly log: Logger;
}

export class LogKeeping {
  readonly logEvents: LogEvents;
  readonly intake: LogIntake;
  private readonly budget: LogBudget;
  private readonly parts: LogKeepingParts;

  constructor(parts: LogKeepingParts) {
    const { logs, limits, state, loop, log } = parts;
    this.parts = parts;
    this.logEvents = new LogEvents(loop, log);
    this.budget = new LogBudget({
      logs,
      log,
      bytesMax: limits.budgetBytes,
      liveAttempt: (jobId) => state.jobs.get(jobId)?.lastAttempt ?? null,
      onRemoved: (jobId, bytes) => this.logEvents.removed(coordinatorPart('logs'), jobId, bytes, 'budget'),
    });
    this.intake = new LogIntake({ ...parts, budget: this.budget, rateBytes: limits.rateBytes });
  }

  /** Bytes of all logs. */
  get usedBytes(): number {
    return this.budget.usedBytes;
  }

  /** One look: files that somebody removed, and what is more than the budget. May be called at any time; never rejects. */
  async run(): Promise<void> {
    const { logs, log } = this.parts;
    await logs
      .dropRemoved()
      .catch((error: unknown) => log.warn({ error: messageOf(error) }, 'a removed log could not be closed'));
    await this.budget.run();
  }
}

type OutputEventKind = Extract<EventKind, `log.${string}`>;

export class LogEvents {
  private readonly loop: Pick<Loop, 'run'>;
  private readonly log: Logger;

  constructor(loop: Pick<Loop, 'run'>, log: Logger) {
    this.loop = loop;
    this.log = log;
  }

  /** A part of a task's output was dropped, for the first time. */
  truncated({ jobId, attempt, nodeRank }: TaskRef, reason: LossReason): void {
    this.emit(coordinatorPart('logs'), jobId, 'log.truncated', { attempt, nodeRank, reason });
  }

  /** A task is held back on its node for writing too fast, for the first time. */
  throttled({ jobId, attempt, nodeRank }: TaskRef): void {
    this.emit(coordinatorPart('logs'), jobId, 'log.throttled', { attempt, nodeRank });
  }

  /** What was kept of a job's output is gone. */
  removed(by: Caller, jobId: JobId, bytes: number, reason: LossReason): void {
    this.emit(by, jobId, 'log.removed', { bytes, reason });
  }

  private emit<K extends OutputEventKind>(
    by: Caller,
    jobId: JobId,
    kind: K,
    data: Omit<EventData<K>, 'job'>,
  ): void {
    this.loop
      .run(by, (draft, nowMs) => {
        // The events of a job that has ended are numbered to their end: this is one about the cluster.
        const subject = draft.job(jobId) === undefined ? clusterSubject : jobId;
        draft.emit({ kind, subject, data: { job: jobId, ...data } } as unknown as NewEvent, nowMs);
      })
      .catch((error: unknown) =>
        this.log.warn({ kind, error: messageOf(error) }, 'an event could not be stored'),
      );
  }
}
