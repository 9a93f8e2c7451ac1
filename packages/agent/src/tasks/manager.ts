/**
 * The tasks of this node. What should be comes from the session, what is from records and drivers, and each task has a
 * runner that brings the two together.
 */

import type { CheckpointSeen } from '@muster/common/checkpoints';
import { messageOf } from '@muster/common/errors';
import { type JobId, parseTaskKey, type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { TaskReport } from '@muster/common/views';
import type { Driver } from '../drivers/driver.ts';
import { endPreflight, parsePreflightKey, preflightLocation } from '../rendezvous/preflightRun.ts';
import type { Assignment } from '../taskFacts/assignment.ts';
import type { RunnerParts, RunnerShared } from './effects.ts';
import { taskHooks } from './hooks.ts';
import { TaskRunner } from './runner.ts';
import { mayHoldGpus, type Order, type TaskState } from './state.ts';

/** What the tasks of a node are built on. */
export type ManagerParts = Omit<RunnerParts, 'gpuHolder' | 'isShared'>;

/** Far more than can be on their way on one connection. */
const forgottenMax = 10_000;

/** A lease, as the coordinator gives it. */
export interface GivenLease {
  /** CLOCK_BOOTTIME at which the question was sent that the coordinator answered last. */
  readonly askedMs: number;
  /** 0: never fenced. */
  readonly leaseMs: number;
}

/** An order about a task, with the lease that comes with it. */
export interface GivenOrder {
  readonly task: TaskRef;
  readonly order: Order;
  /** null: the order does not let the task run, or not for longer than before. */
  readonly lease: GivenLease | null;
}

export interface RunningTask {
  readonly task: TaskRef;
  /** null: the task was found without a record. */
  readonly assignment: Assignment | null;
  readonly gpuUuids: readonly string[];
}

export class TaskManager {
  private readonly parts: ManagerParts;
  private readonly shared: RunnerShared;
  private readonly runners = new Map<TaskKey, TaskRunner>();
  /** A late or repeated order about one of these would start it a second time. The newest are enough. */
  private readonly forgotten = new Set<TaskKey>();
  private readonly closing = new AbortController();

  constructor(parts: ManagerParts) {
    this.parts = parts;
    const runnerParts = {
      ...parts,
      gpuHolder: (task: TaskRef, gpuUuids: readonly string[]) => this.gpuHolder(task, gpuUuids),
      isShared: (task: TaskRef, checkpointJobId: JobId) => this.isShared(task, checkpointJobId),
    };
    this.shared = {
      parts: runnerParts,
      ...taskHooks(runnerParts),
      closing: this.closing.signal,
      onRemoved: (state) => this.removed(state),
    };
  }

  /** Finds the tasks of an earlier agent, by its records and by what the drivers know. To be awaited before the first Hello. */
  async recover(): Promise<void> {
    const records = this.parts.records.load();
    await Promise.all(records.map((record) => this.runner(record.assignment.task).restore(record)));
    for (const driver of Object.values(this.parts.drivers)) await this.adoptUnrecorded(driver);
  }

  /** A new connection: what was sent on the one before may not have arrived. */
  connected(): void {
    for (const runner of this.runners.values()) runner.connected();
  }

  /** The coordinator lets a task run. A lease for a task that this agent does not know has no effect. */
  grant(task: TaskRef, { askedMs, leaseMs }: GivenLease): void {
    const life = this.runners.get(taskKey(task))?.state.life;
    if (life !== undefined && life.kind !== 'ended') this.parts.leases.grant(task, askedMs, leaseMs);
  }

  /** The task may start now, or was frozen or thawed. */
  leaseChanged(task: TaskRef): void {
    this.runners.get(taskKey(task))?.post({ kind: 'leaseChanged' });
  }

  /** Everything that the coordinator wants when it connects. Tasks that it does not name are left as they are. */
  setDesired(orders: ReadonlyMap<TaskKey, GivenOrder>): void {
    // First, because by the checkpoints the coordinator chooses what follows an end that it learns of next.
    this.parts.checkpoints.resend();
    for (const [key, runner] of Array.from(this.runners))
      if (!orders.has(key)) runner.post({ kind: 'unnamed' });
    for (const given of orders.values()) this.setOrder(this.asKnownHere(given));
  }

  /**
   * A coordinator that wants a task which it had ordered this agent to forget has a store from before that. The task is not
   * run again: the agent reports the one thing that it still knows, that the task has ended.
   */
  private asKnownHere(given: GivenOrder): GivenOrder {
    const { task, order } = given;
    const key = taskKey(task);
    if (order.kind === 'forget' || this.runners.has(key) || !this.forgotten.delete(key)) return given;
    this.parts.log.warn(
      { task: key },
      'the coordinator wants a task whose end it had recorded: its store is older',
    );
    const { assignment } = order;
    return { task, order: { kind: 'stop', assignment, signal: 'SIGKILL', graceMs: 0 }, lease: null };
  }

  setOrder({ task, order, lease }: GivenOrder): void {
    const key = taskKey(task);
    if (order.kind === 'forget') this.noteForgotten(key);
    else if (this.forgotten.has(key)) return;
    const mustBeKnown = order.kind === 'forget' || (order.kind === 'check' && order.assignment === null);
    if (mustBeKnown && !this.runners.has(key)) return;
    const runner = this.runner(task);
    // A start begins at once under its lease. Before any other order the lease could start what must no longer run.
    if (order.kind === 'start' && lease !== null) this.grant(task, lease);
    runner.post({ kind: 'ordered', order });
    if (order.kind !== 'start' && lease !== null) this.grant(task, lease);
  }

  /** The coordinator has all of a task's output. */
  setUploaded(task: TaskRef): void {
    this.runners.get(taskKey(task))?.post({ kind: 'uploaded' });
  }

  /** Everything that is known of what the tasks have saved, for a Hello. */
  checkpoints(): readonly CheckpointSeen[] {
    return this.parts.checkpoints.messages();
  }

  /** Everything that this agent knows of its tasks, for a Hello and for heartbeats. */
  reports(): readonly TaskReport[] {
    const nowMs = this.parts.boottimeMs();
    return [...this.runners.values()]
      .map((runner) => runner.report(() => nowMs))
      .filter((report) => report !== null);
  }

  /** The coordinator's proofs of the tasks in the reports. */
  proofs(): readonly { readonly task: TaskRef; readonly proof: string }[] {
    return [...this.runners.values()].flatMap(({ state: { task, life, assignment } }) =>
      life.kind === 'unrecorded' || assignment === null || assignment.proof === ''
        ? []
        : { task, proof: assignment.proof },
    );
  }

  /** Tasks that run, with the GPUs that they were given. */
  running(): readonly RunningTask[] {
    return [...this.runners.values()]
      .filter(({ state: { life } }) => life.kind === 'running' || life.kind === 'ending')
      .map(({ state: { task, assignment } }) => ({
        task,
        assignment,
        gpuUuids: assignment?.gpuUuids ?? [],
      }));
  }

  /** null: there is no such task here, or it was found without a record. */
  assignmentOf(task: TaskRef): Assignment | null {
    return this.runners.get(taskKey(task))?.state.assignment ?? null;
  }

  /** Something that the reports of a running task contain has changed. */
  reportChange(task: TaskRef): void {
    const runner = this.runners.get(taskKey(task));
    const kind = runner?.state.life.kind;
    if (kind === 'running' || kind === 'ending') runner?.sendReport();
  }

  /** The program of the task has failed and will not end soon: signal, the job's grace, kill. The task ends as by itself. */
  async endFailed(task: TaskRef): Promise<void> {
    await this.runners.get(taskKey(task))?.endFailed();
  }

  /** Stops looking. Tasks run on. */
  async close(): Promise<void> {
    this.closing.abort(new Error('the agent is closing'));
    this.parts.leases.close();
    for (const runner of this.runners.values()) runner.close();
    for (const hook of this.shared.hooks) await hook.closed?.();
    for (const driver of Object.values(this.parts.drivers)) await driver.close();
  }

  private gpuHolder(task: TaskRef, gpuUuids: readonly string[]): TaskKey | null {
    const wanted = new Set(gpuUuids);
    const key = taskKey(task);
    for (const [other, { state }] of this.runners) {
      const { assignment } = state;
      const hasOne = assignment?.gpuUuids.some((uuid) => wanted.has(uuid)) === true;
      if (other !== key && mayHoldGpus(state) && hasOne) return other;
    }
    return null;
  }

  private isShared(task: TaskRef, checkpointJobId: JobId): boolean {
    const key = taskKey(task);
    return [...this.runners].some(
      ([other, { state }]) => other !== key && state.assignment?.checkpointJobId === checkpointJobId,
    );
  }

  /** A task that is wanted again while it is removed starts from scratch, because nothing that is left of it is of use. */
  private removed({ task, order, assignment }: TaskState): void {
    this.runners.delete(taskKey(task));
    if (order === null || order.kind === 'forget') return;
    const isBare = order.kind !== 'prepare' && order.assignment === null;
    this.setOrder({ task, order: isBare ? { ...order, assignment } : order, lease: null });
  }

  private noteForgotten(key: TaskKey): void {
    this.forgotten.add(key);
    const [oldest] = this.forgotten;
    if (oldest !== undefined && this.forgotten.size > forgottenMax) this.forgotten.delete(oldest);
  }

  private runner(task: TaskRef): TaskRunner {
    const key = taskKey(task);
    let runner = this.runners.get(key);
    if (runner === undefined) {
      runner = new TaskRunner(this.shared, task);
      this.runners.set(key, runner);
    }
    return runner;
  }

  /**
   * This node started these tasks, and their record is gone: it was being removed when the agent died, or the data directory
   * was wiped. What has ended is cleaned up. What runs is somebody's work, so it is reported, and the coordinator decides.
   */
  private async adoptUnrecorded(driver: Driver): Promise<void> {
    const { log, records } = this.parts;
    try {
      for (const key of await driver.list()) {
        await this.endOrphanedPreflight(driver, key);
        const task = parseTaskKey(key);
        if (task === null || this.runners.has(taskKey(task))) continue;
        const location = { key, directory: records.directory(task) };
        const observed = await driver.recover(location);
        log.warn({ task: key, driver: driver.name, observed: observed.kind }, 'a task has no record here');
        if (observed.kind === 'running') this.runner(task).adopt(driver.name, observed);
        else await driver.remove(location);
      }
    } catch (error) {
      const fields = { driver: driver.name, error: messageOf(error) };
      log.warn(fields, 'could not look for tasks without record');
    }
  }

  /** The agent that wanted to know what the preflight measures is gone. */
  private async endOrphanedPreflight(driver: Driver, key: string): Promise<void> {
    const task = parsePreflightKey(key);
    if (task === null) return;
    const location = { key: taskKey(task), directory: this.parts.records.directory(task) };
    await endPreflight(driver, preflightLocation(location));
  }
}
