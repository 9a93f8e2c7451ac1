/** What happens to output beyond being written, as events. */

import { messageOf } from '@muster/common/errors';
import { clusterSubject, type EventData, type EventKind, type NewEvent } from '@muster/common/eventKinds';
import type { JobId, TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { type Caller, coordinatorPart } from '../caller.ts';
import type { Loop } from '../loop.ts';
import type { LossReason } from './segments.ts';

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
