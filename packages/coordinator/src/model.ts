/**
 * What the coordinator remembers. Values are immutable: a change is a new value, so a batch that could not be
 * committed is dropped without a trace. A state carries exactly the data that exists in it.
 */

import type { Condition } from '@muster/common/conditions';
import type { Endpoint, LeftOut, PathResult, PreflightResult } from '@muster/common/gangs';
import type { NodeInventory } from '@muster/common/hardware';
import type { ArrayId, JobId, NodeName } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import type { AttemptStateKind, TaskStateKind } from '@muster/common/states';
import type { Cause, TaskEnd } from '@muster/common/views';

export interface Job {
  readonly id: JobId;
  /** Order of submission; ties in every ordering end here or at the id. */
  readonly submitSeq: number;
  readonly spec: JobSpec;
  readonly array: JobArray | null;
  readonly requeuedFrom: JobId | null;
  readonly submittedAtMs: number;
  readonly state: JobState;
  /** Number of the newest attempt ever allocated, 0 before the first: the fencing token, never reset. */
  readonly lastAttempt: number;
  /** Attempts that count against `retry.maxAttempts`. Infrastructure that failed before release does not count. */
  readonly failures: number;
  /** Attempts in a row that ended before they were released; drives their backoff. */
  readonly failedStarts: number;
  /** Nodes that attempts failed on before they began; the next one does without them where others could take it. */
  readonly leftOut: readonly LeftOut[];
}

export interface JobArray {
  readonly id: ArrayId;
  readonly index: number;
  readonly size: number;
}

export type JobState =
  | {
      readonly kind: 'queued';
      /** To wait before the next attempt, from entering this state; counted anew after a coordinator restart. */
      readonly backoffMs: number;
      /** Why the attempt before ended; null on the first. */
      readonly lastCause: Cause | null;
    }
  /** The attempt is allocated, or claimed and released, and not every task runs yet. */
  | { readonly kind: 'starting'; readonly attempt: Attempt }
  /** Every task of the attempt has been seen running (or has already ended well). */
  | { readonly kind: 'running'; readonly attempt: Attempt }
  /** The attempt's remaining tasks are being stopped; `outcome` is decided and follows when the last has ended. */
  | { readonly kind: 'stopping'; readonly attempt: Attempt; readonly outcome: Outcome }
  | { readonly kind: 'succeeded'; readonly endedAtMs: number }
  | { readonly kind: 'failed'; readonly endedAtMs: number; readonly cause: Cause }
  | { readonly kind: 'cancelled'; readonly endedAtMs: number; readonly cause: Cause };

/** Where a stopping attempt leads. */
export type Outcome =
  | {
      readonly next: 'failed';
      readonly cause: Cause;
      /** Its user has stopped it, too: should another cause come to light, it is not run again for that. */
      readonly isWanted?: true;
    }
  | { readonly next: 'cancelled'; readonly cause: Cause }
  /** Its work is done, and what is left of the gang only served it. */
  | { readonly next: 'succeeded'; readonly cause: null }
  | { readonly next: 'queued'; readonly cause: Cause; readonly backoffMs: number; readonly charge: Charge };

/** The budget that an attempt is booked on when its job goes back to the queue. */
export type Charge =
  /** The user's program failed: counts against `retry.maxAttempts`. */
  | 'failure'
  /** Nothing of the user's ran: only lengthens the backoff. */
  | 'failed_start'
  /** A node of it was lost: nothing that the program could have done better. */
  | 'node_loss'
  /** Asked for by a person or the scheduler. */
  | 'nothing';

export interface Attempt {
  readonly number: number;
  readonly state: AttemptStateKind;
  /** By node rank, without holes. */
  readonly tasks: readonly Task[];
  readonly allocatedAtMs: number;
  readonly runningAtMs: number | null;
  readonly endedAtMs: number | null;
  /** Why it ended; null until then, and for success. */
  readonly cause: Cause | null;
  /** From the claim of rank 0, at the address chosen for it; null until then. */
  readonly master: { readonly addr: string; readonly port: number } | null;
  /** How long its tasks may run after a question that was answered. null: they are never fenced. */
  readonly leaseMs: number | null;
  /** Measure the paths between its nodes before it is released. */
  readonly preflight: boolean;
  /** The addresses whose paths are being tried, or were found good. null: not every task has claimed, or it is alone. */
  readonly network: AttemptNetwork | null;
}

/** A choice of one address for each node of a gang. */
export interface AttemptNetwork {
  /** 1, 2, 3 …: another choice is another round. */
  readonly round: number;
  /** By node rank. */
  readonly addresses: readonly string[];
}

export interface Task {
  readonly nodeRank: number;
  readonly node: NodeName;
  readonly gpuUuids: readonly string[];
  readonly cpus: number;
  readonly memoryMb: number;
  readonly state: TaskStateKind;
  /** Present exactly when `state` is `ended`. */
  readonly exit: TaskEnd | null;
  /** From its claim: where the others of its gang may reach its node, best first. */
  readonly endpoints: readonly Endpoint[];
  /** From its claim: answers its peers until the release. null: it is alone, or has not claimed. */
  readonly testPort: number | null;
  /** What its node found about its paths in this round. null: it has not said so yet, or was not asked. */
  readonly paths: readonly PathResult[] | null;
  /** What its node measured in this round. null: as with `paths`. */
  readonly preflight: PreflightResult | null;
  /**
   * Of a bad end: when the first thing went wrong on its node, by this coordinator's wall clock as near as can be told.
   * For the order of failures only. null: nothing is known.
   */
  readonly failedAtMs: number | null;
}

export interface Node {
  readonly name: NodeName;
  readonly instanceId: string;
  readonly bootId: string;
  readonly agentVersion: string;
  readonly inventory: NodeInventory;
  /** Critical ones first. */
  readonly conditions: readonly Condition[];
  readonly joinedAtMs: number;
}

/** A fact to be stored and published with the change it describes. */
export interface NewEvent {
  /** `job.submitted`, `attempt.running`, `node.silent` … */
  readonly kind: string;
  /** Job id or node name. */
  readonly subject: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface StoredEvent extends NewEvent {
  readonly seq: number;
  readonly id: string;
  readonly subjectSeq: number;
  readonly timeMs: number;
}

/** An active job's attempt, or null: queued and ended jobs have none that may act. */
export function currentAttempt(job: Job | undefined): Attempt | null {
  if (job === undefined) return null;
  const { state } = job;
  return state.kind === 'starting' || state.kind === 'running' || state.kind === 'stopping'
    ? state.attempt
    : null;
}

/** Released: every task had claimed and the nodes got leave to start, so tasks may be executing. */
export function isReleased(attempt: Attempt): boolean {
  return attempt.state === 'claimed' || attempt.state === 'running';
}
