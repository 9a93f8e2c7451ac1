/** The events of a job and the results of a transition, which the files of `lifecycle/` share. */

import type { CheckpointFacts, CheckpointLook, ResumeChoice } from '@muster/common/checkpoints';
import { assertInvariant } from '@muster/common/errors';
import type { AttemptEventKind, EventData, JobEventKind, NewEvent } from '@muster/common/eventKinds';
import type { Endpoint, Master, PathFindings } from '@muster/common/gangs';
import type { JobId, NodeName } from '@muster/common/ids';
import type { PhaseValues, PhaseVerdict } from '@muster/common/phases';
import type { HangSign, TrainingSign } from '@muster/common/training';
import type { Cause, Resume, TaskEnd } from '@muster/common/views';
import { type Attempt, currentAttempt, type Job, type Task } from '../model.ts';
import { ownName } from '../spec/ownSpec.ts';

/** The attempt that saved a checkpoint. Null if no index names it. */
export type Saver = { readonly job: string; readonly attempt: number } | null;

/** `attempt` is the number of the attempt that the report is about. */
export type JobEvent =
  | {
      readonly kind: 'allocate';
      /** By node rank: as many as the job asks for, or fewer if its spec allows that. */
      readonly tasks: readonly Placement[];
      /** The length of a lease, for jobs that name none. */
      readonly leaseMs: number | null;
      /** A node of the attempt was away: bandwidth is measured even if the job does not ask for that. */
      readonly preflight: boolean;
      /** The checkpoint to resume from, chosen with these nodes by the scheduler. null: none. */
      readonly resume: Resume | null;
      /** The smallest number that the attempt may have; default: the next one. */
      readonly numberMin?: number;
    }
  | {
      readonly kind: 'prepared';
      readonly attempt: number;
      readonly nodeRank: number;
      /** From rank 0 only: the address that it would have alone, and the port that it holds. */
      readonly master: Master | null;
      /** The addresses of the node, the best first. */
      readonly endpoints: readonly Endpoint[];
      /** The port at which the node answers its peers. null: it answers none. */
      readonly testPort: number | null;
      /** From rank 0 only: what is in the directory of its checkpoints. Null or absent: it was not asked, or is an older agent. */
      readonly look?: CheckpointLook | null;
    }
  /** A node has tested its paths. */
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
      /** By the wall clock of the coordinator; default: now. */
      readonly startedAtMs?: number;
    }
  | {
      readonly kind: 'taskEnded';
      readonly attempt: number;
      readonly nodeRank: number;
      readonly exit: TaskEnd;
      /** When the first failure of the task was observed, by the wall clock of the coordinator. null: unknown, now counts. */
      readonly failedAtMs: number | null;
      /** A fault of the hardware of the task. null, or absent: none detected. */
      readonly gpuFault?: GpuFault | null;
      /** How long it ran, measured by its node. Null or absent: unknown. */
      readonly ranForMs?: number | null;
    }
  /** The task certainly executes nothing: its node was rebooted, its lease has expired, or a user confirms it. */
  | {
      readonly kind: 'taskLost';
      readonly attempt: number;
      readonly nodeRank: number;
      readonly message: string;
      /** The last contact with the node, by the wall clock of the coordinator; default: now. */
      readonly lastContactMs?: number | null;
    }
  /** An attempt cannot start because of some of its nodes. It was not released. */
  | {
      readonly kind: 'startFailed';
      readonly attempt: number;
      readonly cause: Cause;
      /** Nodes that the next attempt excludes. */
      readonly excludeNodes: readonly NodeName[];
    }
  /** The nodes have had `prepare_timeout` since the allocation. */
  | {
      readonly kind: 'prepareTimeout';
      readonly attempt: number;
      /** What each node reports that it is doing, by node rank. */
      readonly doing: readonly (string | null)[];
    }
  /** The tasks have had `rendezvous_timeout` since the release. */
  | { readonly kind: 'rendezvousTimeout'; readonly attempt: number }
  | { readonly kind: 'stop'; readonly reason: string }
  /** A user requeues the job. @see Job.resumeChoice */
  | { readonly kind: 'requeue'; readonly from: ResumeChoice }
  /** The attempt is preempted, by another job or by the drain of one of its nodes. */
  | {
      readonly kind: 'preempt';
      readonly attempt: number;
      /** One sentence with the preempting job or the drain, and the reason. */
      readonly message: string;
      /** The preempting job. null: a drain. */
      readonly by: JobId | null;
    }
  /** A node has found a checkpoint of the job, or has a new verdict on one. */
  | {
      readonly kind: 'checkpoint';
      readonly attempt: number;
      readonly nodeRank: number;
      readonly checkpoint: CheckpointFacts;
      readonly shared: boolean;
      readonly afterStop: boolean;
      /** Who saved it, by the index of the directory. Absent: an older agent reports it. */
      readonly saver?: Saver;
    }
  /** The program has left its `training_complete.marker`. */
  | { readonly kind: 'trainingComplete'; readonly attempt: number; readonly nodeRank: number }
  /** The output of a task shows a training step, maybe the first of the attempt. */
  | {
      readonly kind: 'firstStep';
      readonly attempt: number;
      readonly nodeRank: number;
      readonly step: number;
      /** Wall clock of the node: when it was printed. */
      readonly atMs: number;
    }
  /** Something was noticed in the output of a task. */
  | {
      readonly kind: 'trainingSign';
      readonly attempt: number;
      readonly nodeRank: number;
      readonly sign: TrainingSign;
    }
  /** All tasks of the attempt hang. */
  | {
      readonly kind: 'hung';
      readonly attempt: number;
      /** The rank that stopped first. */
      readonly nodeRank: number;
      readonly sign: HangSign;
    }
  /** The criterion of the phase that this attempt has ended was judged. */
  | ({ readonly kind: 'phaseJudged'; readonly attempt: number } & PhaseJudgement)
  | { readonly kind: 'extend'; readonly byMs: number }
  | { readonly kind: 'timeLimit'; readonly attempt: number };

