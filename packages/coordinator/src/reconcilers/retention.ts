/**
 * Removes old events, ended jobs with all their data, and old requests. A pass runs every hour, in pieces of a few
 * milliseconds, so that other work continues between them.
 *
 * What goes for its age is at most a tenth of what there is per day (`retentionShare.ts`), and nothing while the time is in doubt. What is
 * too much goes at once: no clock decides that.
 *
 * Some records are kept at any age: the newest event of each subject that may get another one, because its number is needed;
 * events that are not published yet, or that a trigger has not looked at; and ended jobs that an active job names, or whose array has an active job.
 */

import { statfsSync } from 'node:fs';
import { messageOf } from '@muster/common/errors';
import { clusterSubject } from '@muster/common/eventKinds';
import type { JobId } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { parseDependency } from '@muster/common/spec/after';
import { coordinatorPart } from '../caller.ts';
import type { LogStore } from '../logs/logStore.ts';
import type { Loop } from '../loop.ts';
import type { Job } from '../model.ts';
import type { CoordinatorOptions, Keep } from '../options.ts';
import type { RowStore } from '../rows/rowStore.ts';
import type { ClusterState } from '../state/state.ts';
import type { EndedJob, EventPlace } from '../store/retention.ts';
import { type Store, StoreError } from '../store/store.ts';
import type { StoredTrigger } from '../store/triggers.ts';
import { nextRound } from '../work/inOrder.ts';
import { type AgedKind, RetentionShare } from './retentionShare.ts';

/**
 * Events outlive this in any case, however many there are: who reads them late has so long, and nobody can remove the record of
 * what they did by making many others.
 */
export const eventsKeptMsMin = 7 * 86_400_000;
/** So long it is known of a removed job that there was one. */
const removedKnownMs = 365 * 86_400_000;
const passEveryMs = 3_600_000;
/** A coordinator that has just begun has better things to do. */
const firstPassAfterMs = 60_000;
/**
 * In one piece. Every one of them changes pages of its own where the store is large, and until the piece is on disk and the log
 * carried over, no heartbeat is answered.
 */
const eventsPerPiece = 100;
const jobsPerPiece = 50;
/** Reading changes nothing. */
const eventsPerCount = 2_000;
/** Removed beyond what has to be, so that it is not to be done again with the next event. */
const roomShare = 0.1;
/** Of one call: the rest of a long pass waits for the next. */
const piecesPerRun = 10;

/** What was not chosen follows from the disk: a fiftieth of it for events. */
export function keepLimits({ dataDir, keep }: Pick<CoordinatorOptions, 'dataDir' | 'keep'>): Keep {
  const { blocks, bsize } = statfsSync(dataDir);
  return { ...keep, eventsBytes: keep.eventsBytes ?? Math.min(5 * 1024 ** 3, (blocks * bsize) / 50) };
}

export interface RetentionParts {
  readonly state: Pick<
    ClusterState,
    'jobs' | 'pipelines' | 'successors' | 'subjectSeqs' | 'lastEventSeq' | 'lastSubmitSeq' | 'outcomes'
  >;
  readonly store: Pick<Store, 'retention' | 'readMeta' | 'writeMeta'>;
  readonly loop: Pick<Loop, 'run'>;
  readonly logs: Pick<LogStore, 'remove'>;
  readonly rows: Pick<RowStore, 'remove'>;
  readonly log: Logger;
  readonly keep: Keep;
  /** Up to this event all are published; they are not removed before. */
  readonly publishedSeq: () => Promise<number>;
  readonly onFatal: (error: StoreError) => void;
  /** The wall clock that is trusted. */
  readonly wallMs: () => number;
  /** False while the time is in doubt: nothing then goes for its age, and what is too much still does. */
  readonly isCertain: () => boolean;
  readonly monotonicMs: () => number;
  /** Monotonic milliseconds that no restart, no reboot and no step moves. */
  readonly countedMs: () => number;
  /** Part of what there is that may go for its age per day. Default: a tenth. */
  readonly share?: number;
}

/** What a pass has removed, and whether more is due than may go today. */
interface PassCounts {
  jobs: number;
  events: number;
  requests: number;
  isHeldBack: boolean;
}

/** Does one piece. @returns whether there may be more */
type Piece = () => Promise<boolean>;

export class Retention {
  private readonly parts: RetentionParts;
  private nextPassMs: number;
  /** What is left of the pass under way. */
  private pieces: Piece[] = [];
  private working: Promise<void> | null = null;
  /** Bytes of the events that are stored up to a number. */
  private counted = { seq: 0, bytes: 0 };
  private readonly share: RetentionShare;
  private counts: PassCounts = noCounts();

  constructor(parts: RetentionParts) {
    this.parts = parts;
    this.share = new RetentionShare(parts);
    this.nextPassMs = parts.monotonicMs() + firstPassAfterMs;
  }

  /** Bytes of all events, as of the last pass; estimated. */
  get eventBytes(): number {
    return this.counted.bytes;
  }

  /** Some pieces of a pass, when one is due or under way. May be called at any time. */
  run(): Promise<void> {
    this.working ??= this.work().finally(() => {
      this.working = null;
    });
    return this.working;
  }

