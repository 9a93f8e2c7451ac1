/** Retention in the embedded store: each piece is a transaction of its own. */

import type { SQLInputValue } from 'node:sqlite';
import type { JobId } from '@muster/common/ids';
import { nextRound } from '../../work/inOrder.ts';
import { type EndedJob, type EventPlace, eventBytes, type RetentionStore } from '../retention.ts';
import { selectMeta, upsertMeta } from '../statements/cluster.ts';
import { deleteLabels } from '../statements/lists.ts';
import {
  deleteAttemptsOfJob,
  deleteEmptyArray,
  deleteEndedJob,
  deleteEvents,
  deleteRemovedJobs,
  deleteRequests,
  insertRemovedJob,
  selectEndBeyond,
  selectEndedJobs,
  selectEventPlaces,
  selectKeptCounts,
  selectLaterEnd,
  selectLaterEnds,
} from '../statements/retention.ts';
import { StoreError } from '../store.ts';

type Parameters = Record<string, SQLInputValue>;

interface EventPlaceRow {
  readonly seq: number;
  readonly subject: string;
  readonly subject_seq: number;
  readonly time_ms: number;
  readonly data_bytes: number;
}

/** The store's own ways to run a statement. */
export interface SqliteRetentionParts {
  readonly rows: <Row>(sql: string, parameters: Parameters) => Row[];
  readonly change: (sql: string, parameters: Parameters) => number;
  /** All of it is written, or nothing. */
  readonly transaction: (write: () => void) => Promise<void>;
}

/** A million in one statement took a quarter of a second, in which no other call was answered. */
export const endsPerRead = 10_000;

const removedEventSeqName = 'removed_event_seq';

export function sqliteRetention({ rows, change, transaction }: SqliteRetentionParts): RetentionStore {
  const removedEventSeq = () => {
    const [row] = rows<{ value: string }>(selectMeta.sql, { name: removedEventSeqName });
    return Number(row?.value ?? 0);
  };

  function removeJob(id: JobId, nowMs: number): void {
    change(deleteAttemptsOfJob.sql, { id });
    change(deleteLabels.sql, { id });
    const [removed] = rows<{ array_id: string | null }>(deleteEndedJob.sql, { id });
    if (removed === undefined)
      throw new StoreError('conflict', `the store refused to remove ${id}: it is active`);
    change(insertRemovedJob.sql, { id, now: nowMs });
    if (removed.array_id !== null) change(deleteEmptyArray.sql, { id: removed.array_id });
  }

  async function removeOld(sql: string, before: number, limit: number): Promise<number> {
    let count = 0;
    await transaction(() => {
      count = change(sql, { before, limit });
    });
    return count;
  }

  return {
    async readEventPlaces(sinceSeq, limit) {
      const found = rows<EventPlaceRow>(selectEventPlaces.sql, { since_seq: sinceSeq, limit });
      return found.map(
        ({ seq, subject, subject_seq, time_ms, data_bytes }): EventPlace => ({
          seq,
          subject,
          subjectSeq: subject_seq,
          timeMs: time_ms,
          bytes: eventBytes(data_bytes),
        }),
      );
    },
    async removeEvents(seqs) {
      await transaction(() => {
        change(deleteEvents.sql, { seqs: JSON.stringify(seqs) });
        const value = String(Math.max(removedEventSeq(), ...seqs));
        change(upsertMeta.sql, { name: removedEventSeqName, value });
      });
    },
    readRemovedEventSeq: async () => removedEventSeq(),
    async readEndedJobs(beforeMs, after, limit) {
      const found = rows<{ id: JobId; submit_seq: number; array_id: string | null; ended_at_ms: number }>(
        selectEndedJobs.sql,
        { before: beforeMs, after_ms: after?.endedAtMs ?? -1, after_id: after?.id ?? '', limit },
      );
      return found.map(
        ({ id, submit_seq, array_id, ended_at_ms }): EndedJob => ({
          id,
          submitSeq: submit_seq,
          arrayId: array_id,
          endedAtMs: ended_at_ms,
        }),
      );
    },
    async countEndedJobs(beforeMs) {
      const before = beforeMs ?? Number.MAX_SAFE_INTEGER;
      let place = { ended_at_ms: -1, id: '' };
      // Counted in pieces: of a million rows one statement would keep heartbeats waiting.
      for (let count = 0; ; count += endsPerRead) {
        const after = { before, after_ms: place.ended_at_ms, after_id: place.id };
        const [row] = rows<typeof place>(selectLaterEnd.sql, { ...after, skipped: endsPerRead - 1 });
        if (row === undefined)
          return count + (rows<{ ends: number }>(selectLaterEnds.sql, after)[0]?.ends ?? 0);
        place = row;
        await nextRound();
      }
    },
    async countKept() {
      const [row] = rows<{ requests: number; removed_jobs: number }>(selectKeptCounts.sql, {});
      return { requests: row?.requests ?? 0, removedJobs: row?.removed_jobs ?? 0 };
    },
    async readEndBeyond(count) {
      let place = { ended_at_ms: Number.MAX_SAFE_INTEGER, id: '' };
      for (let left = count; ; ) {
        const skipped = Math.min(left, endsPerRead);
        const before = { before_ms: place.ended_at_ms, before_id: place.id };
        const [row] = rows<typeof place>(selectEndBeyond.sql, { ...before, skipped });
        if (row === undefined || skipped === left) return row?.ended_at_ms ?? null;
        place = row;
        left -= skipped + 1;
        await nextRound();
      }
    },
    async removeJobs(ids, nowMs) {
      await transaction(() => {
        for (const id of ids) removeJob(id, nowMs);
      });
    },
    removeRequests: (beforeMs, limit) => removeOld(deleteRequests.sql, beforeMs, limit),
    forgetRemovedJobs: (beforeMs, limit) => removeOld(deleteRemovedJobs.sql, beforeMs, limit),
  };
}
