/**
 * Carries out what `reconcile` says, one action per task at a time, and looks again after each. What should be comes
 * from the session, what is from the records and drivers; nothing here survives the agent, and nothing has to.
 */
import { messageOf } from '@muster/common/errors';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { backoffMs } from '@muster/common/retry';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import type { Cause, TaskEnd, TaskReport } from '@muster/common/views';
import type { Driver, TaskExit, TaskLocation } from '../drivers/driver.ts';
import { DriverError } from '../drivers/errors.ts';
import type { CheckpointDirs } from '../hooks/checkpointDir.ts';
import type { HeldPort } from '../hooks/masterPort.ts';
import { type Action, reconcile } from '../reconcile.ts';
import { desiredOf, localOf, newEntry, nothingRan, type Order, reportOf, type TaskEntry } from './entry.ts';
import { buildLaunch, type NodeFacts } from './launch.ts';
import type { Phase, TaskRecords } from './records.ts';

export interface ManagerParts {
  readonly records: Pick<TaskRecords, keyof TaskRecords>;
  readonly drivers: { readonly process: Driver; readonly docker: Driver };
  readonly node: NodeFacts;
  readonly checkpoints: CheckpointDirs;
  readonly nodeName: string;
  readonly bootId: string;
  /** The address that rank 0 on this node is reached at. */
  readonly address: string;
  readonly wallMs: () => number;
  /** CLOCK_BOOTTIME. */
  readonly boottimeMs: () => number;
  /** A free port of this node, kept until it is released. */
  readonly holdPort: () => Promise<HeldPort>;
  readonly log: Logger;
  /** Say something to the coordinator; dropped while there is no connection, because the next Hello says it all. */
  readonly send: (
    message:
      | { readonly kind: 'claim'; readonly task: TaskRef; readonly addr: string; readonly port: number }
      | { readonly kind: 'report'; readonly report: TaskReport },
  ) => void;
  /** A task's output may be followed from here on, and ends at `size` once that is known. */
  readonly onOutput: (task: TaskRef, path: string, size: number | null) => void;
  readonly onRemoved: (task: TaskRef) => void;
}

export class TaskManager {
  private readonly parts: ManagerParts;
  private readonly entries = new Map<TaskKey, TaskEntry>();
  private readonly closing = new AbortController();

  constructor(parts: ManagerParts) {
    this.parts = parts;
  }

  /** Finds the tasks of an earlier run of this agent. To be awaited before the first Hello. */
  async recover(): Promise<void> {
    for (const record of this.parts.records.load()) {
      const entry = this.entry(record.assignment.task);
      entry.assignment = record.assignment;
      entry.phase = record.phase;
      if (record.phase.kind !== 'ended') await this.recoverOrWatch(entry, record.bootId);
      const { path, size } = this.output(entry);
      if (entry.phase?.kind !== 'prepared')
        this.parts.onOutput(entry.task, path, entry.phase?.kind === 'ended' ? size : null);
    }
    for (const driver of Object.values(this.parts.drivers)) await this.removeStrangers(driver);
  }

  /** A driver that cannot answer now, because its engine is away, must not keep the agent from its other tasks. */
  private async recoverOrWatch(entry: TaskEntry, recordedBootId: string): Promise<void> {
    try {
      await this.recoverRunning(entry, recordedBootId);
    } catch (error) {
      this.parts.log.warn(
        { task: taskKey(entry.task), error: messageOf(error) },
        'a task cannot be seen yet',
      );
      if (entry.phase?.kind === 'started') this.watch(entry);
    }
  }

  /** The drivers know: running, ended while we were away, or never started. */
  private async recoverRunning(entry: TaskEntry, recordedBootId: string): Promise<void> {
    const observed = await this.driverOf(entry).recover(this.location(entry));
    if (observed.kind === 'running') {
      const sameBoot = recordedBootId === this.parts.bootId;
      if (entry.phase?.kind !== 'started' || !sameBoot) {
        const startedAtMs = observed.startedAtMs ?? this.parts.wallMs();
        this.setPhase(entry, { kind: 'started', startedAtMs, startedBoottimeMs: this.parts.boottimeMs() });
      }
      this.watch(entry);
    } else if (observed.kind === 'exited') {
      this.setEnded(entry, this.endOf(entry, observed.exit));
    } else if (entry.phase?.kind === 'started') {
      this.setEnded(entry, { ...nothingRan, statusLost: true, logBytes: this.output(entry).size });
    }
  }

