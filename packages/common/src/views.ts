/**
 * What the API shows of the cluster: the messages of proto/muster/v1/types.proto in domain words. `wire/` maps them.
 * `-o json` prints these. Absent is null; times are epoch milliseconds.
 */
import type { Checkpoint, ChosenBecause } from './checkpoints.ts';
import type { Condition } from './conditions.ts';
import type { PathBandwidth, TaskFailure } from './gangs.ts';
import type { NodeInventory } from './hardware.ts';
import type { TaskRef } from './ids.ts';
import type { BudgetView } from './people.ts';
import type { PhasesView } from './phases.ts';
import type { Blame, CauseKind, Evidence } from './spec/causes.ts';
import type { AttemptStateKind, JobStateKind, NodeStateKind, TaskStateKind } from './states.ts';
import type { GpuUsage } from './telemetry.ts';
import type { EndOfRows, HangSign, TrainingProgress, TrainingSign } from './training.ts';

/** Why something ended. */
export interface Cause {
  readonly kind: CauseKind;
  /** One sentence for people, naming rank and node. */
  readonly message: string;
  readonly nodeRank: number | null;
  readonly node: string | null;
  /** What shows it. null: nothing beyond the message. */
  readonly evidence: Evidence | null;
  readonly blame: Blame;
}

/** A node that an attempt of a job failed on before it began: its next attempt does without, if others could take it. */
export interface ExcludedNode {
  readonly node: string;
  readonly cause: Cause;
}

/** The checkpoint that an attempt began from. */
export interface Resume extends ChosenBecause {
  /** Path below the job's checkpoint directory, or one of `ElsewhereName`. */
  readonly name: string;
  /** null: unknown. */
  readonly step: number | null;
}

/** The checkpoint that a job was submitted to continue from. */
export interface ResumedFrom extends Resume {
  /** The job that had saved it. null: it was given by its path. */
  readonly jobId: string | null;
}

export const ledgerKinds = [
  'productive',
  'queued',
  'starting',
  'preemption',
  'rollback',
  'hang',
  'failure',
] as const;
/**
 * What became of GPU-seconds. `productive`: work that a checkpoint or the end of the job keeps. `queued`: waited for, not held.
 * `starting`: held before it ran. The others were lost: done after the last checkpoint that was kept, when the attempt was
 * preempted, was rolled back after a divergence, hung, or failed.
 */
export type LedgerKind = (typeof ledgerKinds)[number];

export interface LedgerEntry {
  readonly kind: LedgerKind;
  /** With `failure`. */
  readonly cause: CauseKind | null;
  readonly gpuSeconds: number;
}

/** How a task ended. */
export interface TaskEnd extends EndOfRows {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly oomKilled: boolean;
  /** Wall clock: when its last process ended; on its node by the node's clock, else by the coordinator's. null: nobody saw it. */
  readonly finishedAtMs: number | null;
  /** The processes are gone and nobody kept the status. */
  readonly statusLost: boolean;
  /** Set when the task could not be started: nothing ran. */
  readonly startError: Cause | null;
  /** Bytes of output in all. */
  readonly logBytes: number;
  /** null: no GPUs, or nothing of them was read. */
  readonly gpuUsage: GpuUsage | null;
  /** Of a bad end: what the node knows of the first thing that went wrong there. null: nothing, or the end was good. */
  readonly failure: TaskFailure | null;
  /** Where its training was. null: its output shows none. */
  readonly training: TrainingProgress | null;
  /** What its agent has put into the store of its job. Empty: nothing was to be put there, or not all of it is there. */
  readonly artifacts: readonly StoredArtifact[];
}

/** An output of a task that is in the store, complete. */
export interface StoredArtifact {
  readonly name: string;
  readonly bytes: number;
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string;
}

/** What is recorded of a task, and shown as it is. */
export interface TaskFacts {
  readonly nodeRank: number;
  readonly node: string;
  readonly gpuUuids: readonly string[];
  readonly state: TaskStateKind;
  /** Present exactly when `state` is `ended`. */
  readonly exit: TaskEnd | null;
}

export interface TaskView extends TaskFacts {
  /** Its lease has run out on its node: it is there and runs no instruction. */
  readonly frozen: boolean;
  /** What its node is busy with before it is prepared. */
  readonly doing: string | null;
  /** Where the other nodes of the gang reach it. null: not chosen yet. */
  readonly address: string | null;
  /** The driver's numbers of its GPUs, in the order of `gpuUuids`. Empty: unknown, or in a list of jobs. */
  readonly gpuIndexes: readonly number[];
}

/** What was noticed in the output of an attempt: what distinguishes it from others, and where to go back to. */
export type AttemptSign = Pick<TrainingSign, 'kind' | 'step' | 'lastGoodStep'>;

