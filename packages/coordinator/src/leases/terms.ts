/**
 * Terms, and whether this store is as new as the cluster. A term is one run of a coordinator: its number is raised and
 * stored before it serves. Agents keep the highest they were welcomed in, and the tasks they were given, each with a proof.
 * One that proves more than the store knows shows that the store was restored from an old copy. Continuing from there
 * would reuse attempt numbers, so nothing is started until a user runs `muster store advance`. A claim
 * without proof keeps new work from the node of its agent, and from the others only when most nodes claim the like.
 */
import { MusterError } from '@muster/common/errors';
import { clusterSubject } from '@muster/common/eventKinds';
import type { JobId, NodeName, RandomBytes } from '@muster/common/ids';
import { currentAttempt } from '../model.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import type { ClusterState, Draft } from '../state/state.ts';
import type { Store } from '../store/store.ts';
import type { MetaStore } from './metaStore.ts';
import type { Proofs } from './proofs.ts';
import { type AgentAccount, type Claims, claimText, jumpMax, straysMax, testimonyOf } from './testimony.ts';

/** Facts that agents have proven and the store does not know. Their number is bounded by what agents were once sent. */
interface Ahead {
  /** The first that proved it. */
  readonly node: NodeName;
  readonly highestTerm: number;
  /** Of jobs that had fewer attempts by the store. */
  readonly attempts: Readonly<Record<JobId, number>>;
  /** One of the jobs that the store knows nothing of. */
  readonly stray: JobId | null;
  /** The highest number of submission of such a job; 0: there is none. */
  readonly submitSeq: number;
  /** A term in which another coordinator on a copy of this store has welcomed `node`. Absent: there is none. */
  readonly otherTerm?: number;
  /** A continuity token of `node` that the store knows nothing of. Absent: there is none. */
  readonly token?: NewerToken;
}

/** A continuity token that this store proves to be its own, and has not issued. */
export interface NewerToken {
  /** Its number. */
  readonly presented: number;
  /** The number of the newest token that the store knows of. */
  readonly newest: number;
}

interface StoredTerms {
  readonly term: number;
  /** null: the store is as new as what was proven. */
  readonly ahead: Ahead | null;
  /** Jobs submitted up to this number and unknown to the store were looked at when it was advanced. */
  readonly gonePastSubmitSeq: number;
  /** Random parts of the newest terms of this store, by number. Absent: of before there were any. */
  readonly runs?: Readonly<Record<string, string>>;
  /** After an advance: how long attempts may run that it went past. 0: that is over. */
  readonly quietMs: number;
}

const runBytes = 6;
export const termsMeta = 'terms';
const firstTerms: StoredTerms = { term: 0, ahead: null, gonePastSubmitSeq: 0, quietMs: 0 };

export interface TermParts {
  readonly store: Pick<Store, 'readMeta' | 'writeMeta'>;
  readonly state: Pick<ClusterState, 'jobs' | 'outcomes' | 'nodes' | 'lastSubmitSeq'>;
  readonly proofs: Proofs;
  readonly random: RandomBytes;
  readonly monotonicMs: () => number;
  readonly onWriteFailed: (error: unknown) => void;
}

export class Terms {
  private readonly parts: TermParts;
  private readonly accepted: AcceptedStrays;
  /** The newest unproven claims, by node. */
  private readonly doubts = new Map<NodeName, Claims>();
  /** Random part of the terms of this process. */
  private readonly ownRun: string;
  private stored: StoredTerms;
  private quietUntilMs: number;
  private writing: Promise<void> = Promise.resolve();

  private constructor(parts: TermParts, stored: StoredTerms, accepted: AcceptedStrays) {
    this.parts = parts;
    this.stored = stored;
    this.accepted = accepted;
    this.ownRun = Buffer.from(parts.random(runBytes)).toString('base64url');
    this.quietUntilMs = parts.monotonicMs() + stored.quietMs;
  }

  /** Begins the next term: it is stored when this resolves. */
  static async begin(parts: TermParts): Promise<Terms> {
    const text = await parts.store.readMeta(termsMeta);
    const before = text === null ? firstTerms : (JSON.parse(text) as StoredTerms);
    const accepted = await AcceptedStrays.open(parts.store, parts.state.nodes.keys());
    const terms = new Terms(parts, before, accepted);
    await terms.change((stored) => withNextTerm(stored, stored.term + 1, terms.ownRun));
    return terms;
  }