  /** Started by us, and the record is gone: it was being removed when we died, or the data directory was wiped. */
  private async removeStrangers(driver: Driver): Promise<void> {
    try {
      for (const key of await driver.list()) {
        if (this.entries.has(key as TaskKey)) continue;
        this.parts.log.warn({ task: key, driver: driver.name }, 'ending a task that has no record here');
        const location = { key, directory: this.parts.records.directoryOfKey(key) };
        await driver.stop(location, { signal: 'SIGKILL', graceMs: 0 });
        await driver.remove(location);
      }
    } catch (error) {
      this.parts.log.warn(
        { driver: driver.name, error: messageOf(error) },
        'could not look for tasks without record',
      );
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
      if (!orders.has(taskKey(entry.task))) entry.order = null;
    }
    for (const { task, order } of orders.values()) this.setOrder(task, order);
  }

  setOrder(task: TaskRef, order: Order): void {
    if (order.kind === 'forget' && !this.entries.has(taskKey(task))) return;
    const entry = this.entry(task);
    if ('assignment' in order && order.assignment !== null) entry.assignment ??= order.assignment;
    entry.order = order;
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
    return [...this.entries.values()]
      .map((entry) => reportOf(entry, this.parts.boottimeMs()))
      .filter((report) => report !== null);
  }

