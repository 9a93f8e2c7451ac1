/** All tasks of one agent, by key. */
import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { isAbsolute } from 'node:path';
import type { StopOptions, TaskExit, TaskKey, TaskLocation, TaskObservation } from '../drivers/driver.ts';
import { type Containment, openGroup } from './containment.ts';
import { type ProcessIdentity, readBootId, readStat } from './processes.ts';
import type { GuardLaunch } from './protocol.ts';
import {
  type ProcessRecord,
  readExit,
  readProcessRecord,
  removeRecords,
  type TaskLinks,
  writeProcessRecord,
} from './records.ts';
import { spawnTask, storageError } from './spawn.ts';
import { endedTask, type GuardContext, type KnownTask, lostExit, Task } from './task.ts';

/** How often tasks of an earlier guard are looked at, and what was left undone at an end is tried again. */
const CHECK_INTERVAL_MS = 250;
const KEY = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;

export class Supervisor {
  readonly #containment: Containment;
  readonly #links: TaskLinks;
  readonly #context: GuardContext;
  readonly #bootId = readBootId();
  readonly #tasks = new Map<TaskKey, KnownTask>();
  readonly #starting = new Map<TaskKey, Promise<void>>();
  /** Tasks whose main process is not our child, and ended tasks with something left to do. */
  readonly #watched = new Set<Task>();
  #watchTimer: NodeJS.Timeout | null = null;

  constructor(containment: Containment, links: TaskLinks, context: GuardContext) {
    this.#containment = containment;
    this.#links = links;
    this.#context = context;
    for (const location of links.all()) {
      if (this.#find(location) === null) links.remove(location.key);
    }
  }

  /** Idempotent by key. @throws {DriverError} and nothing of the task is left behind */
  async start(launch: GuardLaunch): Promise<null> {
    requireLocation(launch);
    const underway = this.#starting.get(launch.key);
    if (underway !== undefined) await underway;
    else if (this.#find(launch) === null) {
      const starting = this.#launch(launch).finally(() => this.#starting.delete(launch.key));
      this.#starting.set(launch.key, starting);
      await starting;
    }
    return null;
  }

  async recover(location: TaskLocation): Promise<TaskObservation> {
    const task = await this.#findSettled(location);
    return task?.observe() ?? { kind: 'absent' };
  }

  async wait(location: TaskLocation): Promise<TaskExit> {
    const task = await this.#findSettled(location);
    return task?.whenEnded() ?? lostExit;
  }

  async signal({ signal, ...location }: TaskLocation & { signal: string }): Promise<null> {
    requireSignal(signal);
    const task = await this.#findSettled(location);
    task?.signal(signal);
    return null;
  }

  async stop({ signal, graceMs, ...location }: TaskLocation & StopOptions): Promise<TaskExit> {
    requireSignal(signal);
    if (!(graceMs >= 0)) throw new Error(`a grace of ${graceMs} ms is none`);
    const task = await this.#findSettled(location);
    task?.stop({ signal, graceMs });
    return task?.whenEnded() ?? lostExit;
  }

  async remove(location: TaskLocation): Promise<null> {
    const task = await this.#findSettled(location);
    if (task?.isEnded === false)
      throw new Error(`task ${location.key} still runs: stop it before removing it`);
    this.#links.remove(location.key);
    removeRecords(location.directory);
    this.#tasks.delete(location.key);
    return null;
  }

  async list(): Promise<readonly TaskKey[]> {
    return [...this.#tasks.keys()];
  }

  /** Whether ending the guard now would lose the exit status of a task. */
  get isBusy(): boolean {
    return this.#starting.size > 0 || [...this.#tasks.values()].some((task) => !task.isEnded);
  }

  /** A start under way is neither there nor absent until it has succeeded or failed. */
  async #findSettled(location: TaskLocation): Promise<KnownTask | null> {
    requireLocation(location);
    await this.#starting.get(location.key)?.catch(() => {});
    return this.#find(location);
  }

  /** In memory, or in what an earlier guard left on disk. */
  #find(location: TaskLocation): KnownTask | null {
    return this.#tasks.get(location.key) ?? this.#adopt(location);
  }

  #adopt({ key, directory }: TaskLocation): KnownTask | null {
    const location = { key, directory };
    const exit = readExit(directory);
    if (exit !== null) return this.#keepEnded(location, exit);
    const record = readProcessRecord(location, this.#bootId);
    if (record === null) return null;
    if (record.bootId !== this.#bootId) {
      return this.#keepEnded(location, { ...(record.mainExit ?? lostExit), oomKilled: false });
    }
    const task = this.#supervise(new Task(location, record, this.#context));
    this.#watch(task);
    return task;
  }

