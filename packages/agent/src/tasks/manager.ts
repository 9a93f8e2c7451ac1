/**
 * The tasks of this node: asks `reconcile` what to do about each, has it done, one action per task at a time, and looks
 * again. What should be comes from the session, what is from the records and drivers; nothing here survives the agent,
 * and nothing has to.
 */

import { messageOf } from '@muster/common/errors';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import { backoffMs } from '@muster/common/retry';
import type { TaskReport } from '@muster/common/views';
import type { CheckpointSeen } from '@muster/common/wire/trainingCodec';
import type { Assignment } from '../taskFacts/assignment.ts';
import { TaskActions } from './actions.ts';
import {
  actualStateOf,
  desiredStateOf,
  isNotWanted,
  isOutdated,
  newEntry,
  type Order,
  reportOf,
  type SeenOfTask,
  type TaskEntry,
} from './entry.ts';
import type { ManagerParts } from './parts.ts';
import { TaskPhases } from './phases.ts';
import { Preparation } from './preparation.ts';
import { type Action, reconcile } from './reconcile.ts';
import { recoverTasks } from './recovery.ts';

/** Far more than can be on their way on one connection. */
const forgottenMax = 10_000;

export interface RunningTask {
  readonly task: TaskRef;
  /** null: it was found without a record. */
  readonly assignment: Assignment | null;
  readonly gpuUuids: readonly string[];
}

export class TaskManager {
  private readonly parts: ManagerParts;
  private readonly entries = new Map<TaskKey, TaskEntry>();
  /** A late or repeated order about one of these would start it a second time. The newest are enough. */
  private readonly forgotten = new Set<TaskKey>();
  private readonly closing = new AbortController();
  private readonly phases: TaskPhases;
  private readonly preparation: Preparation;
  private readonly actions: TaskActions;

  constructor(parts: ManagerParts) {
    this.parts = parts;
    const { signal } = this.closing;
    this.phases = new TaskPhases(parts);
    this.preparation = new Preparation(parts, this.phases, signal, (entry) => this.gpuHolder(entry));
    this.actions = new TaskActions(parts, this.phases, signal, (entry) => this.converge(entry));
  }

  /** Finds the tasks of an earlier run of this agent. To be awaited before the first Hello. */
  recover(): Promise<void> {
    const isKnown = (task: TaskRef) => this.entries.has(taskKey(task));
    return recoverTasks(this.parts, this.phases, this.actions, {
      isKnown,
      entryOf: (task) => this.entry(task),
    });
  }

  /** A new connection: what was said on the old one may not have arrived. */
  connected(): void {
    for (const entry of this.entries.values()) {
      if (entry.preparedMessage === 'sent') entry.preparedMessage = 'lost';
      entry.findingsSent = false;
      entry.reported = null;
    }
  }

  /**
   * The coordinator lets a task run; what this agent does not know is nothing to it.
   * @param askedMs CLOCK_BOOTTIME at which the question was sent that it answered last
   * @param leaseMs 0: never fenced
   */
  grant(task: TaskRef, askedMs: number, leaseMs: number): void {
    const entry = this.entries.get(taskKey(task));
    if (entry !== undefined && entry.phase?.kind !== 'ended') this.parts.leases.grant(task, askedMs, leaseMs);
  }

  /** It may start now, or was frozen or thawed. */
  leaseChanged(task: TaskRef): void {
    const entry = this.entries.get(taskKey(task));
    if (entry === undefined || this.closing.signal.aborted) return;
    // Said at once, also of a task that is being stopped or that the coordinator does not know.
    if (entry.phase?.kind === 'started') this.report(entry);
    this.converge(entry);
  }

  /** Everything the coordinator wants at the time of connecting; tasks it does not name are left as they are. */
  setDesired(orders: ReadonlyMap<TaskKey, { readonly task: TaskRef; readonly order: Order }>): void {
    // First: by them the coordinator chooses what follows an end that it hears of next.
    this.parts.checkpoints.sayAgain();
    for (const entry of this.entries.values()) {
      if (orders.has(taskKey(entry.task))) continue;
      // Not prepared yet, so not in our Hello: nobody will ever say that it is to be forgotten.
      if (entry.phase === null) this.follow(entry, { kind: 'forget' });
      else entry.order = null;
    }
    for (const { task, order } of orders.values()) this.setOrder(task, order);
  }

