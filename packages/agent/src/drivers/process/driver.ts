/** Runs tasks as bare processes on the node, through the guard: the agent is never their parent. */

import { untilAborted } from '@muster/common/async';
import { readBootId } from '@muster/common/boot';
import { messageOf } from '@muster/common/errors';
import { freezeOrKill } from '../../fence/freeze.ts';
import { OnePerTask } from '../../fence/onePerTask.ts';
import { isRunning, sendSignal } from '../../fence/processes.ts';
import type { TaskGroup } from '../../fence/taskGroup.ts';
import { openGroup } from '../../guard/containment.ts';
import type { AccountLaunch, GuardLaunch } from '../../guard/protocol.ts';
import { noteSignal, readSignal, readStoredTask } from '../../guard/records.ts';
import { DriverError, LeaseExpired } from '../../taskFacts/errors.ts';
import type {
  Lease,
  StopOptions,
  TaskExit,
  TaskLocation,
  TaskName,
  TaskObservation,
} from '../../taskFacts/execution.ts';
import type { TaskDriver, TaskLaunch } from '../driver.ts';
import { stopPastHelper } from '../helperStop.ts';
import { GuardClient, type GuardClientOptions } from './guardClient.ts';
import { GuardRefusal } from './guardConnection.ts';

/** For the guard's word on a task whose record is gone. */
const recoverMs = 1_000;

/**
 * Connects to the guard with the first call, and starts one if there is none.
 * Besides what `Driver` documents, every method may throw `GuardUnavailable` or `GuardMismatch`: the node cannot run bare
 * tasks now, and what became of the request is not known.
 * @throws {Error} when the runtime directory's path is too long for a socket
 */
export function createProcessDriver(options: GuardClientOptions): TaskDriver {
  return new ProcessDriver(options);
}

class ProcessDriver implements TaskDriver {
  readonly name = 'process';
  private readonly options: GuardClientOptions;
  private readonly guard: GuardClient;
  /** One question to the guard however many ask: aborted waits must not pile up there. */
  private readonly waits = new Map<TaskName, Promise<TaskExit>>();
  private readonly fencing = new OnePerTask();
  /** Of tasks that were seen to run: a task can remove its record. */
  private readonly groups = new Map<TaskName, TaskGroup>();

  constructor(options: GuardClientOptions) {
    this.options = options;
    this.guard = new GuardClient(options);
  }

  /** The guard looks: it may see other places of the node than a sandboxed agent does. */
  async prepare(launch: TaskLaunch, onDoing: (what: string) => void, abort?: AbortSignal): Promise<void> {
    abort?.throwIfAborted();
    onDoing(`looks for ${launch.command[0]}`);
    const as = accountLaunch(launch);
    await explained(
      as === null ? this.guard.request('prepare', guardLaunch(launch)) : this.guard.request('prepareAs', as),
    );
  }

  /** Takes a moment, and there is nothing to wait for that could be given up. */
  async start(launch: TaskLaunch, abort?: AbortSignal): Promise<void> {
    abort?.throwIfAborted();
    await explained(this.requestStart(launch));
    this.groupOf(launch);
  }

  recover({ key, directory }: TaskLocation): Promise<TaskObservation> {
    return this.guard.request('recover', { key, directory });
  }

  async wait({ key, directory }: TaskLocation, abort: AbortSignal): Promise<TaskExit> {
    abort.throwIfAborted();
    let waiting = this.waits.get(key);
    if (waiting === undefined) {
      waiting = this.guard.request('wait', { key, directory }).finally(() => this.waits.delete(key));
      // All who asked may have aborted by the time it fails.
      waiting.catch(() => {});
      this.waits.set(key, waiting);
    }
    return untilAborted(waiting, abort);
  }

  async renew({ key, directory }: TaskLocation, lease: Lease | null): Promise<void> {
    await this.guard.request('renew', { key, directory, lease, groups: [] });
  }

  /** Without the guard: it may be stopped, and this fence must hold anyway. */
  freeze(task: TaskLocation): Promise<'frozen' | 'killed' | 'ended'> {
    return this.fencing.run(task.key, async () => {
      const group = this.groupOf(task);
      if (group !== undefined) return group === null ? 'ended' : freezeOrKill(group);
      const observed = await untilAborted(this.recover(task), AbortSignal.timeout(recoverMs));
      if (observed.kind !== 'running') return 'ended';
      throw new Error(`the record of task ${task.key} is gone, so only the guard can freeze it`);
    });
  }

