/**
 * What the coordinator remembers. Values are immutable: a change is a new value, so a batch that could not be
 * committed is dropped without a trace. A state carries exactly the data that exists in it.
 */

import type { ResumeChoice } from '@muster/common/checkpoints';
import type { Condition } from '@muster/common/conditions';
import type { EventKind } from '@muster/common/eventKinds';
import type { Endpoint, PathResult, PreflightResult } from '@muster/common/gangs';
import type { NodeInventory } from '@muster/common/hardware';
import type { ArrayId, JobId, NodeName } from '@muster/common/ids';
import type { TokenBudget } from '@muster/common/people';
import type { EndedPhase } from '@muster/common/phases';
import type { CauseKind } from '@muster/common/spec/causes';
import type { JobSpec } from '@muster/common/spec/types';
import type { AttemptFacts, Cause, Drain, JobFacts, LedgerEntry, TaskFacts } from '@muster/common/views';

/** A job as it is stored. Its facts are shown as they are. */
export interface Job extends JobFacts {
  readonly id: JobId;
  readonly spec: JobSpec;
  readonly array: JobArray | null;
  readonly requeuedFrom: JobId | null;
  readonly user: string;
  readonly state: JobState;
  /** Number of the newest attempt ever allocated, 0 before the first: the fencing token, never reset. */
  readonly lastAttempt: number;
  /** Attempts in a row that ended before they were released; drives their backoff. */
  readonly failedStarts: number;
  /** What its next attempt begins from. */
  readonly resumeChoice: ResumeChoice;
  /** The job whose checkpoint directory it uses, where its node keeps one: of a requeued job its predecessor's. */
  readonly checkpointJobId: JobId;
  /**
   * Jobs besides that one whose checkpoints may be in its directory, newest last: the job starts from scratch where they
   * saved.
   */
  readonly lineage: readonly JobId[];
  /** The failures of the last attempts without progress between them, newest last. */
  readonly recentFailures: readonly FailureRecord[];
  /** Bad ends in a row of attempts that had run, whatever they are booked on, without progress: they open the breaker. */
  readonly failuresInRow: number;
  /** By kind and cause, each once. What it has used since the last change of its state is not in it yet. */
  readonly ledger: readonly LedgerEntry[];
  /** Where it is in its phases. null: it has none. */
  readonly phase: PhaseProgress | null;
  /** Id of the budget that it counts in. null: none. */
  readonly budget: string | null;
  /** Of the operation that has submitted it, as `traceparentText` writes it. null: it has a trace of its own. */
  readonly traceparent: string | null;
}

/** The attempt that has ended a phase, and where its output ended. */
export interface AwaitedVerdict {
  readonly attempt: number;
  readonly step: number | null;
  /** Absent: of a version that did not read them. */
  readonly tokens?: number | null;
}

/** Where a job is in its phases. It stays as it was when the job has ended. */
export interface PhaseProgress {
  /** Of the current phase, or of the last, from 0. */
  readonly index: number;
  /** Where that begins, in steps or tokens from the beginning of the training. */
  readonly start: number;
  /** The first attempt of the phase. null: it has had none. */
  readonly firstAttempt: number | null;
  /** How often it was extended. */
  readonly extensions: number;
  /** It has ended well, and its criterion was not judged yet: until then the job gets no attempt. null: no verdict is due. */
  readonly awaiting: AwaitedVerdict | null;
  /** The phases that have ended, oldest first. */
  readonly ended: readonly EndedPhase[];
}

/** The budget of a token and of those that it was rotated to, with what jobs that have ended have used of it. */
export interface Budget {
  /** That of the first token. */
  readonly id: string;
  readonly limits: TokenBudget;
  /** Of jobs that have ended. Those that have not are counted when it matters. */
  readonly gpuSeconds: number;
  readonly jobsTotal: number;
}

/** How an attempt failed. Two equal failures from one checkpoint make that checkpoint suspect. */
export interface FailureRecord {
  readonly cause: CauseKind;
  /** The name of the checkpoint that the attempt began from. It is null for an attempt that began from scratch. */
  readonly resume: string | null;
  /** The node that caused the failure, if the evidence names one. */
  readonly node: NodeName | null;
}

/** Older ones have long lost their checkpoints to those that followed. */
export const lineageMax = 16;

/** Older ones stay where they are, on the node's disk and in its index. */
export const checkpointsMax = 64;

/** Jobs that are no newer than that get no attempt with a lower number: the store was restored, and knows of fewer. */
export interface AttemptFloor {
  readonly number: number;
  readonly submitSeqMax: number;
}

export interface JobArray {
  readonly id: ArrayId;
  readonly index: number;
  readonly size: number;
}

export type JobState =
  | {
      readonly kind: 'queued';
      /** Wait before the next attempt, from entering this state; it starts from the beginning after a coordinator restart. */
      readonly backoffMs: number;
      /** Why the attempt before ended; null on the first. */
      readonly lastCause: Cause | null;
      /** Wall clock; for the ledger and for people. */
      readonly sinceMs: number;
      /** The wait is the breaker's. */
      readonly breakerOpen: boolean;
    }
  /** The attempt is allocated or released, and not every task runs yet. */
  | { readonly kind: 'starting'; readonly attempt: Attempt }
  /** Every task of the attempt has been seen running (or has already ended well). */
  | { readonly kind: 'running'; readonly attempt: Attempt }
  /** The attempt's remaining tasks are being stopped; `outcome` is decided and follows when the last has ended. */
  | {
      readonly kind: 'stopping';
      readonly attempt: Attempt;
      readonly outcome: Outcome;
      /** Its user has requeued it while this attempt was there: what the attempt saves does not undo `resumeChoice`. */
      readonly isRequeued?: true;
    }
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
  /** A node of it was lost, or its GPU or network failed: nothing that the program could have done better. */
  | 'node_loss'
  /** The attempt was preempted for another job, or for the drain of a node. */
  | 'preemption'
  /** Asked for by a person or the scheduler. */
  | 'nothing';

