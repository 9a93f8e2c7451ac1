/**
 * What happened, as seen from outside: by the machines on which processes start and end, by the disk that keeps what was
 * committed, and by clients. Checks read nothing else, and the digest of it shows whether two runs were the same.
 */
import { createHash } from 'node:crypto';
import type { ResumeChoice } from '@muster/common/checkpoints';
import type { JobId, TaskRef } from '@muster/common/ids';
import type { TokenBudget } from '@muster/common/people';
import type { StoredEvent } from '@muster/coordinator/model';
import type { StoredPipelineStep } from '@muster/coordinator/store/pipelines';
import type { StoredTrial } from '@muster/coordinator/store/sweeps';
import type { Quality, ResumeState } from './shelf.ts';

export type Fact =
  | { readonly kind: 'phase'; readonly phase: 'faults' | 'quiet' | 'settled' }
  /** A coordinator, agent or machine starts, is killed, pauses … */
  | { readonly kind: 'process'; readonly name: string; readonly what: string }
  | { readonly kind: 'fault'; readonly what: string; readonly where: string; readonly forMs: number }
  /** The intent to run a task is on a node's disk. */
  | { readonly kind: 'prepared'; readonly machine: string; readonly task: TaskRef }
  /** The coordinator got the report of an agent that a task is prepared. */
  | { readonly kind: 'reportedPrepared'; readonly machine: string; readonly task: TaskRef }
  | PathTried
  /** One node has measured the way to another one. */
  | { readonly kind: 'pathMeasured'; readonly task: TaskRef; readonly toRank: number; readonly mbps: number }
  | ProcessStarted
  | ProcessEnded
  /** The coordinator received the list of all GPUs that a machine sees. */
  | { readonly kind: 'gpusHeard'; readonly machine: string; readonly gpuUuids: readonly string[] }
  /** No process of the task executes an instruction from here on, or one does again. */
  | { readonly kind: 'frozen' | 'thawed'; readonly machine: string; readonly task: TaskRef }
  | CheckpointSaved
  /** A program of a step of a pipeline starts, and an artifact that it reads is not there, or another one. */
  | { readonly kind: 'inputMissing'; readonly machine: string; readonly task: TaskRef; readonly path: string }
  /** Its processes got their first signal. */
  | { readonly kind: 'stopReceived'; readonly machine: string; readonly task: TaskRef }
  /** The coordinator received the report of a whole checkpoint that was begun after that. */
  | { readonly kind: 'lastHeard'; readonly machine: string; readonly task: TaskRef }
  /** A transaction reached the disk, acknowledged or not. */
  | Committed
  /** A watching client got an event. */
  | {
      readonly kind: 'watched';
      readonly event: { readonly seq: number; readonly id: string; readonly text: string };
    }
  | SubmitAnswered
  | JobsListed
  | { readonly kind: 'stopAnswered'; readonly jobId: JobId }
  /** A client wants a job requeued, and will ask until it hears that it was. */
  | { readonly kind: 'requeueWanted'; readonly jobId: JobId; readonly from: ResumeChoice }
  /** A client wants a job stopped. */
  | { readonly kind: 'stopSent'; readonly jobId: JobId }
  /** A client got a token with this id and budget. */
  | { readonly kind: 'tokenIssued'; readonly id: string; readonly budget: TokenBudget }
  | ConditionFact
  | ClearAnswered
  /** So many files are in the directory that triggers watch, one of which is new; it is away, or is back. */
  | { readonly kind: 'dataCame'; readonly files: number }
  | { readonly kind: 'dataAway'; readonly isAway: boolean }
  /** A delivery to a trigger was answered. */
  | {
      readonly kind: 'deliveryAnswered';
      readonly trigger: string;
      readonly id: string;
      readonly run: string | null;
    }
  /** A person has looked: the power of this machine is off. */
  | { readonly kind: 'seenDead'; readonly machine: string };

export interface Committed {
  readonly kind: 'committed';
  readonly events: readonly StoredEvent[];
  /** Rows of steps of pipelines. */
  readonly steps: readonly StoredPipelineStep[];
  /** Rows of trials of sweeps. */
  readonly trials: readonly StoredTrial[];
}

/** Something is wrong with a machine, or well again. */
export interface ConditionFact {
  readonly kind: 'condition';
  readonly machine: string;
  readonly what: 'raised' | 'cleared';
  readonly condition: string;
  readonly gpuUuid: string | null;
}

/** A client got the answer that a condition is cleared. */
export interface ClearAnswered {
  readonly kind: 'clearAnswered';
  readonly node: string;
  readonly condition: string;
  readonly gpuUuid: string | null;
  /** By the node in the same answer. */
  readonly holds: boolean;
}

/** The agent of one task has connected, or could not, to another one of its gang. */
export interface PathTried {
  readonly kind: 'pathTried';
  readonly task: TaskRef;
  readonly toRank: number;
  readonly port: number;
  readonly error: string | null;
}

export interface ProcessStarted {
  readonly kind: 'started';
  readonly machine: string;
  readonly task: TaskRef;
  readonly nodeCount: number;
  /** Which phase its environment names. null: none. */
  readonly phase: string | null;
  readonly gpuUuids: readonly string[];
  /** Whether the port that the task gets was held for it until now; null for other ranks than 0. */
  readonly portWasHeld: boolean | null;
  /** What rank 0 begins from, as it lies there. null: nothing. */
  readonly resume: { readonly name: string; readonly state: ResumeState } | null;
  /** Verified checkpoints of earlier attempts of the job that it is going to write over. Absent: none. */
  readonly ahead?: readonly string[];
}

export interface ProcessEnded {
  readonly kind: 'ended';
  readonly machine: string;
  readonly task: TaskRef;
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** `fence`: its node had no leave to let it run on. */
  readonly by: 'itself' | 'stop' | 'fence' | 'reboot';
}

/** A program has written a checkpoint to its end. */
export interface CheckpointSaved {
  readonly kind: 'saved';
  readonly machine: string;
  readonly task: TaskRef;
  readonly step: number;
  readonly quality: Quality;
  /** World time. */
  readonly beganMs: number;
  /** After it was ordered to stop. */
  readonly isLast: boolean;
}

export interface SubmitAnswered {
  readonly kind: 'submitAnswered';
  readonly requestId: string;
  readonly jobIds: readonly JobId[];
}

/** A client asked for all jobs, and this is the answer. */
export interface JobsListed {
  readonly kind: 'listed';
  readonly askedAtMs: number;
  readonly jobs: readonly ListedJob[];
}

interface ListedJob {
  readonly id: string;
  readonly state: string;
  readonly attempt: number;
  readonly submitSeq: number;
}

export class History {
  private readonly hash = createHash('sha256');
  private readonly listeners: ((fact: Fact, nowMs: number) => void)[] = [];
  private readonly nowMs: () => number;

  constructor(nowMs: () => number) {
    this.nowMs = nowMs;
  }

  add(fact: Fact): void {
    const nowMs = this.nowMs();
    this.hash.update(`${nowMs} ${JSON.stringify(fact)}\n`);
    for (const listener of this.listeners) listener(fact, nowMs);
  }

  listen(listener: (fact: Fact, nowMs: number) => void): void {
    this.listeners.push(listener);
  }

  digest(): string {
    return this.hash.copy().digest('hex').slice(0, 16);
  }
}