  private async work(): Promise<void> {
    if (this.pieces.length === 0) {
      if (this.parts.monotonicMs() < this.nextPassMs) return;
      this.nextPassMs = this.parts.monotonicMs() + passEveryMs;
      this.pieces = await this.aPass();
    }
    for (let count = 0; count < piecesPerRun; count += 1) {
      const [piece] = this.pieces;
      if (piece === undefined) return;
      if (!(await this.tried(piece))) this.pieces.shift();
      await nextRound();
    }
  }

  /** A full disk wrote nothing, and may have room later; after any other failure nothing may be written any longer. */
  private async tried(piece: Piece): Promise<boolean> {
    try {
      return await piece();
    } catch (error) {
      if (error instanceof StoreError && error.kind !== 'full') this.parts.onFatal(error);
      throw error;
    }
  }

  private async aPass(): Promise<Piece[]> {
    const { keep, store, wallMs } = this.parts;
    await this.share.open();
    this.counts = noCounts();
    const nowMs = wallMs();
    const beyond = await store.retention.readEndBeyond(keep.jobsMax);
    // One that ended in the same millisecond as the first too many goes with it.
    const tooManyBeforeMs = beyond === null ? 0 : beyond + 1;
    const jobsBeforeMs = nowMs - keep.jobsMs;
    const eventsBeforeMs = nowMs - Math.max(keep.eventsMs, eventsKeptMsMin);
    const readBeforeMs = nowMs - eventsKeptMsMin;
    return [
      this.countEvents(),
      this.events(eventsBeforeMs, readBeforeMs, await this.deliveredSeq()),
      this.jobs(jobsBeforeMs, tooManyBeforeMs, await store.retention.countEndedJobs(null)),
      ...(await this.oldRequests(nowMs, eventsBeforeMs)),
      this.report(jobsBeforeMs),
    ];
  }

  private async oldRequests(nowMs: number, beforeMs: number): Promise<readonly Piece[]> {
    const { retention } = this.parts.store;
    const { requests, removedJobs } = await retention.countKept();
    const removedBeforeMs = nowMs - removedKnownMs;
    return [
      this.aged('requests', requests, (limit) => retention.removeRequests(beforeMs, limit)),
      this.aged('removedJobs', removedJobs, (limit) => retention.forgetRemovedJobs(removedBeforeMs, limit)),
    ];
  }

  /** Rows of which nothing but their age decides. @param remove returns how many it has removed */
  private aged(
    kind: Extract<AgedKind, 'requests' | 'removedJobs'>,
    present: number,
    remove: (limit: number) => Promise<number>,
  ): Piece {
    let left: number | null = null;
    return async () => {
      if (!this.parts.isCertain()) return false;
      left ??= this.share.left(kind, present);
      const limit = Math.min(left, eventsPerPiece);
      if (limit === 0) return false;
      const removed = await remove(limit);
      left -= removed;
      this.share.took(kind, removed);
      if (kind === 'requests') this.counts.requests += removed;
      return removed === limit && left > 0;
    };
  }

  /** Says what the pass has removed for its age, and whether more is due. */
  private report(jobsBeforeMs: number): Piece {
    return async () => {
      const { store, loop, log } = this.parts;
      await this.share.store();
      const { jobs, events, requests, isHeldBack } = this.counts;
      if (jobs + events + requests === 0) return false;
      const dueJobs = isHeldBack ? await store.retention.countEndedJobs(jobsBeforeMs) : 0;
      const data = { jobs, events, requests, dueJobs, isHeldBack };
      log.info(
        data,
        isHeldBack ? 'old records were removed; the rest goes a tenth a day' : 'old records were removed',
      );
      // Removed events alone are no event: each would be removed one day, and make another.
      if (jobs === 0 && !isHeldBack) return false;
      await loop.run(coordinatorPart('retention'), (draft, timeMs) =>
        draft.emit({ kind: 'retention.removed', subject: clusterSubject, data }, timeMs),
      );
      return false;
    };
  }

  /** Up to this event, everybody who follows the events has had all. */
  private async deliveredSeq(): Promise<number> {
    const { publishedSeq, state } = this.parts;
    return Math.min(await publishedSeq(), triggersLookedAt(state.pipelines.triggers.values()));
  }

  /** All of them after a start, and then those that are new. */
  private countEvents(): Piece {
    return async () => {
      const places = await this.parts.store.retention.readEventPlaces(this.counted.seq, eventsPerCount);
      for (const { seq, bytes } of places) this.counted = { seq, bytes: this.counted.bytes + bytes };
      return places.length === eventsPerCount;
    };
  }