/** What is recorded of an attempt, and shown as it is. */
export interface AttemptFacts {
  readonly number: number;
  readonly state: AttemptStateKind;
  /** Why it ended; null until then, and for success. */
  readonly cause: Cause | null;
  readonly allocatedAtMs: number;
  readonly runningAtMs: number | null;
  /** When the first training step of its output was printed. null: its output shows none. */
  readonly firstStepAtMs: number | null;
  readonly endedAtMs: number | null;
  /** The checkpoint that it began from. It is null for an attempt that began from scratch. */
  readonly resume: Resume | null;
  /** How long its tasks keep running without contact with the coordinator. null: as long as they like. */
  readonly leaseMs: number | null;
  /** What was noticed in its output, each once, oldest first. */
  readonly signs: readonly AttemptSign[];
  /** Wall-clock time at which it was last found to hang. null: never. */
  readonly hungAtMs: number | null;
}

export interface AttemptView extends AttemptFacts {
  readonly tasks: readonly TaskView[];
  readonly masterAddr: string | null;
  readonly masterPort: number | null;
  /** Of the tasks that have ended. */
  readonly gpuUsage: GpuUsage | null;
  /** A task of it hangs now. */
  readonly hangs: boolean;
}

export const pendingKinds = [
  'scheduling',
  'no_nodes',
  'never_fits',
  'drained',
  'no_gpus_free',
  'no_cpus_free',
  'no_memory_free',
  'node_full',
  'reserved',
  'dependency',
  'dependency_failed',
  'backoff',
  'paused',
  'topology',
  'preempting',
  'checkpoint',
  'circuit_open',
  'array_limit',
  'phase',
] as const;
export type PendingKind = (typeof pendingKinds)[number];

/** Why a queued job is not running, as data. */
export interface PendingReason {
  readonly kind: PendingKind;
  readonly message: string;
  /** What would have to change; null when nothing but time. */
  readonly remedy: string | null;
  /** With `backoff` and `circuit_open`: until the next attempt may start. */
  readonly waitMs?: number;
}

/** What is recorded of a job, and shown as it is. */
export interface JobFacts {
  readonly id: string;
  /** Order of submission; ties in every ordering end here or at the id. */
  readonly submitSeq: number;
  readonly submittedAtMs: number;
  /** Who submitted it, or requeued it as a new job. null: unknown. */
  readonly user: string | null;
  readonly array: { readonly id: string; readonly index: number; readonly size: number } | null;
  readonly requeuedFrom: string | null;
  /** The checkpoint that it was asked to continue from. It is null for a job that began from scratch. */
  readonly resumedFrom: ResumedFrom | null;
  /** Nodes on which attempts failed. The next attempt avoids them as long as other nodes could take it. */
  readonly excludedNodes: readonly ExcludedNode[];
  /** The newest ones, oldest first. */
  readonly checkpoints: readonly Checkpoint[];
  /** How many times the job was preempted. */
  readonly preemptions: number;
  /** The values of MUSTER_BATCH_SCALE and MUSTER_LR_SCALE for its next attempt. 1: as it was written. */
  readonly batchScale: number;
  readonly lrScale: number;
  /** Added to the `max_runtime` of each attempt. */
  readonly extraRuntimeMs: number;
  /** Attempts that count against `retry.max_attempts`, since a newer checkpoint. Infrastructure that failed before release does not. */
  readonly failures: number;
}

export interface JobView extends JobFacts {
  /** Of its trace: 32 hexadecimal digits. */
  readonly traceId: string;
  readonly name: string;
  readonly project: string;
  readonly state: JobStateKind;
  /** The spec in the shape of the job file. */
  readonly spec: Readonly<Record<string, unknown>>;
  readonly endedAtMs: number | null;
  readonly pending: PendingReason | null;
  readonly cause: Cause | null;
  readonly attempts: readonly AttemptView[];
  /** Where its training is, or was last. */
  readonly training: TrainingProgress | null;
  /** Where it is in its phases. null: it has none. */
  readonly phases: PhasesView | null;
  readonly ledger: readonly LedgerEntry[];
  /** USD until now. null: there are no prices, it is not known what GPUs it held, or in a list of jobs. */
  readonly costUsd: number | null;
  /** When output of its newest attempt last arrived. null: none has, it has ended, or in a list of jobs. */
  readonly outputAtMs: number | null;
}

/** A person, or the machine itself, has asked that a node be left: it gets no new work. */
export interface Drain {
  readonly reason: string;
  readonly sinceMs: number;
  /** Wall clock: its tasks must have ended by then. null: there is no deadline. */
  readonly deadlineMs: number | null;
}

/** A task on a node that has not ended. */
export interface NodeTask {
  readonly task: TaskRef;
  /** Of its job. */
  readonly name: string;
  readonly gpus: number;
  readonly cpus: number;
  /** Wall clock: when the drain of its node stops its job; in the past: now. null: it keeps running until it ends. */
  readonly stopAtMs: number | null;
  /** Its job is being stopped already. */
  readonly stopping: boolean;
}