  setOrder(task: TaskRef, order: Order): void {
    const key = taskKey(task);
    if (order.kind === 'forget') this.noteForgotten(key);
    else if (this.forgotten.has(key)) return;
    const needsEntry = order.kind === 'forget' || (order.kind === 'check' && order.assignment === null);
    if (needsEntry && !this.entries.has(key)) return;
    this.follow(this.entry(task), order);
  }

  private follow(entry: TaskEntry, order: Order): void {
    if (isOutdated(entry, order)) return;
    if ('assignment' in order && order.assignment !== null) entry.assignment ??= order.assignment;
    // Asked again: what was said has not arrived.
    if (order.kind === 'prepare' && entry.preparedMessage === 'sent') entry.preparedMessage = 'lost';
    if (order.kind === 'check') entry.findingsSent = false;
    const isNews = entry.order?.kind !== order.kind;
    entry.order = order;
    if (order.kind === 'stop') this.actions.shortenGrace(entry, order.graceMs);
    const { work } = entry;
    if (work !== null && isNotWanted(work.what, order)) work.abort.abort(new Error('no longer needed'));
    if (isNews) entry.wake?.();
    if (isNews && order.kind === 'forget' && entry.busy) void this.actions.endGrace(entry);
    this.converge(entry);
  }

  /** The coordinator has all of a task's output. */
  setUploaded(task: TaskRef): void {
    const entry = this.entries.get(taskKey(task));
    if (entry === undefined || entry.uploaded) return;
    entry.uploaded = true;
    this.converge(entry);
  }

  /** Everything that is known of what its tasks have saved, for Hello. */
  checkpoints(): readonly CheckpointSeen[] {
    return this.parts.checkpoints.words();
  }

  /** Everything this agent knows, for Hello and heartbeats. */
  reports(): readonly TaskReport[] {
    const boottimeNowMs = this.parts.boottimeMs();
    return [...this.entries.values()]
      .map((entry) => reportOf(entry, boottimeNowMs, this.seenOf(entry)))
      .filter((report) => report !== null);
  }

  /** The coordinator's proofs of the tasks that reports tell of. */
  proofs(): readonly { readonly task: TaskRef; readonly proof: string }[] {
    return [...this.entries.values()].flatMap(({ task, phase, assignment }) =>
      phase === null || assignment === null || assignment.proof === ''
        ? []
        : { task, proof: assignment.proof },
    );
  }

  /** Tasks that run, with the GPUs they were given. */
  running(): readonly RunningTask[] {
    return [...this.entries.values()]
      .filter(({ phase }) => phase?.kind === 'started')
      .map(({ task, assignment }) => ({ task, assignment, gpuUuids: assignment?.gpuUuids ?? [] }));
  }

  /** null: there is no such task here, or it was found without a record. */
  assignmentOf(task: TaskRef): Assignment | null {
    return this.entries.get(taskKey(task))?.assignment ?? null;
  }

  /** Something that reports tell of a task has changed. */
  sayOf(task: TaskRef): void {
    const entry = this.entries.get(taskKey(task));
    if (entry?.phase?.kind === 'started') this.report(entry);
  }

  /** Its program has failed and will not say so soon: signal, the job's grace, kill. It ends as by itself. */
  async endFailed(task: TaskRef): Promise<void> {
    const entry = this.entries.get(taskKey(task));
    if (entry !== undefined) await this.actions.endFailed(entry);
  }

  private gpuHolder({ task, assignment }: TaskEntry): TaskKey | null {
    const wanted = new Set(assignment?.gpuUuids);
    const holder = [...this.entries.values()].find((other) => {
      const mayRun = other.uncertain || other.phase?.kind === 'started';
      return mayRun && taskKey(other.task) !== taskKey(task) && hasAnyOf(other, wanted);
    });
    return holder === undefined ? null : taskKey(holder.task);
  }

  /** Stops looking. Tasks run on. */
  async close(): Promise<void> {
    this.closing.abort(new Error('the agent is closing'));
    this.parts.leases.close();
    for (const entry of this.entries.values()) {
      entry.wake?.();
      if (entry.graceTimer !== null) clearTimeout(entry.graceTimer);
      await entry.port?.release();
    }
    for (const driver of Object.values(this.parts.drivers)) await driver.close();
  }

  /** Wanted again while it was being removed: what is left of it can be of no use to the new order. */
  private startOver(removed: TaskEntry): void {
    const { task, order, assignment } = removed;
    removed.order = null;
    if (order === null || order.kind === 'forget') return;
    const fresh = this.entry(task);
    fresh.assignment = assignment;
    this.setOrder(task, order);
  }