  /** The proof that a node was welcomed in this term, by this coordinator. */
  proofFor(node: NodeName): string {
    return this.parts.proofs.ofTerm(node, this.term, this.ownRun);
  }

  get term(): number {
    return this.stored.term;
  }

  /**
   * Checks the account of every Hello, before the Hello has any effect.
   * @returns what its agent claims without proof, for which its node gets no new work. null: nothing
   */
  checkAccount(account: AgentAccount): string | null {
    const { state, proofs } = this.parts;
    const { node } = account;
    const { term, gonePastSubmitSeq, runs = {} } = this.stored;
    const known = { term, runs, gonePastSubmitSeq, state, accepted: this.accepted.of(node) };
    const { proven, unproven } = testimonyOf(account, known, proofs);
    if (unproven === null) this.doubts.delete(node);
    else this.doubts.set(node, unproven);
    if (proven !== null) this.recordProven(node, proven);
    return unproven === null ? null : `${claimText(unproven, term)}, and cannot prove it`;
  }

  /** An agent has a continuity token that was issued after this store was copied. */
  noteNewerToken(node: NodeName, token: NewerToken): void {
    this.record((stored) => withNewerToken(stored, node, token));
  }

  private recordProven(node: NodeName, proven: Claims): void {
    this.record((stored) => withProven(stored, node, proven));
  }

  private record(next: (stored: StoredTerms) => StoredTerms): void {
    if (next(this.stored) === this.stored) return;
    // In force at once, because it only forbids; stored so that it outlives restarts, in which our own term grows past the
    // proven one.
    this.stored = next(this.stored);
    this.change(next).catch(this.parts.onWriteFailed);
  }

  /** Why nothing may be started; null: it may. */
  paused(): string | null {
    const older = this.olderText();
    if (older !== null) {
      return (
        `the store is older than the cluster (${older}), as after a restore from a backup; once all ` +
        'nodes are back: muster store advance'
      );
    }
    const quietMs = this.quietUntilMs - this.parts.monotonicMs();
    if (quietMs <= 0) return null;
    const seconds = Math.ceil(quietMs / 1_000);
    return `the store was advanced; waiting for unknown attempts to expire in ${seconds} s; no action needed`;
  }

  /** By proof, or by the claims of most nodes. null: it is not. */
  private olderText(): string | null {
    const { ahead, term } = this.stored;
    if (ahead !== null) return newerText(ahead, term);
    const doubted = this.doubtedNodes();
    const [first] = doubted;
    if (first === undefined || doubted.length * 2 <= this.parts.state.nodes.size) return null;
    const [node, claims] = first;
    return `${node} reports that ${claimText(claims, term)}`;
  }

  /** Those that are still nodes of this cluster. */
  private doubtedNodes(): readonly (readonly [NodeName, Claims])[] {
    if (this.doubts.size === 0) return [];
    return [...this.doubts].filter(([node]) => this.parts.state.nodes.has(node));
  }

  /**
   * Raises the term and the attempt numbers above all that agents have claimed. A job that had a later attempt than the store
   * knows loses the attempt in the store, which must have ended, and goes back into the queue. An unproven claim counts only
   * for the tasks of the node that makes it: attempts that run on other nodes stay as they are.
   * @param quietMs nothing is started for this many milliseconds from now on: skipped attempts may still hold a lease
   * @returns nodes whose claims were accepted; they must be asked again what they know
   * @throws {MusterError} `failed_precondition` when no agent claims more than the store knows
   */
  async advance(
    quietMs: number,
    run: (command: (draft: Draft, nowMs: number) => void) => Promise<void>,
    by: string,
  ): Promise<readonly NodeName[]> {
    const { ahead } = this.stored;
    const doubted = this.doubtedNodes();
    if (ahead === null && doubted.length === 0) {
      throw new MusterError(
        'failed_precondition',
        'no node knows more than the store, so there is nothing to advance; after a restore from a backup try ' +
          'again once the nodes are back',
      );
    }
    const claimedTerms = [ahead?.highestTerm ?? 0, ...doubted.map(([, claims]) => claims.highestTerm)];
    // From here on the pause is ours to end: claims that arrive meanwhile are recorded as before.
    await this.change((stored) => ({
      ...withNextTerm(stored, Math.max(stored.term, ...claimedTerms) + 1, this.ownRun),
      quietMs,
    }));
    const { term } = this.stored;
    await run((draft, nowMs) => advanceJobs(draft, { ahead, doubted, term, by }, nowMs));
    for (const [node, { strays }] of doubted) await this.accepted.accept(node, strays);
    for (const [node] of doubted) this.doubts.delete(node);
    this.quietUntilMs = this.parts.monotonicMs() + quietMs;
    await this.change((stored) => ({
      ...stored,
      ahead: stored.ahead === ahead ? null : stored.ahead,
      gonePastSubmitSeq: Math.max(stored.gonePastSubmitSeq, ahead?.submitSeq ?? 0),
    }));
    return doubted.map(([node]) => node);
  }