  processes(task: TaskLocation): readonly number[] {
    return this.groupOf(task)?.pids() ?? [];
  }

  thaw(task: TaskLocation): Promise<void> {
    return this.fencing.run(task.key, async () => this.groupOf(task)?.thaw());
  }

  /** As `groupOf`; undefined: nothing is known of it, and its guard may know more. */
  private groupOf(task: TaskLocation): TaskGroup | null | undefined {
    const group = groupOf(task);
    if (group === undefined) return this.groups.get(task.key);
    if (group === null) this.groups.delete(task.key);
    else this.groups.set(task.key, group);
    return group;
  }

  async signal({ key, directory }: TaskLocation, signal: string): Promise<void> {
    await this.guard.request('signal', { key, directory, signal });
  }

  stop(task: TaskLocation, options: StopOptions): Promise<TaskExit> {
    const { key, directory } = task;
    const { signal, graceMs } = options;
    return stopPastHelper({
      answer: this.guard.request('stop', { key, directory, signal, graceMs }),
      options,
      answers: async (deadlineMs) => (await this.guard.probe(deadlineMs)).state !== 'silent',
      groups: () => {
        const group = this.groupOf(task);
        return group == null ? null : [group];
      },
      signal: () => this.signalPastGuard(task, signal),
      onTakeOver: () =>
        this.options.log.warn(
          { task: key },
          'the guard does not answer: the agent stops one of its tasks directly',
        ),
      monotonicMs: () => performance.now(),
      probeMs: this.options.probeMs,
    });
  }

  private signalPastGuard(task: TaskLocation, signal: string): void {
    // The guard may have sent it before it stopped to answer, and reads the note when it continues.
    if (readSignal(task.directory) === signal) return;
    try {
      noteSignal(task.directory, signal);
    } catch (error) {
      const fields = { task: task.key, error: messageOf(error) };
      this.options.log.warn(fields, 'the guard may signal a task a second time');
    }
    signalTask(task, this.groupOf(task) ?? null, signal);
  }

  async remove({ key, directory }: TaskLocation): Promise<void> {
    await this.guard.request('remove', { key, directory });
    this.groups.delete(key);
  }

  list(): Promise<readonly TaskName[]> {
    return this.guard.request('list', null);
  }

  async close(): Promise<void> {
    this.guard.close();
  }

  private requestStart(launch: TaskLaunch): Promise<null> {
    const { lease } = launch;
    const as = accountLaunch(launch);
    if (as !== null) return this.guard.request('startAs', { ...as, lease });
    const params = guardLaunch(launch);
    return lease === null
      ? this.guard.request('start', params)
      : this.guard.request('startLeased', { ...params, lease });
  }
}

/** As the guard noted it. null: the task has ended. undefined: nothing is noted, or no longer. */
export function groupOf(task: TaskLocation): TaskGroup | null | undefined {
  const bootId = readBootId();
  const record = readStoredTask(task, bootId);
  if (record === null) return undefined;
  if (record.bootId !== bootId || record.exit !== null) return null;
  return openGroup(task, record);
}

/** Signals the process group of a task as its guard does, or each process once the main process has ended. */
function signalTask(task: TaskLocation, group: TaskGroup | null, signal: string): void {
  const main = readStoredTask(task, readBootId())?.main ?? null;
  const pids = main !== null && isRunning(main) ? [-main.pid] : (group?.pids() ?? []);
  for (const pid of pids) sendSignal(pid, signal);
}

function guardLaunch(launch: TaskLaunch): GuardLaunch {
  const { key, directory, image, command, env, workdir, umask, directories, cpus, memoryMb } = launch;
  if (image !== null || command.length === 0) {
    throw new Error(`task ${key} is not one for the process driver: it needs a command and no image`);
  }
  return { key, directory, command, env, workdir: workdir ?? directory, umask, directories, cpus, memoryMb };
}

/** null: it runs as the guard does. */
function accountLaunch(launch: TaskLaunch): AccountLaunch | null {
  const { account, workdir, ownDirectories, ownFiles } = launch;
  return account === null ? null : { ...guardLaunch(launch), account, workdir, ownDirectories, ownFiles };
}

/** The guard's reason why a task cannot be started, as an error of drivers. */
async function explained(answer: Promise<null>): Promise<void> {
  try {
    await answer;
  } catch (error) {
    if (!(error instanceof GuardRefusal)) throw error;
    if (error.leaseExpired) throw new LeaseExpired(error.message, { cause: error });
    if (error.causeKind === null) throw error;
    throw new DriverError(error.causeKind, error.message, { cause: error });
  }
}