  /** Stops looking. Tasks run on. */
  async close(): Promise<void> {
    this.closing.abort(new Error('the agent is closing'));
    for (const entry of this.entries.values()) await entry.port?.release();
    for (const driver of Object.values(this.parts.drivers)) await driver.close();
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

  /** Something of the node failed, not of the task: try again, ever less often, for as long as it is wanted. */
  private async afterFailure(entry: TaskEntry, action: Action, error: unknown): Promise<boolean> {
    if (this.closing.signal.aborted) return false;
    entry.failures += 1;
    const waitMs = backoffMs({ initialMs: 100, maxMs: 10_000 }, entry.failures);
    const task = taskKey(entry.task);
    this.parts.log.warn({ task, action, error: messageOf(error), retryInMs: waitMs }, 'an action failed');
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    return true;
  }

  /** @returns whether to look again */
  private async act(entry: TaskEntry, action: Action): Promise<boolean> {
    switch (action) {
      case 'prepare':
        await this.prepare(entry);
        return true;
      case 'claim': {
        if (entry.claimed) return false;
        entry.claimed = true;
        const port = entry.port?.port ?? 0;
        this.parts.send({ kind: 'claim', task: entry.task, addr: this.parts.address, port });
        return false;
      }
      case 'start':
        await this.start(entry);
        return true;
      case 'stop': {
        const order = entry.order?.kind === 'stop' ? entry.order : null;
        const options = { signal: order?.signal ?? 'SIGTERM', graceMs: order?.graceMs ?? 0 };
        this.setEnded(
          entry,
          this.endOf(entry, await this.driverOf(entry).stop(this.location(entry), options)),
        );
        return true;
      }
      case 'kill': {
        const options = { signal: 'SIGKILL', graceMs: 0 };
        this.setEnded(
          entry,
          this.endOf(entry, await this.driverOf(entry).stop(this.location(entry), options)),
        );
        return true;
      }
      case 'discard':
        await this.freePort(entry);
        this.setEnded(entry, nothingRan);
        return true;
      case 'examine':
        await this.examine(entry);
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
        await this.remove(entry);
        return false;
      case 'nothing':
        return false;
      default: {
        const never: never = action;
        throw new Error(`unknown action ${String(never)}`);
      }
    }
  }

  private async prepare(entry: TaskEntry): Promise<void> {
    const { assignment } = entry;
    if (assignment === null)
      throw new Error('the coordinator asked to prepare a task without saying which job');
    if (entry.task.nodeRank === 0) entry.port ??= await this.parts.holdPort();
    if (entry.phase === null) {
      const phase = { kind: 'prepared' } as const;
      await this.parts.records.create({ version: 1, assignment, bootId: this.parts.bootId, phase });
      entry.phase = phase;
    }
  }

  private async start(entry: TaskEntry): Promise<void> {
    const { order, assignment } = entry;
    if (order?.kind !== 'run' || assignment === null) return;
    const { jobId } = entry.task;
    const spec = decodeJobSpec(assignment.specJson);
    await this.parts.checkpoints.prepare(jobId, spec);
    const checkpointDir = this.parts.checkpoints.pathFor(jobId, spec);
    // Held until now; the task's own listener takes the port over.
    await this.freePort(entry);
    try {
      await this.driverOf(entry).start(
        buildLaunch(this.parts.node, this.location(entry), assignment, checkpointDir, order),
      );
    } catch (error) {
      if (!(error instanceof DriverError)) throw error;
      const cause = {
        kind: error.causeKind as Cause['kind'],
        message: error.message,
        nodeRank: entry.task.nodeRank,
      };
      const startError = { ...cause, node: this.parts.nodeName };
      this.setEnded(entry, { ...nothingRan, startError, logBytes: this.output(entry).size });
      return;
    }
    this.setPhase(entry, {
      kind: 'started',
      startedAtMs: this.parts.wallMs(),
      startedBoottimeMs: this.parts.boottimeMs(),
    });
    this.parts.onOutput(entry.task, this.output(entry).path, null);
    this.watch(entry);
  }

  /** The coordinator released this task and there is no record of it here: the drivers say what is true. */
  private async examine(entry: TaskEntry): Promise<void> {
    if (entry.assignment === null) {
      this.setEnded(entry, nothingRan);
      return;
    }
    await this.parts.records.create({
      version: 1,
      assignment: entry.assignment,
      bootId: this.parts.bootId,
      phase: { kind: 'prepared' },
    });
    const observed = await this.driverOf(entry).recover(this.location(entry));
    if (observed.kind === 'absent') this.setEnded(entry, { ...nothingRan, statusLost: true });
    else await this.recoverRunning(entry, this.parts.bootId);
  }

  private async remove(entry: TaskEntry): Promise<void> {
    await this.freePort(entry);
    if (entry.assignment !== null) {
      await this.driverOf(entry).remove(this.location(entry));
      await this.parts.checkpoints.cleanUp(entry.task.jobId, decodeJobSpec(entry.assignment.specJson));
    }
    await this.parts.records.remove(entry.task);
    this.parts.onRemoved(entry.task);
    this.entries.delete(taskKey(entry.task));
  }

  /** Waits for the end of a task beside whatever else happens to it. */
  private watch(entry: TaskEntry): void {
    this.driverOf(entry)
      .wait(this.location(entry), this.closing.signal)
      .then(
        (exit) => {
          if (entry.phase?.kind === 'started') this.setEnded(entry, this.endOf(entry, exit));
          this.converge(entry);
        },
        (error: unknown) => {
          if (this.closing.signal.aborted || entry.phase?.kind !== 'started') return;
          this.parts.log.warn(
            { task: taskKey(entry.task), error: messageOf(error) },
            'lost sight of a task; looking again',
          );
          setTimeout(() => this.watch(entry), 1_000).unref();
        },
      );
  }

  /** A full disk must not hide what happens to a task: after a restart the drivers tell what could not be noted. */
  private setPhase(entry: TaskEntry, phase: Phase): void {
    entry.phase = phase;
    if (entry.assignment === null) return;
    try {
      this.parts.records.update(entry.task, this.parts.bootId, phase);
    } catch (error) {
      const fields = { task: taskKey(entry.task), phase: phase.kind, error: messageOf(error) };
      this.parts.log.error(fields, 'the state of a task could not be written down');
    }
  }

  private setEnded(entry: TaskEntry, exit: TaskEnd): void {
    if (entry.phase?.kind === 'ended') return;
    this.setPhase(entry, { kind: 'ended', exit });
    // Nothing was written, so there is nothing to upload.
    if (exit.logBytes === 0) entry.uploaded = true;
    else this.parts.onOutput(entry.task, this.output(entry).path, exit.logBytes);
  }

  private async freePort(entry: TaskEntry): Promise<void> {
    await entry.port?.release();
    entry.port = null;
  }

  private driverOf(entry: TaskEntry): Driver {
    const image = entry.assignment === null ? null : decodeJobSpec(entry.assignment.specJson).image;
    return image === null ? this.parts.drivers.process : this.parts.drivers.docker;
  }

  private location(entry: TaskEntry): TaskLocation {
    return { key: taskKey(entry.task), directory: this.parts.records.directory(entry.task) };
  }

  private output(entry: TaskEntry): { readonly path: string; readonly size: number } {
    const { records } = this.parts;
    return { path: records.outputPath(entry.task), size: records.outputSize(entry.task) };
  }

  private endOf(entry: TaskEntry, exit: TaskExit): TaskEnd {
    return { ...exit, startError: null, logBytes: this.output(entry).size };
  }
}
