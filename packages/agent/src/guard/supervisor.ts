/** All tasks of one agent, by key. */

import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readBootId } from '@muster/common/boot';
import type { Clock } from '@muster/common/clock';
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import { ControlGroup, removeEmptyGroups } from '../fence/controlGroup.ts';
import { isExpired } from '../fence/leaseFile.ts';
import { type ProcessIdentity, readStat } from '../fence/processes.ts';
import { DriverError, LeaseExpired } from '../taskFacts/errors.ts';
import type {
  Lease,
  StopOptions,
  TaskExit,
  TaskLocation,
  TaskName,
  TaskObservation,
} from '../taskFacts/execution.ts';
import type { Accounts } from './account.ts';
import { agentLets } from './agentLease.ts';
import { Ballast } from './ballast.ts';
import { type Containment, openGroup } from './containment.ts';
import { Fences } from './fences.ts';
import type { LeaseFiles } from './leaseFiles.ts';
import type { OutputLimits } from './outputPace.ts';
import { OutputWatch } from './outputWatch.ts';
import type { AccountLaunch, GuardLaunch, Renewal } from './protocol.ts';
import {
  type ProcessRecord,
  readStoredTask,
  removeRecords,
  type TaskLinks,
  writeProcessRecord,
} from './records.ts';
import { requireLocation, requireSignal } from './requests.ts';
import type { TaskLimits } from './resources.ts';
import { spawnTask, storageError } from './spawn.ts';
import { endedTask, type GuardContext, GuardedTask, type KnownTask, lostExit } from './task.ts';
import { taskStart } from './taskStart.ts';

/** How often tasks of an earlier guard are looked at, and what was left undone at an end is tried again. */
const checkIntervalMs = 250;
/** Groups for limits that a task may have. */
const anyLimits: TaskLimits = { cpus: 1, memoryMb: 1 };

export interface SupervisorParts {
  readonly containment: Containment;
  readonly links: TaskLinks;
  readonly leases: LeaseFiles;
  readonly accounts: Accounts;
  readonly ballast: Ballast;
  readonly clock: Clock;
  readonly boottimeMs: () => number;
  readonly log: Logger;
}

export class Supervisor {
  private readonly containment: Containment;
  private readonly links: TaskLinks;
  private readonly context: GuardContext;
  private readonly accounts: Accounts;
  private readonly boottimeMs: () => number;
  private readonly fences: Fences;
  private readonly outputs: OutputWatch;
  private readonly bootId = readBootId();
  private readonly tasks = new Map<TaskName, KnownTask>();
  private readonly starting = new Map<TaskName, Promise<void>>();
  /** Tasks whose main process is not our child, and ended tasks with something left to do. */
  private readonly watched = new Set<GuardedTask>();
  private watchTimer: NodeJS.Timeout | null = null;

  constructor({ containment, links, leases, accounts, ballast, clock, boottimeMs, log }: SupervisorParts) {
    this.containment = containment;
    this.links = links;
    this.accounts = accounts;
    this.boottimeMs = boottimeMs;
    this.fences = new Fences({
      files: leases,
      bootId: this.bootId,
      boottimeMs,
      log,
      ownTask: (key) => this.tasks.get(key)?.fenced ?? null,
    });
    this.outputs = new OutputWatch({
      monotonicMs: () => clock.monotonicMs(),
      mayRun: ({ key, directory }) =>
        this.fences.mayRun(key) && agentLets(directory, this.bootId, boottimeMs()),
      ballast,
      log,
    });
    this.context = {
      clock,
      log,
      now: () => ({ finishedAtMs: clock.wallMs(), finishedBoottimeMs: boottimeMs() }),
      mayRun: (key) => this.fences.mayRun(key),
      isHeld: (key) => this.outputs.isHeld(key),
    };
    for (const location of links.all()) this.adoptOrReport(location);
    this.fences.takeOver();
    for (const { location, groups } of leases.all())
      if (groups !== null) this.watchContainer(location, groups);
  }

  /** From now on; without them what is usual holds. */
  async outputLimits(limits: OutputLimits): Promise<null> {
    this.outputs.setLimits(limits);
    return null;
  }

  /**
   * Idempotent by key.
   * @param lease null: never fenced
   * @throws {LeaseExpired} and nothing ran
   * @throws {DriverError} and nothing of the task is left behind
   */
  async start(launch: GuardLaunch | AccountLaunch, lease: Lease | null): Promise<null> {
    requireLocation(launch);
    const underway = this.starting.get(launch.key);
    if (underway !== undefined) await underway;
    else if (this.find(launch) === null) {
      const starting = this.launch(launch, lease).finally(() => this.starting.delete(launch.key));
      this.starting.set(launch.key, starting);
      await starting;
    }
    return null;
  }

