/**
 * Terms, and whether this store is as new as the cluster. A term is one run of a coordinator: its number is raised and
 * stored before it serves. Agents keep the highest they were welcomed in, and the numbers of attempts; one that knows of
 * more than the store does proves that the store was restored from an old copy. Going on from there would hand out
 * attempt numbers a second time, so nothing is started until a person says `muster store advance`.
 */
import { MusterError } from '@muster/common/errors';
import type { JobId, NodeName, TaskRef } from '@muster/common/ids';
import { applyJobEvent } from '../commands/jobs.ts';
import { currentAttempt } from '../model.ts';
import type { ClusterState, Draft } from '../state.ts';
import type { Store } from '../store/store.ts';
import { clusterSubject } from './clusterSubject.ts';

/** What an agent says of itself in its Hello. */
export interface AgentAccount {
  readonly node: NodeName;
  /** Term of the newest coordinator that it was welcomed by; 0: of none. */
  readonly highestTerm: number;
  readonly observed: readonly { readonly task: TaskRef }[];
}

/** What agents know and the store does not. */
interface Ahead {
  readonly node: NodeName;
  readonly highestTerm: number;
  /** Of jobs that had fewer attempts by the store. */
  readonly attempts: Readonly<Record<JobId, number>>;
  /** Jobs that the store knows nothing of. */
  readonly strays: readonly JobId[];
}

interface StoredTerms {
  readonly term: number;
  /** null: the store is as new as what was heard. */
  readonly ahead: Ahead | null;
  /** Jobs that nobody knows and that were looked at when the store was advanced. */
  readonly acceptedStrays: readonly JobId[];
  /** After an advance: how long attempts may run that it went past. 0: that is over. */
  readonly quietMs: number;
}

const metaName = 'terms';
const firstTerms: StoredTerms = { term: 0, ahead: null, acceptedStrays: [], quietMs: 0 };

export interface TermParts {
  readonly store: Pick<Store, 'readMeta' | 'writeMeta'>;
  readonly state: Pick<ClusterState, 'jobs' | 'outcomes'>;
  readonly monotonicMs: () => number;
  readonly onWriteFailed: (error: unknown) => void;
}

export class Terms {
  private readonly parts: TermParts;
  private stored: StoredTerms;
  private quietUntilMs: number;
  private writing: Promise<void> = Promise.resolve();

  private constructor(parts: TermParts, stored: StoredTerms) {
    this.parts = parts;
    this.stored = stored;
    this.quietUntilMs = parts.monotonicMs() + stored.quietMs;
  }

  /** Begins the next term: it is stored when this resolves. */
  static async begin(parts: TermParts): Promise<Terms> {
    const text = await parts.store.readMeta(metaName);
    const before = text === null ? firstTerms : (JSON.parse(text) as StoredTerms);
    const terms = new Terms(parts, before);
    await terms.change((stored) => ({ ...stored, term: stored.term + 1 }));
    return terms;
  }

  get term(): number {
    return this.stored.term;
  }

  /** To be told of every Hello, before it has any effect. */
  agentSaid({ node, highestTerm, observed }: AgentAccount): void {
    const { state } = this.parts;
    const attempts: Record<JobId, number> = {};
    const strays: JobId[] = [];
    for (const { task } of observed) {
      const job = state.jobs.get(task.jobId);
      if (job !== undefined && task.attempt > job.lastAttempt)
        attempts[job.id] = Math.max(attempts[job.id] ?? 0, task.attempt);
      if (job === undefined && !state.outcomes.has(task.jobId)) strays.push(task.jobId);
    }
    const heard = { node, highestTerm, attempts, strays };
    const next = (stored: StoredTerms) => withHeard(stored, heard);
    if (next(this.stored) === this.stored) return;
    // In force at once, because it only forbids; stored so that it outlives restarts, in which our own term grows past
    // what was heard.
    this.stored = next(this.stored);
    this.change(next).catch(this.parts.onWriteFailed);
  }

  /** Why nothing may be started; null: it may. */
  paused(): string | null {
    const { ahead, term } = this.stored;
    if (ahead !== null) {
      return (
        `the store is older than the cluster (${newerText(ahead, term)}), as after a restore from a backup; once all ` +
        'nodes are back: muster store advance'
      );
    }
    const quietMs = this.quietUntilMs - this.parts.monotonicMs();
    if (quietMs <= 0) return null;
    const seconds = Math.ceil(quietMs / 1_000);
    return (
      'the store was advanced, and attempts that it does not know of may run until their leases end in ' +
      `${seconds} s; nothing is to be done`
    );
  }

