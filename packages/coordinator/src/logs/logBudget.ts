/**
 * Keeps all logs together within a budget. Above it, the logs of ended jobs are removed, the oldest first, then those of earlier
 * attempts of jobs that have not ended. When none are left, tasks with more than an even share of the budget wait until there is
 * room.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '@muster/common/errors';
import { isJobId, type JobId, type TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { LogStore } from './logStore.ts';
import { ifThere, segmentName, segmentsIn } from './segments.ts';

export interface LogBudgetParts {
  readonly logs: Pick<
    LogStore,
    'root' | 'directoryOf' | 'grownBytes' | 'writtenBytes' | 'writtenCount' | 'clear'
  >;
  readonly bytesMax: number;
  /** The newest attempt of a job that has not ended, 0 before the first; null: it has ended. */
  readonly liveAttempt: (jobId: JobId) => number | null;
  readonly onRemoved: (jobId: JobId, bytes: number) => void;
  readonly log: Logger;
}

/** The share that is freed at once, so that the next line does not require it again. */
const roomShare = 0.1;

interface JobLogs {
  readonly jobId: JobId;
  readonly bytes: number;
  /** When it was last written to, epoch milliseconds. */
  readonly writtenAtMs: number;
}

export class LogBudget {
  private readonly parts: LogBudgetParts;
  /** Bytes that were there when the store was opened. null: not counted yet. */
  private atFirst: number | null = null;
  private running = false;
  /** Nothing was left to remove: the next search is made once this many bytes were written. */
  private lookAgainAt = 0;

  constructor(parts: LogBudgetParts) {
    this.parts = parts;
  }

  /** Bytes of all logs. */
  get usedBytes(): number {
    return (this.atFirst ?? 0) + this.parts.logs.grownBytes;
  }

  /** Whether this task must wait for room. */
  holds(task: TaskRef): boolean {
    const { logs, bytesMax } = this.parts;
    return this.usedBytes >= bytesMax && logs.writtenBytes(task) >= bytesMax / Math.max(1, logs.writtenCount);
  }

  /** Counts, and removes what is too much. May be called at any time. Never rejects. */
  async run(): Promise<void> {
    if (this.running) return;
    const isOver = this.usedBytes > this.parts.bytesMax && this.usedBytes >= this.lookAgainAt;
    if (this.atFirst !== null && !isOver) return;
    this.running = true;
    try {
      await this.look();
    } catch (error) {
      this.parts.log.warn({ error: messageOf(error) }, 'the logs could not be counted');
    } finally {
      this.running = false;
    }
  }

  private async look(): Promise<void> {
    const { logs, bytesMax } = this.parts;
    const grown = logs.grownBytes;
    const all = await this.jobLogs();
    this.atFirst = all.reduce((sum, { bytes }) => sum + bytes, 0) - grown;
    if (this.usedBytes <= bytesMax) return;
    const { liveAttempt } = this.parts;
    const oldest = all.sort((one, other) => one.writtenAtMs - other.writtenAtMs);
    const ended = oldest.filter(({ jobId, bytes }) => bytes > 0 && liveAttempt(jobId) === null);
    if (await this.remove(ended)) return;
    // A job that is retried for months must not keep the output of every attempt.
    const others = oldest.filter(({ jobId, bytes }) => bytes > 0 && liveAttempt(jobId) !== null);
    if (await this.remove(others)) return;
    this.lookAgainAt = this.usedBytes + bytesMax * roomShare;
  }

  /** Of ended jobs all, of others what is of earlier attempts. @returns whether that was enough */
  private async remove(jobs: readonly JobLogs[]): Promise<boolean> {
    const { logs, bytesMax, liveAttempt, log, onRemoved } = this.parts;
    for (const { jobId } of jobs) {
      if (this.usedBytes <= bytesMax * (1 - roomShare)) return true;
      try {
        const bytes = await logs.clear(jobId, 'budget', liveAttempt(jobId) ?? Number.POSITIVE_INFINITY);
        if (bytes === 0) continue;
        log.info({ jobId, bytes }, 'logs were removed: the budget is used up');
        onRemoved(jobId, bytes);
      } catch (error) {
        // Those of other jobs make room as well.
        log.warn({ jobId, error: messageOf(error) }, 'logs cannot be removed');
      }
    }
    return this.usedBytes <= bytesMax * (1 - roomShare);
  }

  private async jobLogs(): Promise<JobLogs[]> {
    const { logs } = this.parts;
    const found: JobLogs[] = [];
    for (const name of await ifThere(readdir(logs.root), [])) {
      if (!isJobId(name)) continue;
      const directory = logs.directoryOf(name);
      let bytes = 0;
      let writtenAtMs = 0;
      for (const segment of await segmentsIn(directory)) {
        const file = await ifThere(stat(join(directory, segmentName(segment, segment))), null);
        bytes += file?.size ?? 0;
        writtenAtMs = Math.max(writtenAtMs, file?.mtimeMs ?? 0);
      }
      found.push({ jobId: name, bytes, writtenAtMs });
    }
    return found;
  }
}