  /** Of a task of its own, or of a container engine's. A task that has ended is not an error. */
  async renew({ lease, groups, ...location }: TaskLocation & Renewal): Promise<null> {
    await this.findSettled(location);
    this.fences.renew(location, lease, groups);
    if (groups.length > 0 && this.tasks.get(location.key)?.fenced == null)
      this.watchContainer(location, groups);
    return null;
  }

  async forget(location: TaskLocation): Promise<null> {
    const task = await this.findSettled(location);
    if (task?.isEnded !== false) {
      this.fences.forget(location.key);
      this.outputs.forget(location.key);
    }
    return null;
  }

  async recover(location: TaskLocation): Promise<TaskObservation> {
    const task = await this.findSettled(location);
    return task?.observe() ?? { kind: 'absent' };
  }

  async wait(location: TaskLocation): Promise<TaskExit> {
    const task = await this.findSettled(location);
    return task?.whenEnded() ?? lostExit;
  }

  async signal({ signal, ...location }: TaskLocation & { signal: string }): Promise<null> {
    requireSignal(signal);
    const task = await this.findSettled(location);
    task?.signal(signal);
    return null;
  }

  async stop({ signal, graceMs, ...location }: TaskLocation & StopOptions): Promise<TaskExit> {
    requireSignal(signal);
    if (!(graceMs >= 0)) throw new Error(`invalid grace of ${graceMs} ms`);
    const task = await this.findSettled(location);
    task?.stop({ signal, graceMs });
    return task?.whenEnded() ?? lostExit;
  }

  async remove(location: TaskLocation): Promise<null> {
    const task = await this.findSettled(location);
    if (task?.isEnded === false)
      throw new Error(`task ${location.key} still runs: stop it before removing it`);
    this.fences.forget(location.key);
    this.links.remove(location.key);
    removeRecords(location.directory);
    this.tasks.delete(location.key);
    return null;
  }

  async list(): Promise<readonly TaskName[]> {
    return [...this.tasks.keys()];
  }

  /** Whether ending the guard now would lose the exit status of a task, or its fence. */
  get isBusy(): boolean {
    return (
      this.fences.isHolding ||
      this.starting.size > 0 ||
      [...this.tasks.values()].some((task) => !task.isEnded)
    );
  }

  /** A start under way is neither there nor absent until it has succeeded or failed. */
  private async findSettled(location: TaskLocation): Promise<KnownTask | null> {
    requireLocation(location);
    await this.starting.get(location.key)?.catch(() => {});
    return this.find(location);
  }

  /** In memory, or in what an earlier guard left on disk. */
  private find(location: TaskLocation): KnownTask | null {
    return this.tasks.get(location.key) ?? this.adopt(location);
  }

  private adopt({ key, directory }: TaskLocation): KnownTask | null {
    const location = { key, directory };
    const stored = readStoredTask(location, this.bootId);
    if (stored !== null && stored.exit !== null) return this.keepEnded(location, stored.exit);
    const record = stored ?? this.announced(location);
    if (record === null) return null;
    if (record.bootId !== this.bootId) {
      return this.keepEnded(location, { ...(record.mainExit ?? lostExit), oomKilled: false });
    }
    const task = this.supervise(new GuardedTask(location, record, this.context));
    this.watch(task);
    return task;
  }

  /** One task whose files cannot be read must not keep the guard from all the others. */
  private adoptOrReport(location: TaskLocation): void {
    try {
      this.adopt(location);
    } catch (error) {
      this.context.log.error(
        { task: location.key, error },
        'a task of an earlier guard cannot be taken over',
      );
    }
  }

  private announced(location: TaskLocation): ProcessRecord | null {
    return this.links.has(location) ? this.newRecord(location, null, anyLimits) : null;
  }

  private newRecord(location: TaskLocation, main: ProcessIdentity | null, limits: TaskLimits): ProcessRecord {
    return {
      key: location.key,
      main,
      bootId: this.bootId,
      startedAtMs: main === null ? null : this.context.clock.wallMs(),
      cgroup: this.containment.cgroupOf(location),
      limitGroups: this.containment.limitGroupsOf(location, limits),
      mainExit: null,
    };
  }

