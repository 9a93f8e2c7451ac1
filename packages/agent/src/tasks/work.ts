/** What takes its time in the life of a task. The result of each is the event that says what has come of it. */

import { messageOf } from '@muster/common/errors';
import type { TaskRef } from '@muster/common/ids';
import { isCauseKind } from '@muster/common/spec/causes';
import type { TaskDriver } from '../drivers/driver.ts';
import { DriverError, LeaseExpired } from '../taskFacts/errors.ts';
import type { TaskEvent } from './events.ts';
import { type AssignedTask, type HookParts, type TaskContext, type TaskHook, unstartedEnd } from './hooks.ts';
import { launchOf, writeLaunchFiles } from './launch.ts';
import type { TaskMessage } from './messages.ts';
import { kindOfFileError, NotReady } from './notReady.ts';
import type { TaskRecords } from './records.ts';
import { type Life, type Order, type StartOrder, type TaskState } from './state.ts';

export interface RunnerParts extends HookParts {
  readonly drivers: Readonly<Record<TaskDriver['name'], TaskDriver>>;
  readonly records: Pick<TaskRecords, keyof TaskRecords>;
  readonly bootId: string;
  /** The address that rank 0 on this node is reached at. */
  readonly address: string;
  readonly wallMs: () => number;
  /** CLOCK_BOOTTIME. */
  readonly boottimeMs: () => number;
  /** Sends a message, or drops it while there is no connection: the next Hello says it. */
  readonly send: (message: TaskMessage) => void;
}

/** What all tasks of a node share. */
export interface RunnerShared {
  readonly parts: RunnerParts;
  readonly hooks: readonly TaskHook[];
  readonly portOf: (task: TaskRef) => number | null;
  /** Aborts when the agent closes. Tasks run on. */
  readonly closing: AbortSignal;
  /** Nothing is left of the task. */
  readonly onRemoved: (task: TaskState) => void;
}

/** A task, with what its work needs. */
export interface TaskWorker {
  readonly shared: RunnerShared;
  readonly context: TaskContext;
  /** What was true when the work began. */
  readonly life: Life;
  readonly post: (event: TaskEvent) => void;
}

/** What has come of work that did not come to its end. */
export class WorkOutcome extends Error {
  readonly event: TaskEvent;

  constructor(event: TaskEvent) {
    super(event.kind);
    this.event = event;
  }
}

/** @throws the reason of `abort`, and what may pass */
export async function prepareTask(worker: TaskWorker, abort: AbortSignal): Promise<TaskEvent> {
  const { shared, post } = worker;
  const task = assigned(worker.context);
  try {
    // The intent comes first, on disk: whatever goes wrong from here on has a place to be noted.
    if (worker.life.kind === 'unrecorded') await recordIntent(worker, task);
    abort.throwIfAborted();
    const onDoing = (text: string) => post({ kind: 'doing', text });
    for (const hook of shared.hooks) {
      await hook.prepare?.(task, onDoing, abort);
      abort.throwIfAborted();
    }
    return { kind: 'prepared', port: shared.portOf(task.task) };
  } catch (error) {
    return unstarted(worker, error);
  }
}

async function recordIntent({ shared, post }: TaskWorker, { assignment }: AssignedTask): Promise<void> {
  const { records, bootId } = shared.parts;
  await records.create({ assignment, bootId, phase: { kind: 'assigned' } }).catch((error: unknown) => {
    const message = `no task directory: ${messageOf(error)}`;
    throw new NotReady(kindOfFileError(error), message, { cause: error });
  });
  post({ kind: 'recorded' });
}

/** The end of a task that could not be prepared or started. @throws what may pass, and everything while the agent closes */
function unstarted({ shared, context }: TaskWorker, error: unknown): TaskEvent {
  // A driver that is being closed may give up. That is no end of the task.
  if (shared.closing.aborted || !(error instanceof NotReady || error instanceof DriverError)) throw error;
  const given = error instanceof NotReady ? error.kind : error.causeKind;
  const kind = isCauseKind(given) ? given : 'unknown';
  const { records, nodeName } = shared.parts;
  const end = unstartedEnd(context, nodeName, kind, error.message, records.outputSize(context.task));
  return { kind: 'ended', end };
}

/** @throws the reason of `abort` */
export async function checkTask(
  { shared, context }: TaskWorker,
  { check }: Extract<Order, { kind: 'check' }>,
  abort: AbortSignal,
): Promise<TaskEvent> {
  const task = assigned(context);
  const { addresses, preflight } = check;
  // What is measured has the job's environment and a rendezvous of its own. It has no lease, because it is not the task.
  const release = preflight === null ? null : { ...preflight.master, addresses, lease: null };
  const launch = launchOf(shared.parts.node, shared.parts.checkpointDirs, task, release);
  const findings = await shared.parts.rendezvous.check(task.task, launch, check, abort);
  // What was found while the check was being given up tells nothing about the paths.
  abort.throwIfAborted();
  return { kind: 'checked', findings };
}

/** @throws {LeaseExpired} and what failed before the driver was asked: nothing runs then */
export async function startTask(
  worker: TaskWorker,
  { addr, port, addresses }: StartOrder,
  abort: AbortSignal,
): Promise<TaskEvent> {
  const { shared, context } = worker;
  const task = assigned(context);
  let isAsked = false;
  try {
    for (const hook of shared.hooks) await hook.starting?.(task);
    abort.throwIfAborted();
    const release = { addr, port, addresses, lease: shared.parts.leases.leaseOf(task.task) };
    await writeLaunchFiles(shared.parts.node, task.location, task.assignment, release);
    const launch = launchOf(shared.parts.node, shared.parts.checkpointDirs, task, release);
    isAsked = true;
    await task.driver.start(launch, abort);
    return { kind: 'started' };
  } catch (error) {
    const isRefused =
      error instanceof LeaseExpired || error instanceof DriverError || error instanceof WorkOutcome;
    if (isAsked && !isRefused) return unanswered(error);
    for (const hook of shared.hooks) hook.notStarted?.(task);
    return unstarted(worker, error);
  }
}

/** The driver was asked to start the task and has not answered: the task may be running. */
export function unanswered(error: unknown): TaskEvent {
  return { kind: 'failed', message: messageOf(error), mayRun: true };
}

function assigned(context: TaskContext): AssignedTask {
  const { assignment } = context;
  if (assignment === null) throw new Error('the coordinator has not sent which job this task belongs to');
  return { ...context, assignment };
}