  /**
   * Goes past all terms and attempts that agents have spoken of. Jobs of which there was a later attempt than the store's
   * lose the one the store has, which must have ended, and go back into the queue.
   * @param quietMs from now on nothing is started for so long: attempts that were gone past may still hold a lease
   * @throws {MusterError} `failed_precondition` when there is nothing to go past
   */
  async advance(
    quietMs: number,
    run: (command: (draft: Draft, nowMs: number) => void) => Promise<void>,
    by: string,
  ): Promise<void> {
    const { ahead } = this.stored;
    if (ahead === null) {
      throw new MusterError(
        'failed_precondition',
        'no node knows of more than the store does, so there is nothing to go past; after a restore from a backup try ' +
          'again once the nodes are back',
      );
    }
    // From here on the pause is ours to end: what agents say meanwhile is heard as before.
    await this.change((stored) => ({
      ...stored,
      term: Math.max(stored.term, ahead.highestTerm) + 1,
      quietMs,
    }));
    await run((draft, nowMs) => advanceJobs(draft, ahead, { term: this.stored.term, by }, nowMs));
    this.quietUntilMs = this.parts.monotonicMs() + quietMs;
    await this.change((stored) => ({
      ...stored,
      ahead: stored.ahead === ahead ? null : stored.ahead,
      acceptedStrays: [...new Set([...stored.acceptedStrays, ...ahead.strays])],
    }));
  }

  /** One pass; idempotent. */
  run(): readonly Promise<void>[] {
    if (this.stored.quietMs === 0 || this.parts.monotonicMs() < this.quietUntilMs) return [];
    return [this.change((stored) => ({ ...stored, quietMs: 0 }))];
  }

  private change(next: (stored: StoredTerms) => StoredTerms): Promise<void> {
    const written = this.writing.then(async () => {
      const changed = next(this.stored);
      await this.parts.store.writeMeta(metaName, JSON.stringify(changed));
      // What was heard while that was being written is kept.
      this.stored = next(this.stored);
    });
    this.writing = written.catch(() => {});
    return written;
  }
}

/** @returns the very same when nothing of it is news */
function withHeard(stored: StoredTerms, heard: Ahead): StoredTerms {
  const { ahead } = stored;
  const attempts: Record<JobId, number> = { ...ahead?.attempts };
  for (const [id, number] of Object.entries(heard.attempts) as [JobId, number][])
    attempts[id] = Math.max(attempts[id] ?? 0, number);
  const isAccepted = (id: JobId) => stored.acceptedStrays.includes(id);
  const strays = [...new Set([...(ahead?.strays ?? []), ...heard.strays.filter((id) => !isAccepted(id))])];
  const highestTerm = Math.max(heard.highestTerm, ahead?.highestTerm ?? 0);
  const isNews =
    highestTerm > (ahead?.highestTerm ?? stored.term) ||
    strays.length > (ahead?.strays.length ?? 0) ||
    Object.entries(attempts).some(([id, number]) => number !== ahead?.attempts[id as JobId]);
  if (!isNews) return stored;
  return { ...stored, ahead: { node: ahead?.node ?? heard.node, highestTerm, attempts, strays } };
}

function newerText({ node, highestTerm, attempts, strays }: Ahead, term: number): string {
  const [job] = Object.entries(attempts);
  if (highestTerm > term) return `${node} was welcomed in term ${highestTerm} and this is term ${term}`;
  if (job !== undefined) return `${node} has attempt ${job[1]} of ${job[0]}, of which the store knows less`;
  if (strays[0] !== undefined) return `${node} has ${strays[0]}, which the store knows nothing of`;
  return `${node} has been welcomed in a later term`;
}

function advanceJobs(
  draft: Draft,
  ahead: Ahead,
  { term, by }: { term: number; by: string },
  nowMs: number,
): void {
  for (const [id, heard] of Object.entries(ahead.attempts)) {
    const jobId = id as JobId;
    const attempt = currentAttempt(draft.job(jobId));
    if (attempt !== null) {
      // Nobody has chosen anew where it goes on from.
      const from = draft.job(jobId)?.resumeChoice ?? { kind: 'newest' };
      applyJobEvent(draft, jobId, { kind: 'requeue', from }, nowMs);
      for (const { nodeRank, node } of attempt.tasks) {
        const message = `attempt ${heard} was seen on a node, so attempt ${attempt.number} on ${node} had ended before`;
        applyJobEvent(draft, jobId, { kind: 'taskLost', attempt: attempt.number, nodeRank, message }, nowMs);
      }
    }
    const job = draft.job(jobId);
    if (job !== undefined && job.lastAttempt < heard) draft.putJob({ ...job, lastAttempt: heard });
  }
  const { attempts, strays } = ahead;
  const data = { term, by, attempts, strays };
  draft.emit({ kind: 'store.advanced', subject: clusterSubject, data }, nowMs);
}