/** A task that runs on a node and that the store does not know. */
export interface OrphanTask {
  readonly task: TaskRef;
  /** Of its job; empty: unknown. */
  readonly name: string;
  readonly gpuUuids: readonly string[];
  /** Its lease has run out on its node: it is there and runs no instruction. */
  readonly frozen: boolean;
}

export interface NodeView {
  readonly name: string;
  readonly state: NodeStateKind;
  readonly inventory: NodeInventory;
  readonly agentVersion: string;
  readonly joinedAtMs: number;
  /** null: no contact since the coordinator started. */
  readonly silentForMs: number | null;
  readonly gpuUses: readonly { readonly uuid: string; readonly jobId: string; readonly attempt: number }[];
  readonly cpusUsed: number;
  readonly memoryUsedMb: number;
  /** Problems of the node and its GPUs. */
  readonly conditions: readonly Condition[];
  /** The conditions keep new work from the whole node. */
  readonly drained: boolean;
  /** The same for these GPUs. */
  readonly drainedGpuUuids: readonly string[];
  /**
   * Of a silent node with tasks: until all of them are fenced for certain and may run elsewhere; 0: now. null: it
   * answers, or has no tasks, or they are never fenced.
   */
  readonly fencedInMs: number | null;
  readonly bandwidths: readonly PathBandwidth[];
  /** null: it takes work as far as its conditions let it. */
  readonly drain: Drain | null;
  /** With and without GPUs. An older coordinator sends none. */
  readonly tasks: readonly NodeTask[];
  /** Their GPUs are among `gpuUses`. */
  readonly orphans: readonly OrphanTask[];
}

/** A credential or join token, without its secret. */
export interface CredentialView extends BudgetView {
  /** As events name it. */
  readonly id: string;
  /** `admin`, `agent`, `join`, `user` or `login`. */
  readonly kind: string;
  /** null: of no node. */
  readonly node: string | null;
  readonly createdAtMs: number;
  /** At most an hour old, unless calls are open; null: never used. */
  readonly lastUsedAtMs: number | null;
  /** null: it does not expire. */
  readonly expiresAtMs: number | null;
  /** Streams that are open under it now. */
  readonly openCalls: number;
  /** A join token that was traded for a credential. */
  readonly used: boolean;
  /** A join token that ends the node's credential when it is used. */
  readonly replaces: boolean;
  /** Of tokens and login codes of users. */
  readonly user: string | null;
  /** What a token of a user is for. */
  readonly label: string;
  /** What a token of a user is limited to; empty: it is not. */
  readonly projects: readonly string[];
  readonly verbs: readonly string[];
}

export interface EventView {
  /** Position in the cluster's log; cursor of every watch. */
  readonly seq: number;
  readonly id: string;
  readonly kind: string;
  readonly subject: string;
  readonly subjectSeq: number;
  readonly timeMs: number;
  /** The CloudEvents 1.0 envelope. */
  readonly cloudEvent: Readonly<Record<string, unknown>>;
}

export interface LogPiece {
  readonly attempt: number;
  readonly nodeRank: number;
  readonly offset: number;
  readonly data: Uint8Array;
  /** This rank's output is complete. */
  readonly complete: boolean;
  /** There is more of this rank's output, on a node that does not answer. */
  readonly missing: MissingOutput | null;
}

export interface MissingOutput {
  readonly node: string;
  readonly bytes: number;
  /** null: no contact since the coordinator started. */
  readonly silentForMs: number | null;
}

export interface ExplainView {
  readonly job: JobView;
  readonly summary: string;
  readonly details: readonly string[];
  readonly nextSteps: readonly string[];
}

/** What an agent knows of one of its tasks. */
export interface TaskReport {
  readonly task: TaskRef;
  readonly state: TaskStateKind;
  readonly exit: TaskEnd | null;
  /** Wall clock, for display. */
  readonly startedAtMs: number | null;
  /** How long ago it began, by the node's own monotonic clock, which time limits count in. null: it did not begin. */
  readonly runningForMs: number | null;
  /** CLOCK_BOOTTIME of its node when it began. Null if it has not begun, if it began in another boot, or from an older agent. */
  readonly startedBoottimeMs: number | null;
  /** CLOCK_BOOTTIME of its node when its last process ended. Null likewise, and if no one saw the end as it happened. */
  readonly endedBoottimeMs: number | null;
  /** Its lease has run out: it is there and runs no instruction. */
  readonly frozen: boolean;
  /** What the node is busy with before it is prepared. */
  readonly doing: string | null;
  /** The program has left a `training_complete.marker`: whatever it does now, its work is done. */
  readonly trainingComplete: boolean;
  readonly training: TrainingProgress | null;
  /** null: it makes progress, or that is unknown. */
  readonly hang: HangSign | null;
}