export interface PhaseJudgement {
  readonly verdict: PhaseVerdict;
  /** Of each metric that the criterion names. */
  readonly values: PhaseValues;
  /** Those whose newest value is no finite number. Their value is null. */
  readonly notFinite: readonly string[];
  /** Which metrics of the phase can no longer come: what they would have shown is unknown. Absent: none. */
  readonly lost?: string;
}

/** A fault of a GPU or of its node. The failure of the program on it only follows from that. */
export interface GpuFault {
  /** The Xid, or another reading that shows the fault; at most 500 characters. */
  readonly text: string;
  /** null: the fault is of the node. */
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
  /** The attempt that this event has ended, to be stored; the job itself no longer contains it. */
  readonly ended: Attempt | null;
  readonly events: readonly NewEvent[];
}

/** Applies one kind of event. @param nowMs wall clock, epoch milliseconds; only recorded */
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

/** The job with another state of its attempt. */
export function withAttempt(job: Job, attempt: Attempt): Job {
  const { state } = job;
  assertInvariant('attempt' in state, 'G2', `${job.id} has no attempt`);
  return { ...job, state: { ...state, attempt } };
}

/** An event of a job. Its data begin with the name of the job. */
export function jobEvent<K extends JobEventKind>(job: Job, kind: K, data: EventData<K>): NewEvent {
  return { kind, subject: job.id, data: { name: ownName(job), ...data } } as unknown as NewEvent;
}

/** An event of one attempt of a job. Its data begin with the name of the job and the number of the attempt. */
export function attemptEvent<K extends AttemptEventKind>(
  job: Job,
  attempt: Attempt,
  kind: K,
  data: Omit<EventData<K>, 'attempt'>,
): NewEvent {
  return jobEvent(job, kind, { attempt: attempt.number, ...data } as unknown as EventData<K>);
}
