/** What can happen to a job, and what a step of its life gives: the words that the files of `lifecycle/` share. */
import type { CheckpointFacts, ResumeChoice } from '@muster/common/checkpoints';
import { assertInvariant } from '@muster/common/errors';
import type { Endpoint, Master, PathFindings } from '@muster/common/gangs';
import type { JobId, NodeName } from '@muster/common/ids';
import type { HangSign, TrainingSign } from '@muster/common/training';
import type { Cause, Resume, TaskEnd } from '@muster/common/views';
import { type Attempt, currentAttempt, type Job, type NewEvent, type Task } from '../model.ts';
import { ownName } from '../spec/ownSpec.ts';

/** `attempt` is the fencing token of whoever reports. */
export type JobEvent =
  | {
      readonly kind: 'allocate';
      /** By node rank; as many as the job wants, or fewer where it can do with them. */
      readonly tasks: readonly Placement[];
      /** Length of a lease where the job does not say. */
      readonly leaseMs: number | null;
      /** A node of it has been away: its paths are measured even if the job does not ask for that. */
      readonly preflight: boolean;
      /** What it begins from, chosen for these nodes by `chooseResume`. null: nothing. */
      readonly resume: Resume | null;
      /** The attempt has this number at least; left out: the next one. */
      readonly numberMin?: number;
    }
  | {
      readonly kind: 'prepared';
      readonly attempt: number;
      readonly nodeRank: number;
      /** From rank 0 only: the address it would have alone, and the port it holds. */
      readonly master: Master | null;
      /** Best first. */
      readonly endpoints: readonly Endpoint[];
      /** null: answers no peers. */
      readonly testPort: number | null;
    }
  /** One node has tried its paths. */
  | {
      readonly kind: 'checked';
      readonly attempt: number;
      readonly nodeRank: number;
      readonly findings: PathFindings;
    }
  | {
      readonly kind: 'taskRunning';
      readonly attempt: number;
      readonly nodeRank: number;
      /** By our wall clock. Left out: now, as far as anybody can tell. */
      readonly startedAtMs?: number;
    }
  | {
      readonly kind: 'taskEnded';
      readonly attempt: number;
      readonly nodeRank: number;
      readonly exit: TaskEnd;
      /** Of a bad end: when the first thing went wrong there, by our wall clock. null: now, as far as anybody can tell. */
      readonly failedAtMs: number | null;
      /** What was wrong with its hardware. null, or left out: nothing that is known. */
      readonly gpuFault?: GpuFault | null;
    }
  /** Proof of death from outside the task, or its fence: the node rebooted, its lease is over, a person says so. */
  | {
      readonly kind: 'taskLost';
      readonly attempt: number;
      readonly nodeRank: number;
      readonly message: string;
      /** When its node was last heard, by our wall clock; left out: now, as far as anybody can tell. */
      readonly lastHeardMs?: number | null;
    }
  /** A node holds back an attempt that has not been released. */
  | {
      readonly kind: 'startFailed';
      readonly attempt: number;
      readonly cause: Cause;
      /** Nodes that the next attempt had better do without. */
      readonly leaveOut: readonly NodeName[];
    }
  /** The nodes have had `prepare_timeout` since the allocation. */
  | {
      readonly kind: 'prepareTimeout';
      readonly attempt: number;
      /** What each node says it is busy with, by node rank. */
      readonly doing: readonly (string | null)[];
    }
  /** The tasks have had `rendezvous_timeout` since the release. */
  | { readonly kind: 'rendezvousTimeout'; readonly attempt: number }
  | { readonly kind: 'stop'; readonly reason: string }
  /** By a person. @see Job.resumeChoice */
  | { readonly kind: 'requeue'; readonly from: ResumeChoice }
  /** It gives way: to another job, or because a node of it is to be left. */
  | {
      readonly kind: 'preempt';
      readonly attempt: number;
      /** One sentence: who and why. */
      readonly message: string;
      /** The job it gives way to. null: it is for a node's sake. */
      readonly by: JobId | null;
    }
  /** A node has seen a checkpoint of it, or learnt something new of one. */
  | {
      readonly kind: 'checkpoint';
      readonly attempt: number;
      readonly nodeRank: number;
      readonly checkpoint: CheckpointFacts;
      readonly shared: boolean;
      readonly afterStop: boolean;
    }
  /** The program has left its `training_complete.marker`. */
  | { readonly kind: 'trainingComplete'; readonly attempt: number; readonly nodeRank: number }
  /** Something was noticed in the output of a task. */
  | {
      readonly kind: 'trainingSign';
      readonly attempt: number;
      readonly nodeRank: number;
      readonly sign: TrainingSign;
    }
  /** All its tasks stand still. */
  | {
      readonly kind: 'hung';
      readonly attempt: number;
      /** Whose rank was the first to fall silent. */
      readonly nodeRank: number;
      readonly sign: HangSign;
    }
  | { readonly kind: 'extend'; readonly byMs: number }
  | { readonly kind: 'timeLimit'; readonly attempt: number };

/** A GPU or its node broke under a task: what the program then said only follows from that. */
export interface GpuFault {
  /** The Xid, or what else was read: at most 500 characters. */
  readonly text: string;
  /** null: the node as a whole. */
  readonly gpuUuid: string | null;
}

export interface Placement {
  readonly node: NodeName;
  readonly gpuUuids: readonly string[];
  readonly cpus: number;
  readonly memoryMb: number;
}

export interface Transition {
  readonly job: Job;
  /** The attempt that this event ended, for the record; the job itself no longer carries it. */
  readonly ended: Attempt | null;
  readonly events: readonly NewEvent[];
}

/** What one kind of event does. @param nowMs wall clock, epoch milliseconds; recorded */
export type Handler<K extends JobEvent['kind']> = (
  job: Job,
  event: Extract<JobEvent, { kind: K }>,
  nowMs: number,
) => Transition;

export function unchanged(job: Job): Transition {
  return { job, ended: null, events: [] };
}

export function followedBy(events: readonly NewEvent[], next: Transition): Transition {
  return { ...next, events: [...events, ...next.events] };
}

/** The current attempt, if the report is about that one; reports about any other change nothing (guarantee G6). */
export function fencedAttempt(job: Job, attemptNumber: number): Attempt | null {
  const attempt = currentAttempt(job);
  return attempt?.number === attemptNumber ? attempt : null;
}

export function replaceTask(tasks: readonly Task[], task: Task): readonly Task[] {
  return tasks.map((each) => (each.nodeRank === task.nodeRank ? task : each));
}

/** An active job whose attempt has changed, and nothing else. */
export function withAttempt(job: Job, attempt: Attempt): Job {
  const { state } = job;
  assertInvariant('attempt' in state, 'G2', `${job.id} has no attempt`);
  return { ...job, state: { ...state, attempt } };
}

export function jobEvent(job: Job, kind: string, data: Readonly<Record<string, unknown>>): NewEvent {
  return { kind, subject: job.id, data: { name: ownName(job), ...data } };
}

export function attemptEvent(
  job: Job,
  attempt: Attempt,
  kind: string,
  data: Readonly<Record<string, unknown>>,
): NewEvent {
  return jobEvent(job, kind, { attempt: attempt.number, ...data });
}