/** An attempt as it is stored. Its facts are shown as they are. */
export interface Attempt extends AttemptFacts {
  /** By node rank, without holes. */
  readonly tasks: readonly Task[];
  /** From rank 0 once it is prepared, at the address chosen for it; null until then. */
  readonly master: { readonly addr: string; readonly port: number } | null;
  /** Measure the paths between its nodes before it is released. */
  readonly preflight: boolean;
  /** Wall clock: when its newest verified checkpoint was complete. null: it has saved none. For the ledger. */
  readonly savedAtMs: number | null;
  /** Wall-clock time of the first order to stop its tasks. It is null before that. */
  readonly stoppingAtMs: number | null;
  /** A checkpoint begun after that is safe: the rest of the grace is of no use. */
  readonly savedAfterStop: boolean;
  /** The addresses whose paths are being tried, or were found good. null: not every task is prepared, or it is alone. */
  readonly network: AttemptNetwork | null;
}

/** A choice of one address for each node of a gang. */
export interface AttemptNetwork {
  /** 1, 2, 3 …: another choice is another round. */
  readonly round: number;
  /** By node rank. */
  readonly addresses: readonly string[];
}

/** A task as it is stored. Its facts are shown as they are. */
export interface Task extends TaskFacts {
  readonly node: NodeName;
  readonly cpus: number;
  readonly memoryMb: number;
  /** Once prepared: where the others of its gang may reach its node, best first. */
  readonly endpoints: readonly Endpoint[];
  /** Once prepared: answers its peers until the release. null: it is alone, or not prepared. */
  readonly testPort: number | null;
  /** The results of its node for the paths of this round. They are null until the node reports them. */
  readonly paths: readonly PathResult[] | null;
  /** What its node measured in this round. null: as with `paths`. */
  readonly preflight: PreflightResult | null;
  /**
   * Of a bad end: when the first thing went wrong on its node, by this coordinator's wall clock as near as is known.
   * For the order of failures only. null: nothing is known.
   */
  readonly failedAtMs: number | null;
  /** When it began, by this coordinator's clock. Absent: it has not begun, or an earlier version has not recorded it. */
  readonly startedAtMs?: number;
  /** Of a task that has ended: how long it ran, measured by its node. Absent: unknown. */
  readonly ranForMs?: number;
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
  /** The drain that keeps new work away from the node. It is null for a node that is not drained. */
  readonly drain: Drain | null;
  /** Null until the first token: the next agent with the credential is the first of its chain. */
  readonly tokens: TokenChain | null;
  /** The machine of its agent. Null for an agent of an earlier release. */
  readonly origin: MachineOrigin | null;
}

/** The continuity tokens of one node since it joined. */
export interface TokenChain {
  /** Random. Another one for each join, so that tokens from before a join mean nothing after it. */
  readonly id: string;
  /** Number of the token that was offered last; 0: none yet. */
  readonly issued: number;
  /** The token that was confirmed last. Null while none was: any agent with the credential is the first. */
  readonly current: string | null;
  /** The token that was offered last and is not confirmed. Null if there is none. */
  readonly pending: string | null;
}

/** What an agent tells of its machine, by which another machine is told from a reboot. */
export interface MachineOrigin {
  readonly hostName: string;
  /** Null if the agent cannot read it. */
  readonly firmwareUuid: string | null;
  /** Hardware addresses of its network cards. */
  readonly cardAddresses: readonly string[];
  /** The address that the agent connected from. Null if unknown. */
  readonly peer: string | null;
}

/** An agent that says Hello, as it presents itself. */
export interface Presented {
  readonly name: NodeName;
  readonly instanceId: string;
  readonly bootId: string;
  /** Null for an agent of an earlier release, which keeps no tokens. */
  readonly origin: MachineOrigin | null;
}

export interface StoredEvent {
  readonly kind: EventKind;
  /** Job id, node name or `clusterSubject`. */
  readonly subject: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly seq: number;
  readonly id: string;
  readonly subjectSeq: number;
  readonly timeMs: number;
  /** On whose behalf, and from where, as in `CallerName`. */
  readonly by: string;
  readonly peer: string;
  /** That of its job. Absent: the job has a trace of its own, or it is no event of a job. */
  readonly traceparent?: string;
}

/** An active job's attempt, or null: queued and ended jobs have none that may act. */
export function currentAttempt(job: Job | undefined): Attempt | null {
  if (job === undefined) return null;
  const { state } = job;
  return state.kind === 'starting' || state.kind === 'running' || state.kind === 'stopping'
    ? state.attempt
    : null;
}

/** Released: every task was prepared and the nodes got leave to start, so tasks may be executing. */
export function isReleased(attempt: Attempt): boolean {
  return attempt.state === 'released' || attempt.state === 'running';
}