  /** One pass; idempotent. */
  run(): readonly Promise<void>[] {
    if (this.stored.quietMs === 0 || this.parts.monotonicMs() < this.quietUntilMs) return [];
    return [this.change((stored) => ({ ...stored, quietMs: 0 }))];
  }

  private change(next: (stored: StoredTerms) => StoredTerms): Promise<void> {
    const written = this.writing.then(async () => {
      const changed = next(this.stored);
      await this.parts.store.writeMeta(termsMeta, JSON.stringify(changed));
      // Claims that arrived while that was being written are kept.
      this.stored = next(this.stored);
    });
    this.writing = written.catch(() => {});
    return written;
  }
}

/** @returns the same object if the account changes nothing */
function withProven(stored: StoredTerms, node: NodeName, claimed: Claims): StoredTerms {
  const { ahead } = stored;
  const changes = [...claimed.attempts].filter(([id, number]) => number > (ahead?.attempts[id] ?? 0));
  const isChange =
    changes.length > 0 ||
    claimed.highestTerm > (ahead?.highestTerm ?? stored.term) ||
    claimed.submitSeq > (ahead?.submitSeq ?? stored.gonePastSubmitSeq) ||
    claimed.otherTerm > (ahead?.otherTerm ?? 0);
  if (!isChange) return stored;
  const [stray = null] = claimed.strays;
  return {
    ...stored,
    ahead: {
      ...ahead,
      node: ahead?.node ?? node,
      highestTerm: Math.max(claimed.highestTerm, ahead?.highestTerm ?? 0),
      attempts: { ...ahead?.attempts, ...Object.fromEntries(changes) },
      stray: ahead?.stray ?? stray,
      submitSeq: Math.max(claimed.submitSeq, ahead?.submitSeq ?? 0),
      ...(claimed.otherTerm === 0 ? {} : { otherTerm: claimed.otherTerm }),
    },
  };
}

/** Terms whose random part is kept: an agent that was away for longer than so many starts is only compared by number. */
const runsKept = 64;

function withNextTerm(stored: StoredTerms, term: number, run: string): StoredTerms {
  const runs: Readonly<Record<string, string>> = { ...stored.runs, [term]: run };
  const newest = Object.entries(runs)
    .sort(([a], [b]) => Number(b) - Number(a))
    .slice(0, runsKept);
  return { ...stored, term, runs: Object.fromEntries(newest) };
}

/** Returns the same object if a newer token is known already. */
function withNewerToken(stored: StoredTerms, node: NodeName, token: NewerToken): StoredTerms {
  const { ahead } = stored;
  if (ahead?.token !== undefined) return stored;
  const nothing = { highestTerm: 0, attempts: {}, stray: null, submitSeq: 0 };
  return { ...stored, ahead: { ...(ahead ?? { ...nothing, node }), token } };
}

function newerText({ node, highestTerm, attempts, stray, token, otherTerm }: Ahead, term: number): string {
  const [job] = Object.entries(attempts);
  if (otherTerm !== undefined)
    return `${node} was welcomed in term ${otherTerm} by another coordinator, on a copy of this data directory: stop that one`;
  if (highestTerm > term) return `${node} was welcomed in term ${highestTerm} and this is term ${term}`;
  if (job !== undefined) return `${node} has attempt ${job[1]} of ${job[0]}, which is later than the store's`;
  if (stray !== null) return `${node} has ${stray}, which is unknown to the store`;
  if (token !== undefined)
    return `${node} has continuity token ${token.presented}, and the newest of the store is ${token.newest}`;
  return `${node} has been welcomed in a later term`;
}