  private async launch(launch: GuardLaunch | AccountLaunch, lease: Lease | null): Promise<void> {
    const location: TaskLocation = { key: launch.key, directory: launch.directory };
    const limits: TaskLimits = { cpus: launch.cpus ?? null, memoryMb: launch.memoryMb ?? null };
    let child: ChildProcess;
    try {
      if (lease !== null) this.fences.armNew(location, lease);
      this.links.add(location);
      child = await spawnTask(await taskStart(launch, this.accounts), (spawn) =>
        this.containment.spawnInside(location, limits, () => {
          // The last moment: from here to the first instruction there is only the kernel.
          this.requireLease(location, lease);
          return spawn();
        }),
      );
    } catch (error) {
      this.retract(location);
      throw asStartError(error, location);
    }
    const record = this.newRecord(location, identify(child), limits);
    const task = new GuardedTask(location, record, this.context);
    // Known limit: Node reports a death by a real-time signal (34 to 64) as exit code 0, and nothing tells them apart.
    child.once('exit', (exitCode, signal) => {
      task.mainEnded({ exitCode, signal, ...this.context.now(), statusLost: false });
    });
    try {
      if (record.main === null) throw new Error('its main process cannot be seen in /proc');
      writeProcessRecord(location.directory, record);
      if (!this.containment.limit(location, limits)) task.killForMemory();
    } catch (error) {
      // Without its pid on disk the task could not be found again: better not to have started it.
      task.stop({ signal: 'SIGKILL', graceMs: 0 });
      await task.whenEnded();
      this.retract(location);
      throw asStartError(error, location);
    }
    this.supervise(task);
  }

  private requireLease({ key }: TaskLocation, lease: Lease | null): void {
    if (lease === null || !isExpired(lease, this.bootId, this.boottimeMs())) return;
    throw new LeaseExpired(`the lease of task ${key} had run out before it was started`);
  }

  private retract(location: TaskLocation): void {
    this.fences.forget(location.key);
    const cgroup = this.containment.cgroupOf(location);
    openGroup(location, { cgroup, main: null }).release();
    for (const group of this.containment.limitGroupsOf(location, anyLimits)) removeEmptyGroups(group);
    removeRecords(location.directory);
    this.links.remove(location.key);
  }

  private keepEnded({ key }: TaskLocation, exit: TaskExit): KnownTask {
    const task = endedTask(exit);
    this.tasks.set(key, task);
    return task;
  }

  private supervise(task: GuardedTask): GuardedTask {
    this.tasks.set(task.location.key, task);
    this.outputs.watch({
      location: task.location,
      groups: () => [task.group],
      isStopping: () => task.isStopping,
    });
    this.afterEnd(task).catch((error: unknown) => {
      const { key } = task.location;
      this.context.log.error({ task: key, error }, 'cannot tidy up after the end of a task');
    });
    return task;
  }

  private watchContainer(location: TaskLocation, groups: readonly string[]): void {
    this.outputs.watch({
      location,
      groups: () => groups.filter((path) => existsSync(path)).map((path) => new ControlGroup(path)),
      isStopping: () => false,
    });
  }

  private async afterEnd(task: GuardedTask): Promise<void> {
    await task.whenEnded();
    this.fences.forget(task.location.key);
    this.outputs.forget(task.location.key);
    if (task.isSettled) this.forgetDetails(task);
    else this.watch(task);
  }

  /** Of thousands of ended tasks only the exits stay in memory. */
  private forgetDetails(task: GuardedTask): void {
    const { key } = task.location;
    const observation = task.observe();
    if (this.tasks.get(key) === task && observation.kind === 'exited') {
      this.keepEnded(task.location, observation.exit);
    }
  }

  private watch(task: GuardedTask): void {
    this.watched.add(task);
    this.watchTimer ??= setInterval(() => this.checkWatched(), checkIntervalMs);
  }

  private checkWatched(): void {
    for (const task of this.watched) {
      try {
        task.checkMain();
      } catch (error) {
        // /proc could not be read (too many open files?): not seen is not ended, the next look may see it.
        this.context.log.error(
          { task: task.location.key, error },
          'cannot look for the main process of a task',
        );
      }
      task.settle();
      if (!task.isSettled) continue;
      this.watched.delete(task);
      this.forgetDetails(task);
    }
    if (this.watched.size > 0 || this.watchTimer === null) return;
    clearInterval(this.watchTimer);
    this.watchTimer = null;
  }
}

/**
 * The child is not reaped before the event loop turns again, so /proc still has it even when it has ended already.
 * null: /proc could not be read, say for too many open files.
 */
function identify({ pid }: ChildProcess): ProcessIdentity | null {
  try {
    const stat = pid === undefined ? null : readStat(pid);
    return stat === null ? null : { pid: stat.pid, startTicks: stat.startTicks };
  } catch {
    return null;
  }
}

function asStartError(error: unknown, { key, directory }: TaskLocation): Error {
  if (error instanceof DriverError || error instanceof LeaseExpired) return error;
  if ((error as NodeJS.ErrnoException).code !== undefined) {
    return storageError(error as NodeJS.ErrnoException, directory);
  }
  return new DriverError('unknown', `task ${key} could not be started: ${messageOf(error)}`, {
    cause: error,
  });
}
