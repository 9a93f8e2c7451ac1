/**
 * Removes old events, ended jobs with all their data, and old requests. A pass runs every hour, in pieces of a few
 * milliseconds, so that other work continues between them.
 *
 * Some records are kept at any age: the newest event of each subject that may get another one, because its number is needed;
 * events that are not published yet, or that a trigger has not looked at; and ended jobs that an active job names, or whose array has an active job.
 */

import { statfsSync } from 'node:fs';
import { messageOf } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { parseDependency } from '@muster/common/spec/after';
import type { LogStore } from '../logs/logStore.ts';
import type { Job } from '../model.ts';
import type { CoordinatorOptions, Keep } from '../options.ts';
import type { RowStore } from '../rows/rowStore.ts';
import type { ClusterState } from '../state/state.ts';
import type { EndedJob, EventPlace } from '../store/retention.ts';
import { type Store, StoreError } from '../store/store.ts';
import type { StoredTrigger } from '../store/triggers.ts';
import { nextRound } from '../work/inOrder.ts';

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
  readonly store: Pick<Store, 'retention'>;
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

  constructor(parts: RetentionParts) {
    this.parts = parts;
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
    const { keep, store, wallMs, isCertain } = this.parts;
    const nowMs = wallMs();
    const agedAtMs = isCertain() ? nowMs : Number.NEGATIVE_INFINITY;
    const beyond = await store.retention.readEndBeyond(keep.jobsMax);
    // One that ended in the same millisecond as the first too many goes with it.
    const jobsBeforeMs = Math.max(agedAtMs - keep.jobsMs, beyond === null ? 0 : beyond + 1);
    const eventsBeforeMs = agedAtMs - Math.max(keep.eventsMs, eventsKeptMsMin);
    const readBeforeMs = nowMs - eventsKeptMsMin;
    return [
      this.countEvents(),
      this.events(eventsBeforeMs, readBeforeMs, await this.deliveredSeq()),
      this.jobs(jobsBeforeMs),
      ...(isCertain() ? this.oldRequests(nowMs, eventsBeforeMs) : []),
    ];
  }

  private oldRequests(nowMs: number, beforeMs: number): Piece[] {
    const { retention } = this.parts.store;
    const removedBeforeMs = nowMs - removedKnownMs;
    return [
      async () => (await retention.removeRequests(beforeMs, eventsPerPiece)) === eventsPerPiece,
      async () => (await retention.forgetRemovedJobs(removedBeforeMs, eventsPerPiece)) === eventsPerPiece,
    ];
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
    return async () => {
      const room = Math.ceil(keep.eventsBytes * (1 - roomShare));
      excess ??= this.counted.bytes > keep.eventsBytes ? this.counted.bytes - room : 0;
      const places = await store.retention.readEventPlaces(sinceSeq, eventsPerPiece);
      const removed: EventPlace[] = [];
      let freed = 0;
      let isDone = places.length < eventsPerPiece;
      for (const place of places) {
        const isTooMuch = freed < excess && place.timeMs < readBeforeMs;
        if (place.seq > deliveredSeq || (place.timeMs >= beforeMs && !isTooMuch)) {
          isDone = true;
          break;
        }
        sinceSeq = place.seq;
        if (this.isNewest(place)) continue;
        removed.push(place);
        freed += place.bytes;
      }
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

  private jobs(beforeMs: number): Piece {
    const { store, state, wallMs } = this.parts;
    let after: EndedJob | null = null;
    return async () => {
      const ended: readonly EndedJob[] = await store.retention.readEndedJobs(beforeMs, after, jobsPerPiece);
      const named = namesIn(state.jobs.values(), state.successors);
      const ids = ended
        .filter(({ id, arrayId }) => !named.has(id) && (arrayId === null || !named.has(arrayId)))
        .filter(({ submitSeq }) => submitSeq !== state.lastSubmitSeq)
        .map(({ id }) => id);
      const removed: JobId[] = [];
      for (const id of ids) if (await this.removeOutput(id)) removed.push(id);
      if (removed.length > 0) await store.retention.removeJobs(removed, wallMs());
      for (const id of removed) state.outcomes.delete(id);
      after = ended.at(-1) ?? after;
      return ended.length === jobsPerPiece;
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