interface Advance {
  readonly ahead: Ahead | null;
  readonly doubted: readonly (readonly [NodeName, Claims])[];
  readonly term: number;
  readonly by: string;
}

function advanceJobs(draft: Draft, { ahead, doubted, term, by }: Advance, nowMs: number): void {
  const attempts = new Map(Object.entries(ahead?.attempts ?? {}) as [JobId, number][]);
  for (const [id, claimed] of attempts) raiseAttempt(draft, id, claimed, nowMs);
  for (const [node, claims] of doubted) {
    for (const [id, claimed] of claims.attempts) {
      const job = draft.job(id);
      const attempt = currentAttempt(job);
      // No claim of this node ends an attempt that runs on others.
      const isItsOwn = attempt === null || attempt.tasks.every((task) => task.node === node);
      if (job === undefined || !isItsOwn || claimed > job.lastAttempt + jumpMax) continue;
      raiseAttempt(draft, id, claimed, nowMs);
      attempts.set(id, Math.max(claimed, attempts.get(id) ?? 0));
    }
  }
  const nodes = doubted.map(([node]) => node);
  const strays = doubted.reduce((sum, [, claims]) => sum + claims.strays.size, 0);
  const data = { term, by, attempts: Object.fromEntries(attempts), nodes, strays };
  draft.emit({ kind: 'store.advanced', subject: clusterSubject, data }, nowMs);
}

function raiseAttempt(draft: Draft, jobId: JobId, claimed: number, nowMs: number): void {
  const before = draft.job(jobId);
  if (before === undefined || before.lastAttempt >= claimed) return;
  const attempt = currentAttempt(before);
  if (attempt !== null) {
    // No user has changed what the job resumes from.
    const from = before.resumeChoice;
    if (before.state.kind !== 'stopping') applyJobEvent(draft, jobId, { kind: 'requeue', from }, nowMs);
    for (const { nodeRank, node } of attempt.tasks) {
      const message = `attempt ${claimed} was seen on a node, so attempt ${attempt.number} on ${node} had ended before`;
      applyJobEvent(draft, jobId, { kind: 'taskLost', attempt: attempt.number, nodeRank, message }, nowMs);
    }
  }
  const job = draft.job(jobId);
  if (job !== undefined && job.lastAttempt < claimed) draft.putJob({ ...job, lastAttempt: claimed });
}

/**
 * Unknown jobs whose tasks nodes still report, and which an administrator has accepted. The store has one row for each such
 * node; the next acceptance for the node replaces it.
 */
const metaName = (node: NodeName) => `accepted_strays/${node}`;
const none: ReadonlySet<JobId> = new Set();

class AcceptedStrays {
  private readonly store: Pick<MetaStore, 'writeMeta'>;
  private readonly byNode: Map<NodeName, ReadonlySet<JobId>>;

  private constructor(store: Pick<MetaStore, 'writeMeta'>, byNode: Map<NodeName, ReadonlySet<JobId>>) {
    this.store = store;
    this.byNode = byNode;
  }

  static async open(
    store: Pick<MetaStore, 'readMeta' | 'writeMeta'>,
    nodes: Iterable<NodeName>,
  ): Promise<AcceptedStrays> {
    const byNode = new Map<NodeName, ReadonlySet<JobId>>();
    for (const node of nodes) {
      const text = await store.readMeta(metaName(node));
      if (text !== null) byNode.set(node, new Set(JSON.parse(text) as JobId[]));
    }
    return new AcceptedStrays(store, byNode);
  }

  of(node: NodeName): ReadonlySet<JobId> {
    return this.byNode.get(node) ?? none;
  }

  /** Beside those that were accepted before; of too many, these are kept. */
  async accept(node: NodeName, strays: ReadonlySet<JobId>): Promise<void> {
    if (strays.size === 0) return;
    const kept = [...new Set([...strays, ...this.of(node)])].slice(0, straysMax);
    await this.store.writeMeta(metaName(node), JSON.stringify(kept));
    this.byNode.set(node, new Set(kept));
  }
}
