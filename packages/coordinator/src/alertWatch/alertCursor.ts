/**
 * Up to which event alerts were looked at, as the store knows it, and what happened behind that while nobody looked: jobs that ended,
 * or were submitted again, just before a kill. Everything else is looked at as it is after a start.
 */
import { isJobId, type JobId } from '@muster/common/ids';
import type { Job, StoredEvent } from '../model.ts';
import { alertsCursorName } from '../store/alerts.ts';
import type { Store } from '../store/store.ts';
import { nextRound } from '../work/inOrder.ts';

const eventsPerPage = 500;
/** In the place of the number, while there is no alert. */
const paused = 'paused';
/** How far the stored number may be behind, and for how long. */
const behindMax = 1_000;
const behindMsMax = 60_000;

export interface AlertCursorParts {
  readonly store: Pick<Store, 'readEvents' | 'readMeta' | 'writeMeta' | 'readJob'>;
  readonly state: { readonly lastEventSeq: number };
  readonly monotonicMs: () => number;
}

/** What is learned from events that nobody has looked at. */
export interface Missed {
  readonly ended: (job: Job, seq: number) => void;
  /** @param from the job that runs again */
  readonly requeued: (from: JobId) => void;
  /** An alert was set. */
  readonly set: (alert: string, seq: number) => void;
}

export class AlertCursor {
  /** The last event that was committed. */
  seq: number;
  private readonly parts: AlertCursorParts;
  private storedSeq: number;
  private storedAtMs: number;
  private hasCaughtUp = false;
  /** null: as the store says. */
  private isPaused: boolean | null = null;

  constructor(parts: AlertCursorParts) {
    this.parts = parts;
    this.seq = parts.state.lastEventSeq;
    this.storedSeq = this.seq;
    this.storedAtMs = parts.monotonicMs();
  }

  /** There is no alert: what happens from now on concerns none that is set later. */
  async pause(): Promise<void> {
    if (this.isPaused) return;
    if ((await this.parts.store.readMeta(alertsCursorName)) !== paused)
      await this.parts.store.writeMeta(alertsCursorName, paused);
    this.isPaused = true;
  }

  /** To be awaited before the first alert is set, so that nothing that happens from then on is missed. */
  async resume(): Promise<void> {
    if (this.isPaused === false) return;
    const isStored = (await this.parts.store.readMeta(alertsCursorName)) !== paused;
    if (!isStored) {
      this.hasCaughtUp = true;
      await this.parts.store.writeMeta(alertsCursorName, String(this.seq));
    }
    this.isPaused = false;
  }

  async catchUp(missed: Missed): Promise<void> {
    if (this.hasCaughtUp) return;
    const { store } = this.parts;
    // A store that has none is new: none of its events was looked at.
    let position = Number((await store.readMeta(alertsCursorName)) ?? 0);
    while (position < this.seq) {
      const events = await store.readEvents(position, eventsPerPage, null);
      for (const event of events) await this.lookAgainAt(event, missed);
      const last = events.at(-1);
      if (last === undefined) break;
      position = last.seq;
      await nextRound();
    }
    this.hasCaughtUp = true;
  }

  /** Whether the store has to know that all events up to this one were looked at, though nothing fires. */
  isBehind(seq: number): boolean {
    if (seq - this.storedSeq >= behindMax) return true;
    return seq > this.storedSeq && this.parts.monotonicMs() - this.storedAtMs >= behindMsMax;
  }

  stored(seq: number): void {
    this.storedSeq = seq;
    this.storedAtMs = this.parts.monotonicMs();
  }

  private async lookAgainAt({ kind, subject, data, seq }: StoredEvent, missed: Missed): Promise<void> {
    if (kind === 'alert.created') missed.set(String(data['alert']), seq);
    const from = data['requeuedFrom'];
    if (kind === 'job.submitted' && typeof from === 'string' && isJobId(from)) missed.requeued(from);
    const isEnd = kind === 'job.failed' || kind === 'job.succeeded' || kind === 'job.cancelled';
    if (!isEnd || !isJobId(subject)) return;
    const record = await this.parts.store.readJob(subject);
    if (record !== null) missed.ended(record.job, seq);
  }
}

/** @returns `alert NAME` for the event with which it was set; null for any other */
export function setBy({ kind, data }: Pick<StoredEvent, 'kind' | 'data'>): string | null {
  return kind === 'alert.created' ? `alert ${String(data['alert'])}` : null;
}
