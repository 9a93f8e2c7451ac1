/**
 * What a task needs around its process, one concern each, in one ordered list. `prepare`, `starting` and `followed` go through
 * the list from the first to the last, `ended` and `removed` from the last to the first. Each call may come again, and
 * `removed` may come without any other.
 */

import { untilAborted } from '@muster/common/async';
import { messageOf } from '@muster/common/errors';
import type { TaskFailure } from '@muster/common/gangs';
import { type JobId, type TaskKey, type TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { GpuUsage } from '@muster/common/telemetry';
import type { HangSign, TrainingProgress } from '@muster/common/training';
import type { Cause, TaskEnd } from '@muster/common/views';
import type { Checkpoints } from '../checkpoints/watcher.ts';
import type { TaskDriver } from '../drivers/driver.ts';
import { type BareTask, withRemark } from '../failure/remarks.ts';
import type { EndOfTask } from '../failure/taskFailure.ts';
import type { CheckpointDirs } from '../launch/checkpointDir.ts';
import type { FencedTask } from '../leases/leasedTask.ts';
import type { TaskLeases } from '../leases/taskLeases.ts';
import type { NodeRendezvous } from '../rendezvous/rendezvous.ts';
import type { Assignment } from '../taskFacts/assignment.ts';
import type { TaskExit, TaskLocation } from '../taskFacts/execution.ts';
import { type ArtifactHookParts, artifactHook } from './artifactHook.ts';
import { launchOf, type NodeFacts, writeLaunchFiles } from './launch.ts';
import { logHook } from './logHook.ts';
import { kindOfFileError, NotReady } from './notReady.ts';
import { heldPorts } from './portHook.ts';
import type { TaskRecords } from './records.ts';
import { type SecretHookParts, secretHook } from './secretHook.ts';

/** What the output of tasks shows of their training. */
export interface TrainingOfTasks {
  /** null: the output shows none. */
  progress(task: TaskRef): TrainingProgress | null;
  /** null: it makes progress, or it cannot be determined. */
  hang(task: TaskRef): HangSign | null;
  /**
   * Reads the rest of the output of a task that has ended.
   * @returns where its training was. null: nobody reads its output
   */
  finishForReport(task: TaskRef): Promise<TrainingProgress | null> | null;
  /**
   * The report of the end goes now.
   * @returns where the lines of metrics end, in bytes of the output; 0: it has none. null: the output is not read to its end
   */
  reportGoes(task: TaskRef): number | null;
}

export interface HookParts extends SecretHookParts, ArtifactHookParts {
  readonly node: NodeFacts;
  readonly nodeName: string;
  /** Why these GPUs of this node cannot be used now. null: they can. */
  readonly gpuProblem: (gpuUuids: readonly string[], abort: AbortSignal) => Promise<Cause | null>;
  /** Another task of this node that has one of the GPUs of this task. null: none has. */
  readonly gpuHolder: (task: TaskRef, gpuUuids: readonly string[]) => TaskKey | null;
  /** Another task of this node has its checkpoints in the same place. */
  readonly isShared: (task: TaskRef, checkpointJobId: JobId) => boolean;
  readonly checkpointDirs: CheckpointDirs;
  /** Why this agent could not look after the checkpoints of a job in that directory. null: it can. */
  readonly checkpointPlaceProblem: (root: string, changes: boolean) => Promise<string | null>;
  readonly checkpoints: Checkpoints;
  readonly training: TrainingOfTasks;
  readonly rendezvous: NodeRendezvous;
  /** Reads again what `node.network` returns: an interface may have come up a moment ago. */
  readonly readNetwork: () => Promise<unknown>;
  readonly leases: TaskLeases;
  readonly records: Pick<TaskRecords, 'outputSize'>;
  /** The output of a task may be followed from here on. @param size where it ends. null: the task runs */
  readonly onOutput: (task: TaskRef, path: string, size: number | null) => void;
  /** Nothing more of the output of a task will be read. */
  readonly onRemoved: (task: TaskRef) => void;
  /** What is known of the use of the task's GPUs so far. */
  readonly gpuUsage: (task: TaskRef) => GpuUsage | null;
  /** What went wrong first in a task that has ended badly. @throws {Error} when the agent closes */
  readonly failureOf: (end: EndOfTask, location: TaskLocation) => Promise<TaskFailure>;
  readonly log: Logger;
}

/** A task, as its hooks see it. */
export interface TaskContext {
  readonly task: TaskRef;
  /** null: the task was found without a record. */
  readonly assignment: Assignment | null;
  readonly location: TaskLocation;
  readonly outputPath: string;
  readonly driver: TaskDriver;
}

/** A task whose job is known. */
export interface AssignedTask extends TaskContext {
  readonly assignment: Assignment;
}

/** How a task ended, as far as its driver knows. */
export interface ExitOfTask {
  /** Wall clock. */
  readonly startedAtMs: number;
  /** null: unknown. */
  readonly exit: TaskExit | null;
  /** The task was asked to stop. */
  readonly isStopping: boolean;
}

export interface TaskHook {
  /**
   * Sees to what the task needs before its gang is released.
   * @throws {NotReady} when this node cannot run the task, and a repetition would not help
   * @throws {Error} when a repetition may help
   */
  prepare?(task: AssignedTask, onDoing: (text: string) => void, abort: AbortSignal): Promise<void>;
  /** Called before the driver starts the task. */
  starting?(task: AssignedTask): Promise<void>;
  /** The start was refused or given up, and nothing runs. */
  notStarted?(task: TaskContext): void;
  /** The task runs, started now or found by a new agent. */
  followed?(
    task: TaskContext,
    how: 'started' | 'found' | 'frozen' | 'unseen',
    startedAtMs: number | null,
  ): void;
  /** Called before the first signal of a stop. */
  stopping?(task: TaskContext, graceMs: number): Promise<void> | undefined;
  /** The stop has failed, and its signal may not have reached the task. It is tried again, from `stopping` on. */
  notStopped?(task: TaskContext): void;
  /** The end of the task is still being concluded, and nobody wants more of it than what this time brings. May come again. */
  hurried?(task: TaskContext, graceMs: number): void;
  /** No process of the task is left. @returns what this hook knows of the end */
  conclude?(task: TaskContext, end: ExitOfTask, onDoing: (text: string) => void): Promise<Partial<TaskEnd>>;
  /** Called when every `conclude` has come to an end. */
  measure?(task: TaskContext): Partial<TaskEnd>;
  /** An earlier agent recorded the end of the task, and this one is about to report it. */
  recalled?(task: TaskContext, startedAtMs: number): Promise<void>;
  /** The task has ended, and its end is in its record. */
  ended?(task: TaskContext): void;
  /** The coordinator no longer needs anything of the task. */
  removed?(task: TaskContext): void | Promise<void>;
  /** The agent closes. Tasks run on. */
  closed?(): Promise<void>;
}

/** What is left of an output is read in a moment. A disk that hangs must not keep an end from being reported. */
const lastOutputMs = 5_000;

/** The output of a killed task is about something else, so the end by a lease has none of its categories. */
const noCategory = { kind: null, blame: null, line: null } as const;

/** @returns the hooks in their order, and the port that is held for a task */
export function taskHooks(parts: HookParts): {
  readonly hooks: readonly TaskHook[];
  readonly portOf: (task: TaskRef) => number | null;
} {
  const { ports, portOf } = heldPorts(parts);
  const hooks = [
    gpus(parts),
    checkpointDirectory(parts),
    checkpoints(parts),
    secretHook(parts),
    artifactHook(parts),
    program(parts),
    startingPoint(parts),
    ports,
    lease(parts),
    output(parts),
    training(parts),
    failure(parts),
    usage(parts),
    logHook(parts),
  ];
  return { hooks, portOf };
}

/** The coordinator's view of the GPUs may be older than what this node knows. */
function gpus({ gpuProblem, gpuHolder }: HookParts): TaskHook {
  return {
    async prepare({ task, assignment: { gpuUuids } }, _onDoing, abort) {
      const problem = await gpuProblem(gpuUuids, abort);
      abort.throwIfAborted();
      if (problem !== null) throw new NotReady(problem.kind, problem.message);
      // To the coordinator a task that was fenced is over. Here it may be frozen for a while, or in the middle of its end.
      const holder = gpuHolder(task, gpuUuids);
      if (holder !== null) throw new Error(`GPU still held by ${holder}, which must end first`);
    },
  };
}

function checkpointDirectory({ checkpointDirs, checkpointPlaceProblem, isShared }: HookParts): TaskHook {
  return {
    async prepare({ task, assignment: { checkpointJobId, spec } }, _onDoing, abort) {
      try {
        checkpointDirs.prepare(checkpointJobId, spec);
      } catch (error) {
        const message = `no checkpoint directory: ${messageOf(error)}`;
        throw new NotReady(kindOfFileError(error), message, { cause: error });
      }
      const root = checkpointDirs.isOwn(spec) ? null : checkpointDirs.hostPathFor(checkpointJobId, spec);
      // One node looks after the checkpoints of a job.
      if (task.nodeRank !== 0 || root === null) return;
      const problem = await untilAborted(
        checkpointPlaceProblem(root, spec.checkpoint.keepLast !== null),
        abort,
      );
      if (problem !== null) throw new NotReady('unknown', problem);
    },
    removed({ task, assignment }) {
      // A later attempt of the job on this node may be about to save there.
      if (assignment === null || isShared(task, assignment.checkpointJobId)) return;
      checkpointDirs.cleanUp(assignment.checkpointJobId, assignment.spec);
    },
  };
}

/** The checkpoint that the task resumes from, and those that it saves. */
function checkpoints(parts: HookParts): TaskHook {
  const watch = ({ assignment }: TaskContext, startedAtMs: number | null) => {
    if (assignment !== null && startedAtMs !== null) parts.checkpoints.watch(assignment, startedAtMs);
  };
  return {
    // The order to start says which checkpoint was chosen.
    starting: ({ assignment }) => parts.checkpoints.starting(assignment),
    followed: (task, _how, startedAtMs) => watch(task, startedAtMs),
    // What is saved from the first signal on shows that the rest of the grace is not needed.
    stopping({ task }, graceMs) {
      const isSaving = graceMs > 0 && parts.checkpoints.isWatched(task);
      return isSaving ? parts.checkpoints.stopping(task) : undefined;
    },
    notStopped: ({ task }) => parts.checkpoints.notStopped(task),
    // A task that was found ended was not watched.
    async conclude(task, { startedAtMs }) {
      watch(task, startedAtMs);
      return {};
    },
    // By the checkpoints the coordinator chooses what follows the end, and it may have received a report of neither.
    async recalled({ assignment }, startedAtMs) {
      if (assignment !== null) await parts.checkpoints.recall(assignment, startedAtMs);
    },
    removed: ({ task }) => parts.checkpoints.forget(task),
  };
}

/**
 * What is in the checkpoint directory before the attempt. The driver has shown by then that the account of the task may use the
 * directory: an agent that is root must not write its index where the account may not.
 */
function startingPoint({ checkpoints: saved }: HookParts): TaskHook {
  return {
    // Before anything of the job runs on any node, because the nodes of a gang are released together.
    async prepare({ assignment }, onDoing, abort) {
      const problem = await untilAborted(saved.prepare(assignment, onDoing, abort), abort);
      if (problem !== null) throw new NotReady(problem.kind, problem.message);
    },
  };
}

/** The image, the volumes and the program. */
function program({ node, checkpointDirs }: HookParts): TaskHook {
  return {
    async prepare(task, onDoing, abort) {
      const { assignment, location, driver } = task;
      await writeLaunchFiles(node, location, assignment, null);
      await driver.prepare(launchOf(node, checkpointDirs, task, null), onDoing, abort);
      abort.throwIfAborted();
    },
    removed: ({ driver, location }) => driver.remove(location),
  };
}

function lease({ leases }: HookParts): TaskHook {
  return {
    starting: async (task) => leases.onStarting(task.task, fenced(task)),
    notStarted: ({ task }) => leases.onNotStarted(task),
    followed(task, how) {
      if (how === 'started') leases.onRunning(task.task);
      else leases.adopt(task.task, fenced(task), how === 'frozen');
    },
    ended: ({ task }) => leases.drop(task),
    removed: ({ task }) => leases.drop(task),
  };
}

/** A task without a record is somebody's work: the want of a record does not kill it. */
function fenced({ driver, location, assignment }: TaskContext): FencedTask {
  return { driver, location, onExpiry: assignment?.spec.onLeaseExpiry ?? 'freeze' };
}

function output({ records, onOutput, onRemoved }: HookParts): TaskHook {
  return {
    followed({ task, outputPath }, _how, startedAtMs) {
      if (startedAtMs !== null) onOutput(task, outputPath, null);
    },
    measure: ({ task }) => ({ logBytes: records.outputSize(task) }),
    // What is there is all that there will be.
    ended({ task, outputPath }) {
      const size = records.outputSize(task);
      if (size > 0) onOutput(task, outputPath, size);
      else onRemoved(task);
    },
    removed: ({ task }) => onRemoved(task),
  };
}

/** The metrics of the last checkpoint are in what was printed last, so the checkpoints are read after the output. */
function training({ training: read, checkpoints: saved, log }: HookParts): TaskHook {
  return {
    async conclude({ task, location }) {
      const rest = read.finishForReport(task);
      try {
        if (rest !== null) await untilAborted(rest, AbortSignal.timeout(lastOutputMs));
      } catch (error) {
        const fields = { task: location.key, error: messageOf(error) };
        log.warn(fields, 'the last output of a task could not be read in time');
      }
      await saved.lastLook(task);
      const rowsEnd = read.reportGoes(task);
      return { training: read.progress(task), ...(rowsEnd === null ? {} : { rowsEnd }) };
    },
  };
}

/** By what went wrong first, the coordinator chooses what follows. */
function failure(parts: HookParts): TaskHook {
  const { leases, node, failureOf, secrets: kept } = parts;
  return {
    async conclude(task, { exit, isStopping }) {
      if (exit === null || exit.exitCode === 0) return {};
      const { location, outputPath } = task;
      const end = { exit, directory: location.directory, outputPath, stopping: isStopping };
      const found = await failureOf(end, location);
      const bare = bareTask(task, node);
      const mask = kept.maskOf(location.key, task.assignment?.spec.secrets ?? null);
      const shown = mask === null ? found : { ...found, message: mask.text(found.message) };
      const remarked = bare === null ? shown : withRemark(shown, bare);
      const oomKilled = exit.oomKilled || (remarked.source === 'kernel' && remarked.kind === 'host_oom');
      if (isStopping) return { failure: remarked, oomKilled };
      // What the task wrote before is about something else: a task that was killed from outside wrote nothing about that.
      const message = leases.killedByLease(task.task, fenced(task), exit, remarked.atBoottimeMs);
      if (message === null) return { failure: remarked, oomKilled };
      const byLease = { source: 'lease', consequence: false, rank: null, message, ...noCategory } as const;
      return { failure: { ...remarked, ...byLease }, oomKilled: exit.oomKilled };
    },
  };
}

/** null: the task ran in a container, whose files this agent does not read, or nobody knows what it was. */
function bareTask({ assignment, location }: TaskContext, { baseEnvironment }: NodeFacts): BareTask | null {
  if (assignment === null || assignment.spec.image !== null) return null;
  const { command, args, env, workdir } = assignment.spec;
  return {
    command: [...command, ...args],
    path: env['PATH'] ?? baseEnvironment['PATH'],
    workdir: workdir ?? location.directory,
  };
}

function usage({ gpuUsage }: HookParts): TaskHook {
  return {
    measure: ({ task, assignment }) =>
      assignment !== null && assignment.gpuUuids.length === 0 ? {} : { gpuUsage: gpuUsage(task) },
  };
}
