/**
 * The rows of all jobs together: no more than a budget. Where they are more, those of jobs that have ended go, the oldest
 * first; the jobs that run share the budget evenly, and what is more than a job's share is thinned.
 */
import { messageOf } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { RowStore } from './rowStore.ts';

export interface RowBudgetParts {
  readonly rows: Pick<RowStore, 'files' | 'remove' | 'keepTo' | 'grownBytes'>;
  readonly bytesMax: number;
  /** The job has not ended. */
  readonly isLive: (jobId: JobId) => boolean;
  readonly monotonicMs: () => number;
  readonly log: Logger;
}

/** A million steps of a loss, or 700,000 with three more metrics each. */
const shareBytesMax = 32 * 1024 * 1024;
const shareBytesMin = 64 * 1024;
/** What is made room for at once, so that it is not to be done again with the next row. */
const roomShare = 0.1;
const lookEveryMs = 60_000;

export class RowBudget {
  private readonly parts: RowBudgetParts;
  /** Bytes that were there when the store was opened. null: not counted yet. */
  private atFirst: number | null = null;
  private liveJobs = 1;
  private running = false;
  private lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: RowBudgetParts) {
    this.parts = parts;
  }

  /** Bytes of all rows. */
  get usedBytes(): number {
    return (this.atFirst ?? 0) + this.parts.rows.grownBytes;
  }

  /** What the rows of one job may take now. */
  get shareBytes(): number {
    const even = (this.parts.bytesMax * (1 - roomShare)) / Math.max(1, this.liveJobs);
    return Math.min(shareBytesMax, Math.max(shareBytesMin, even));
  }

  /** There is no room for more rows of any job. */
  get isUsedUp(): boolean {
    return this.usedBytes > this.parts.bytesMax * (1 + roomShare);
  }

  /** Counts, removes and thins what is too much. May be called at any time. Never rejects. */
  async run(): Promise<void> {
    const nowMs = this.parts.monotonicMs();
    const isDue = this.atFirst === null || nowMs - this.lookedAtMs >= lookEveryMs;
    const isOver = this.usedBytes > this.parts.bytesMax && nowMs - this.lookedAtMs >= lookEveryMs / 10;
    if (this.running || !(isDue || isOver)) return;
    this.running = true;
    this.lookedAtMs = nowMs;
    try {
      await this.look();
    } catch (error) {
      this.parts.log.warn({ error: messageOf(error) }, 'the rows of metrics could not be counted');
    } finally {
      this.running = false;
    }
  }

  private async look(): Promise<void> {
    const { rows, bytesMax, isLive, log } = this.parts;
    const grown = rows.grownBytes;
    const files = await rows.files();
    this.atFirst = files.reduce((sum, { bytes }) => sum + bytes, 0) - grown;
    const live = files.filter(({ jobId }) => isLive(jobId));
    this.liveJobs = live.length;
    if (this.usedBytes <= bytesMax) return;
    const ended = files.filter(({ jobId }) => !isLive(jobId));
    for (const { jobId } of ended.toSorted((one, other) => one.writtenAtMs - other.writtenAtMs)) {
      if (this.usedBytes <= bytesMax * (1 - roomShare)) return;
      const bytes = await rows.remove(jobId);
      log.info({ jobId, bytes }, 'the metrics of an ended job were removed: the budget is used up');
    }
    for (const { jobId } of live) await rows.keepTo(jobId, this.shareBytes);
  }
}
