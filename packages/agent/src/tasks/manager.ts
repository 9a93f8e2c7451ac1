/**
 * The tasks of this node: asks `reconcile` what to do about each, has it done, one action per task at a time, and looks
 * again. What should be comes from the session, what is from the records and drivers; nothing here survives the agent,
 * and nothing has to.
 */
import { messageOf } from '@muster/common/errors';
import { parseTaskKey, type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import { backoffMs } from '@muster/common/retry';
import type { TaskReport } from '@muster/common/views';
import type { Driver } from '../drivers/driver.ts';
import { type Action, reconcile } from '../reconcile.ts';
import { type ManagerParts, TaskActions } from './actions.ts';
import { desiredOf, localOf, newEntry, type Order, reportOf, type TaskEntry } from './entry.ts';

/** Far more than can be on their way on one connection. */
const forgottenMax = 10_000;

export class TaskManager {
  private readonly parts: ManagerParts;
  private readonly entries = new Map<TaskKey, TaskEntry>();
  /** A late or repeated order about one of these would start it a second time. The newest are enough. */
  private readonly forgotten = new Set<TaskKey>();
  private readonly closing = new AbortController();
  private readonly actions: TaskActions;

  constructor(parts: ManagerParts) {
    this.parts = parts;
    this.actions = new TaskActions(parts, this.closing.signal, (entry) => this.converge(entry));
  }

  /** Finds the tasks of an earlier run of this agent. To be awaited before the first Hello. */
  async recover(): Promise<void> {
    for (const record of this.parts.records.load()) {
      const entry = this.entry(record.assignment.task);
      entry.assignment = record.assignment;
      entry.phase = record.phase;
      if (record.phase.kind === 'ended') this.actions.handOverOutput(entry);
      else await this.recoverOrWatch(entry, record.bootId);
    }
    for (const driver of Object.values(this.parts.drivers)) await this.adoptStrangers(driver);
  }

  /** A driver that cannot answer now, because its engine is away, must not keep the agent from its other tasks. */
  private async recoverOrWatch(entry: TaskEntry, recordedBootId: string): Promise<void> {
    try {
      await this.actions.recover(entry, recordedBootId);
    } catch (error) {
      this.parts.log.warn(
        { task: taskKey(entry.task), error: messageOf(error) },
        'a task cannot be seen yet',
      );
      entry.uncertain = true;
      if (entry.phase?.kind === 'started') this.actions.follow(entry);
    }
  }

  /**
   * Started by us, and the record is gone: it was being removed when we died, or the data directory was wiped. What has
   * ended is cleaned up; what runs is somebody's work, so it is reported, and the coordinator says what becomes of it.
   */
  private async adoptStrangers(driver: Driver): Promise<void> {
    try {
      for (const key of await driver.list()) {
        const task = parseTaskKey(key);
        if (task === null || this.entries.has(taskKey(task))) continue;
        const location = { key, directory: this.parts.records.directory(task) };
        const observed = await driver.recover(location);
        this.parts.log.warn(
          { task: key, driver: driver.name, observed: observed.kind },
          'a task has no record here',
        );
        if (observed.kind !== 'running') {
          await driver.remove(location);
          continue;
        }
        const entry = this.entry(task);
        entry.foundBy = driver.name;
        await this.actions.recover(entry, this.parts.bootId);
      }
    } catch (error) {
      const fields = { driver: driver.name, error: messageOf(error) };
      this.parts.log.warn(fields, 'could not look for tasks without record');
    }
  }

  /** A new connection: what was said on the old one may not have arrived. */
  connected(): void {
    for (const entry of this.entries.values()) {
      entry.claimed = false;
      entry.reported = null;
    }
  }

  /** Everything the coordinator wants at the time of connecting; tasks it does not name are left as they are. */
  setDesired(orders: ReadonlyMap<TaskKey, { readonly task: TaskRef; readonly order: Order }>): void {
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
    if (order.kind === 'forget' && !this.entries.has(key)) return;
    this.follow(this.entry(task), order);
  }

  private follow(entry: TaskEntry, order: Order): void {
    if ('assignment' in order && order.assignment !== null) entry.assignment ??= order.assignment;
    // Asked again: the claim has not arrived.
    if (order.kind === 'prepare') entry.claimed = false;
    const isNews = entry.order?.kind !== order.kind;
    entry.order = order;
    if (order.kind === 'stop' || order.kind === 'forget')
      entry.starting?.abort(new Error('not wanted any more'));
    if (isNews) entry.wake?.();
    this.converge(entry);
  }

  /** The coordinator has all of a task's output. */
  setUploaded(task: TaskRef): void {
    const entry = this.entries.get(taskKey(task));
    if (entry === undefined || entry.uploaded) return;
    entry.uploaded = true;
    this.converge(entry);
  }

  /** Everything this agent knows, for Hello and heartbeats. */
  reports(): readonly TaskReport[] {
    const boottimeNowMs = this.parts.boottimeMs();
    return [...this.entries.values()]
      .map((entry) => reportOf(entry, boottimeNowMs))
      .filter((report) => report !== null);
  }

  /** Tasks that run, with the GPUs they were given. */
  running(): readonly { readonly task: TaskRef; readonly gpuUuids: readonly string[] }[] {
    return [...this.entries.values()]
      .filter(({ phase }) => phase?.kind === 'started')
      .map(({ task, assignment }) => ({ task, gpuUuids: assignment?.gpuUuids ?? [] }));
  }

  /** Stops looking. Tasks run on. */
  async close(): Promise<void> {
    this.closing.abort(new Error('the agent is closing'));
    for (const entry of this.entries.values()) {
      entry.wake?.();
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
    const action = reconcile(desiredOf(entry.order), localOf(entry));
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
        await this.actions.prepare(entry);
        return true;
      case 'claim': {
        if (entry.claimed) return false;
        entry.claimed = true;
        const port = entry.port?.port ?? 0;
        this.parts.send({ kind: 'claim', task: entry.task, addr: this.parts.address, port });
        return false;
      }
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
      case 'report': {
        const report = reportOf(entry, this.parts.boottimeMs());
        const text = JSON.stringify([report?.state, report?.exit]);
        if (report === null || entry.reported === text) return false;
        entry.reported = text;
        this.parts.send({ kind: 'report', report });
        return false;
      }
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
}
