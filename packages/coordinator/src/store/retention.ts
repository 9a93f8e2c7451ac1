/**
 * What retention needs of a store, beside `Store`: to find what is old, and to remove it. Everything is done in pieces whose size the
 * caller chooses. What may go is decided elsewhere.
 */
import type { JobId } from '@muster/common/ids';

/** Of an event, what tells whether it is still needed. */
export interface EventPlace {
  readonly seq: number;
  readonly subject: string;
  readonly subjectSeq: number;
  readonly timeMs: number;
  /** What it takes on disk, as `eventBytes` estimates it. */
  readonly bytes: number;
}

/**
 * What the row of an event takes beside its data, with its entries in two indexes: 150 to 170 bytes where the data are short, and
 * some more for what pages leave empty.
 */
const rowBytes = 200;

/** @param dataBytes of its data, as JSON */
export function eventBytes(dataBytes: number): number {
  return rowBytes + dataBytes;
}

export interface EndedJob {
  readonly id: JobId;
  readonly submitSeq: number;
  readonly arrayId: string | null;
  readonly endedAtMs: number;
}

export interface RetentionStore {
  /** With seq > sinceSeq, in order. */
  readEventPlaces(sinceSeq: number, limit: number): Promise<readonly EventPlace[]>;
  removeEvents(seqs: readonly number[]): Promise<void>;
  /** The highest number of an event that was removed; 0: none was. */
  readRemovedEventSeq(): Promise<number>;
  /** Ended before `beforeMs`, by when they ended and their ids. @param after only later ones */
  readEndedJobs(
    beforeMs: number,
    after: Pick<EndedJob, 'id' | 'endedAtMs'> | null,
    limit: number,
  ): Promise<readonly EndedJob[]>;
  /** How many jobs ended before `beforeMs`. Null: how many have ended. */
  countEndedJobs(beforeMs: number | null): Promise<number>;
  /** How many requests, and how many ids of removed jobs, are kept. */
  countKept(): Promise<{ readonly requests: number; readonly removedJobs: number }>;
  /** When the last job ended that is too many if `count` ended ones are kept; null: there are no more. */
  readEndBeyond(count: number): Promise<number | null>;
  /** With all that is stored of them but their events. Their ids are remembered, so that an answer can state what became of them. */
  removeJobs(ids: readonly JobId[], nowMs: number): Promise<void>;
  /** @returns how many were removed */
  removeRequests(beforeMs: number, limit: number): Promise<number>;
  /** Forgets ids of jobs that were removed before that. @returns how many */
  forgetRemovedJobs(beforeMs: number, limit: number): Promise<number>;
}