  async #launch(launch: GuardLaunch): Promise<void> {
    const location: TaskLocation = { key: launch.key, directory: launch.directory };
    const record = this.#announce(location);
    let child: ChildProcess;
    let main: ProcessIdentity;
    try {
      child = await spawnTask(launch, (spawn) => this.#containment.spawnInside(record.cgroup, spawn));
      main = identify(child);
    } catch (error) {
      this.#retract(location, record);
      throw error;
    }
    const task = new Task(location, { ...record, main }, this.#context);
    child.once('exit', (exitCode, signal) => {
      const finishedAtMs = this.#context.clock.wallMs();
      task.mainEnded({ exitCode, signal, finishedAtMs, statusLost: false });
    });
    try {
      writeProcessRecord(location.directory, { ...record, main });
    } catch (error) {
      // Without its pid on disk the task could not be found again: better not to have started it.
      task.stop({ signal: 'SIGKILL', graceMs: 0 });
      await task.whenEnded();
      this.#retract(location, record);
      throw storageError(error as NodeJS.ErrnoException, location.directory);
    }
    this.#supervise(task);
  }

  /**
   * Says on disk that a start is under way, before there is a process. A guard that is killed in between leaves this
   * to the next one, which then looks for the process and ends it: never started twice, never left behind.
   */
  #announce(location: TaskLocation): ProcessRecord {
    const announced: ProcessRecord = {
      key: location.key,
      main: null,
      bootId: this.#bootId,
      startedAtMs: this.#context.clock.wallMs(),
      cgroup: null,
      mainExit: null,
    };
    try {
      this.#links.add(location);
      const record = { ...announced, cgroup: this.#containment.prepare(location) };
      writeProcessRecord(location.directory, record);
      return record;
    } catch (error) {
      this.#retract(location, announced);
      throw storageError(error as NodeJS.ErrnoException, location.directory);
    }
  }

  #retract(location: TaskLocation, record: ProcessRecord): void {
    openGroup(location, record).release();
    removeRecords(location.directory);
    this.#links.remove(location.key);
  }

  #keepEnded({ key }: TaskLocation, exit: TaskExit): KnownTask {
    const task = endedTask(exit);
    this.#tasks.set(key, task);
    return task;
  }

  #supervise(task: Task): Task {
    this.#tasks.set(task.location.key, task);
    void this.#afterEnd(task);
    return task;
  }

  async #afterEnd(task: Task): Promise<void> {
    await task.whenEnded();
    if (task.isSettled) this.#forgetDetails(task);
    else this.#watch(task);
  }

  /** Of thousands of ended tasks only the exits stay in memory. */
  #forgetDetails(task: Task): void {
    const { key } = task.location;
    const observation = task.observe();
    if (this.#tasks.get(key) === task && observation.kind === 'exited') {
      this.#keepEnded(task.location, observation.exit);
    }
  }

  #watch(task: Task): void {
    this.#watched.add(task);
    this.#watchTimer ??= setInterval(() => this.#checkWatched(), CHECK_INTERVAL_MS);
  }

  #checkWatched(): void {
    for (const task of this.#watched) {
      task.checkMain();
      task.settle();
      if (!task.isSettled) continue;
      this.#watched.delete(task);
      this.#forgetDetails(task);
    }
    if (this.#watched.size > 0 || this.#watchTimer === null) return;
    clearInterval(this.#watchTimer);
    this.#watchTimer = null;
  }
}

/** The child is not reaped before the event loop turns again, so /proc still has it even when it has ended already. */
function identify({ pid }: ChildProcess): ProcessIdentity {
  const stat = pid === undefined ? null : readStat(pid);
  if (stat === null) throw new Error(`/proc does not show the process ${pid} that was just started`);
  return { pid: stat.pid, startTicks: stat.startTicks };
}

/** Keys become names of links and control groups. @throws {Error} when one could reach outside */
function requireLocation({ key, directory }: TaskLocation): void {
  if (!KEY.test(key)) throw new Error(`${JSON.stringify(key)} is not a task key`);
  if (!isAbsolute(directory)) throw new Error(`the directory of task ${key} is not absolute: ${directory}`);
}

function requireSignal(signal: string): void {
  if (!(signal in constants.signals))
    throw new Error(`${JSON.stringify(signal)} is not the name of a signal`);
}