  /**
   * @param beforeMs older ones go
   * @param readBeforeMs of those that are older than this the oldest go, where all are too many
   */
  private events(beforeMs: number, readBeforeMs: number, deliveredSeq: number): Piece {
    const { store, keep } = this.parts;
    let sinceSeq = 0;
    /** Null: not known yet, because the piece before counts. */
    let excess: number | null = null;
    /** Bytes that may go for their age; null: not known yet either. */
    let left: number | null = null;
    return async () => {
      const room = Math.ceil(keep.eventsBytes * (1 - roomShare));
      excess ??= this.counted.bytes > keep.eventsBytes ? this.counted.bytes - room : 0;
      left ??= this.share.left('events', this.counted.bytes);
      const places = await store.retention.readEventPlaces(sinceSeq, eventsPerPiece);
      const removed: EventPlace[] = [];
      let freed = 0;
      let aged = 0;
      let isDone = places.length < eventsPerPiece;
      for (const place of places) {
        const isTooMuch = freed < excess && place.timeMs < readBeforeMs;
        const isOld = place.timeMs < beforeMs && this.parts.isCertain();
        if (place.seq > deliveredSeq || (!isOld && !isTooMuch)) {
          isDone = true;
          break;
        }
        if (!isTooMuch && !this.isNewest(place)) {
          if (left <= 0) {
            this.counts.isHeldBack = true;
            isDone = true;
            break;
          }
          left -= place.bytes;
          aged += place.bytes;
          this.counts.events += 1;
        }
        sinceSeq = place.seq;
        if (this.isNewest(place)) continue;
        removed.push(place);
        freed += place.bytes;
      }
      this.share.took('events', aged);
      if (removed.length > 0) await store.retention.removeEvents(removed.map(({ seq }) => seq));
      excess -= freed;
      this.counted = { ...this.counted, bytes: this.counted.bytes - freed };
      return !isDone;
    };
  }

  private isNewest({ seq, subject, subjectSeq }: EventPlace): boolean {
    const { subjectSeqs, lastEventSeq } = this.parts.state;
    return seq === lastEventSeq || subjectSeqs.get(subject) === subjectSeq;
  }

  /**
   * @param beforeMs those that ended earlier are old
   * @param tooManyBeforeMs those that ended earlier are too many
   * @param present how many ended jobs there are
   */
  private jobs(beforeMs: number, tooManyBeforeMs: number, present: number): Piece {
    const { store, state, wallMs, isCertain } = this.parts;
    const untilMs = Math.max(beforeMs, tooManyBeforeMs);
    let after: EndedJob | null = null;
    let left: number | null = null;
    return async () => {
      left ??= this.share.left('jobs', present);
      const ended: readonly EndedJob[] = await store.retention.readEndedJobs(untilMs, after, jobsPerPiece);
      const named = namesIn(state.jobs.values(), state.successors);
      const removable = ended
        .filter(({ id, arrayId }) => !named.has(id) && (arrayId === null || !named.has(arrayId)))
        .filter(({ submitSeq }) => submitSeq !== state.lastSubmitSeq);
      const removed: JobId[] = [];
      let aged = 0;
      let isDone = ended.length < jobsPerPiece;
      for (const { id, endedAtMs } of removable) {
        const isTooMany = endedAtMs < tooManyBeforeMs;
        if (!isTooMany && (left <= aged || !isCertain())) {
          this.counts.isHeldBack ||= isCertain();
          isDone = true;
          break;
        }
        if (!(await this.removeOutput(id))) continue;
        if (!isTooMany) aged += 1;
        removed.push(id);
      }
      left -= aged;
      this.counts.jobs += removed.length;
      // Before they go: what is counted twice after a crash only makes the day longer.
      this.share.took('jobs', aged);
      await this.share.store();
      if (removed.length > 0) await store.retention.removeJobs(removed, wallMs());
      for (const id of removed) state.outcomes.delete(id);
      after = ended.at(-1) ?? after;
      return !isDone;
    };
  }

  /** @returns false: it cannot be removed, and the next pass tries again */
  private async removeOutput(jobId: JobId): Promise<boolean> {
    const { logs, rows, log } = this.parts;
    try {
      await logs.remove(jobId);
      await rows.remove(jobId);
      return true;
    } catch (error) {
      log.warn(
        { jobId, error: messageOf(error) },
        'an ended job is kept, because its output cannot be removed',
      );
      return false;
    }
  }
}

function noCounts(): PassCounts {
  return { jobs: 0, events: 0, requests: 0, isHeldBack: false };
}

/** Up to this event, every trigger has looked at all that it was for, as it is stored. One that is paused looks at nothing. */
function triggersLookedAt(triggers: Iterable<StoredTrigger>): number {
  const seqs = [...triggers].flatMap(({ eventSeq, isPaused }) =>
    eventSeq === null || isPaused ? [] : [eventSeq],
  );
  return Math.min(...seqs, Number.POSITIVE_INFINITY);
}

/** Ids of jobs and arrays that these jobs name. */
function namesIn(jobs: Iterable<Job>, successors: ReadonlyMap<JobId, JobId>): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { spec, array, requeuedFrom, resumedFrom, checkpointJobId } of jobs) {
    for (const { on } of spec.after.map(parseDependency))
      for (let id: string | undefined = on; id !== undefined; id = successors.get(id as JobId)) names.add(id);
    names.add(checkpointJobId);
    if (requeuedFrom !== null) names.add(requeuedFrom);
    if (resumedFrom?.jobId != null) names.add(resumedFrom.jobId);
    if (array !== null) names.add(array.id);
  }
  return names;
}