  private noteForgotten(key: TaskKey): void {
    this.forgotten.add(key);
    const [oldest] = this.forgotten;
    if (oldest !== undefined && this.forgotten.size > forgottenMax) this.forgotten.delete(oldest);
  }

  private entry(task: TaskRef): TaskEntry {
    const key = taskKey(task);
    let entry = this.entries.get(key);
    if (entry === undefined) {
      entry = newEntry(task);
      this.entries.set(key, entry);
    }
    return entry;
  }

  /** Looks at a task and acts until there is nothing to do. */
  private converge(entry: TaskEntry): void {
    if (entry.busy) {
      entry.again = true;
      return;
    }
    if (this.closing.signal.aborted) return;
    const local = actualStateOf(entry, this.parts.leases.isLive(entry.task));
    const action = reconcile(desiredStateOf(entry.order), local);
    if (action === 'nothing') return;
    entry.busy = true;
    this.act(entry, action)
      .then(
        (changed) => {
          entry.failures = 0;
          return changed;
        },
        (error: unknown) => this.afterFailure(entry, action, error),
      )
      .then((changed) => {
        entry.busy = false;
        if (changed || entry.again) {
          entry.again = false;
          this.converge(entry);
        }
      })
      .catch((error: unknown) =>
        this.parts.log.error({ error: messageOf(error) }, 'a task could not be looked at'),
      );
  }

  /** Something of the node failed, not of the task: try again, ever less often, until something else is wanted. */
  private async afterFailure(entry: TaskEntry, action: Action, error: unknown): Promise<boolean> {
    if (this.closing.signal.aborted) return false;
    entry.failures += 1;
    const waitMs = backoffMs({ initialMs: 100, maxMs: 10_000 }, entry.failures);
    const task = taskKey(entry.task);
    this.parts.log.warn({ task, action, error: messageOf(error), retryInMs: waitMs }, 'an action failed');
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => entry.wake?.(), waitMs);
      entry.wake = () => {
        clearTimeout(timer);
        entry.wake = null;
        resolve();
      };
    });
    return true;
  }

  /** @returns whether to look again */
  private async act(entry: TaskEntry, action: Action): Promise<boolean> {
    switch (action) {
      case 'prepare':
        await this.preparation.prepare(entry);
        return true;
      case 'announce':
        if (entry.preparedMessage === 'sent') return false;
        entry.preparedMessage = 'sent';
        this.preparation.announce(entry);
        return true;
      case 'check':
        await this.preparation.check(entry);
        return true;
      case 'send_findings':
        if (entry.findingsSent || entry.findings === null) return false;
        entry.findingsSent = true;
        this.parts.send({ kind: 'checked', task: entry.task, findings: entry.findings });
        return false;
      case 'start':
        await this.actions.start(entry);
        return true;
      case 'stop': {
        const order = entry.order?.kind === 'stop' ? entry.order : null;
        await this.actions.stop(entry, { signal: order?.signal ?? 'SIGTERM', graceMs: order?.graceMs ?? 0 });
        return true;
      }
      case 'kill':
        await this.actions.stop(entry, { signal: 'SIGKILL', graceMs: 0 });
        return true;
      case 'discard':
        await this.actions.discard(entry);
        return true;
      case 'examine':
        await this.actions.examine(entry);
        return true;
      case 'report':
        this.report(entry);
        return false;
      case 'remove':
        await this.actions.remove(entry);
        this.entries.delete(taskKey(entry.task));
        this.startOver(entry);
        return false;
      case 'nothing':
        return false;
      default: {
        const never: never = action;
        throw new Error(`unknown action ${String(never)}`);
      }
    }
  }

  private seenOf({ task }: TaskEntry): SeenOfTask {
    const { leases, checkpoints, training } = this.parts;
    return {
      frozen: leases.isFrozen(task),
      trainingComplete: checkpoints.isTrainingComplete(task),
      training: training.progress(task),
      hang: training.hang(task),
    };
  }

  /** Unless it was said already, on this connection. */
  private report(entry: TaskEntry): void {
    const report = reportOf(entry, this.parts.boottimeMs(), this.seenOf(entry));
    const { state, exit, frozen, trainingComplete, hang } = report ?? {};
    const text = JSON.stringify([state, exit, frozen, trainingComplete, hang != null]);
    if (report === null || entry.reported === text) return;
    entry.reported = text;
    this.parts.send({ kind: 'report', report });
  }
}

function hasAnyOf({ assignment }: TaskEntry, gpuUuids: ReadonlySet<string>): boolean {
  return assignment?.gpuUuids.some((uuid) => gpuUuids.has(uuid)) === true;
}
