/**
 * Judges what an agent reports in its Hello and the store does not know. An agent gives an account of the tasks of its own
 * node. A proof that this store gave it a task, or welcomed it in a term, shows how old the store is; without proof, the
 * account concerns that node only. The cost is bounded for every account. Pure, apart from the hash.
 */

import type { Condition } from '@muster/common/conditions';
import { type JobId, type NodeName, type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { ClusterState } from '../state/state.ts';
import type { Proofs } from './proofs.ts';

/** What an agent reports of itself in its Hello. */
export interface AgentAccount {
  readonly node: NodeName;
  /** Term of the newest coordinator that it was welcomed by; 0: of none. */
  readonly highestTerm: number;
  readonly termProof: string;
  readonly observed: readonly { readonly task: TaskRef }[];
  readonly proofs: ReadonlyMap<TaskKey, string>;
}

/** What an agent knows and the store does not. */
export interface Claims {
  /** Above the store's; 0: none. */
  readonly highestTerm: number;
  /** Of jobs that have had fewer attempts by the store. */
  readonly attempts: ReadonlyMap<JobId, number>;
  /** Jobs that the store does not know, at most `straysMax`. */
  readonly strays: ReadonlySet<JobId>;
  /** There are more of them than that. */
  readonly hasMoreStrays: boolean;
  /** A term of this store's numbers in which another coordinator has welcomed the agent, on a copy of the store. 0: none. */
  readonly otherTerm: number;
  /** Of proven strays: the highest number of submission, which the store has not come to. 0: none. */
  readonly submitSeq: number;
}

interface Testimony {
  /** The store is older than these. null: it is not, by anything that is proven. */
  readonly proven: Claims | null;
  /** Of a liar, of an agent with the data directory of another cluster, or from before there were proofs. null: nothing. */
  readonly unproven: Claims | null;
}

/** What the store knows. */
interface Known {
  readonly term: number;
  /** Random parts of its newest terms, by number. */
  readonly runs: Readonly<Record<string, string>>;
  readonly state: Pick<ClusterState, 'jobs' | 'outcomes' | 'lastSubmitSeq'>;
  /** Jobs with numbers of submission up to here were gone past when the store was advanced. */
  readonly gonePastSubmitSeq: number;
  /** Jobs of this node that nobody knows, and that were accepted when the store was advanced. */
  readonly accepted: ReadonlySet<JobId>;
}

/** Of one node. A person who accepts more of them than this has the wrong agent. */
export const straysMax = 256;
/** The number of tasks of one Hello that are examined. The rest is ignored. */
const observedTasksMax = 4_096;
/** Neither a term nor an attempt is ever this far ahead of the store. */
export const jumpMax = 1_000_000;

export function testimonyOf(account: AgentAccount, known: Known, proofs: Proofs): Testimony {
  const proven = new ClaimsSoFar();
  const unproven = new ClaimsSoFar();
  const { node, highestTerm, termProof } = account;
  if (highestTerm > known.term) {
    const isProven = highestTerm <= known.term + jumpMax && proofs.isOfTerm(node, highestTerm, termProof);
    (isProven ? proven : unproven).highestTerm = Math.min(highestTerm, known.term + jumpMax);
  }
  const ownRun = known.runs[highestTerm];
  const run = ownRun === undefined ? null : proofs.runOfTerm(node, highestTerm, termProof);
  if (run !== null && run !== '' && run !== ownRun) proven.otherTerm = highestTerm;
  for (const { task } of account.observed.slice(0, observedTasksMax)) {
    const job = known.state.jobs.get(task.jobId);
    if (job !== undefined && task.attempt > job.lastAttempt) {
      const isNear = task.attempt <= job.lastAttempt + jumpMax;
      const submitSeq = isNear ? submitSeqOf(account, task, proofs) : null;
      (submitSeq === null ? unproven : proven).addAttempt(task);
    }
    if (job !== undefined || known.state.outcomes.has(task.jobId)) continue;
    const submitSeq = submitSeqOf(account, task, proofs);
    // One that the store has come past has ended and been forgotten here, or was skipped by an administrator.
    const knownSeq = Math.max(known.state.lastSubmitSeq, known.gonePastSubmitSeq);
    if (submitSeq !== null && submitSeq <= knownSeq) continue;
    if (submitSeq !== null) proven.addStray(task.jobId, submitSeq);
    else if (!known.accepted.has(task.jobId)) unproven.addStray(task.jobId, 0);
  }
  return { proven: proven.orNull(), unproven: unproven.orNull() };
}

/** One of the claims as a text for users. @param term the store's */
export function claimText(claims: Claims, term: number): string {
  const { highestTerm, attempts, strays } = claims;
  const [attempt] = attempts;
  const [stray] = strays;
  if (highestTerm > term) return `it was welcomed in term ${highestTerm} and this is term ${term}`;
  if (attempt !== undefined)
    return `it has attempt ${attempt[1]} of ${attempt[0]}, which is later than the store's`;
  return `it has ${stray ?? 'a job'}, which is unknown to the store`;
}

function submitSeqOf({ node, proofs }: AgentAccount, task: TaskRef, known: Proofs): number | null {
  const proof = proofs.get(taskKey(task));
  return proof === undefined ? null : known.submitSeqOf(node, task, proof);
}

class ClaimsSoFar implements Claims {
  highestTerm = 0;
  readonly attempts = new Map<JobId, number>();
  readonly strays = new Set<JobId>();
  hasMoreStrays = false;
  submitSeq = 0;
  otherTerm = 0;

  addAttempt({ jobId, attempt }: TaskRef): void {
    this.attempts.set(jobId, Math.max(this.attempts.get(jobId) ?? 0, attempt));
  }

  addStray(jobId: JobId, submitSeq: number): void {
    this.submitSeq = Math.max(this.submitSeq, submitSeq);
    if (this.strays.size < straysMax) this.strays.add(jobId);
    else if (!this.strays.has(jobId)) this.hasMoreStrays = true;
  }

  orNull(): Claims | null {
    const isEmpty = this.attempts.size === 0 && this.strays.size === 0;
    return this.highestTerm === 0 && this.otherTerm === 0 && isEmpty ? null : this;
  }
}

export const doubtKind = 'unproven_claims';

/** @param claim as `Terms.checkAccount` returns it */
export function doubtCondition(claim: string, nowMs: number): Condition {
  return {
    kind: doubtKind,
    gpuUuid: null,
    severity: 'critical',
    action: 'drain_node',
    message:
      `The agent reports that ${claim}: it gets no new tasks. If its data directory comes from another cluster, give it an ` +
      'empty one; if the store was restored from a backup: muster store advance',
    evidence: claim,
    sinceMs: nowMs,
    lastSeenAtMs: nowMs,
    count: 1,
    clears: 'when_gone',
    task: null,
  };
}
