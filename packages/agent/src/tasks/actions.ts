/**
 * What can be done about one task of this node, through its driver and its record. Each may come twice: what is true
 * afterwards is in the entry, on disk, and in the driver.
 */
import { messageOf } from '@muster/common/errors';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import type { GpuUsage } from '@muster/common/telemetry';
import type { Cause, TaskEnd, TaskReport } from '@muster/common/views';
import type { Driver, StopOptions, TaskExit, TaskLocation, TaskObservation } from '../drivers/driver.ts';
import { DriverError } from '../drivers/errors.ts';
import type { CheckpointDirs } from '../hooks/checkpointDir.ts';
import type { HeldPort } from '../hooks/masterPort.ts';
import { nothingRan, type TaskEntry } from './entry.ts';
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
  /** What is known of the task's GPUs by now. */
  readonly gpuUsage: (task: TaskRef) => GpuUsage | null;
  /** Nothing more is to be read of a task's output. */
  readonly onRemoved: (task: TaskRef) => void;
}

const lookAgainMs = 1_000;

export class TaskActions {
  private readonly parts: ManagerParts;
  /** Aborts when the agent closes; tasks run on. */
  private readonly closing: AbortSignal;
  /** A task has ended by itself. */
  private readonly onEnded: (entry: TaskEntry) => void;

  constructor(parts: ManagerParts, closing: AbortSignal, onEnded: (entry: TaskEntry) => void) {
    this.parts = parts;
    this.closing = closing;
    this.onEnded = onEnded;
  }

  /** Writes the intent, and holds the rendezvous port on rank 0. */
  async prepare(entry: TaskEntry): Promise<void> {
    const { assignment } = entry;
    if (assignment === null)
      throw new Error('the coordinator asked to prepare a task without saying which job');
    if (entry.task.nodeRank === 0) entry.port ??= await this.parts.holdPort();
    if (this.closing.aborted) await this.freePort(entry);
    this.closing.throwIfAborted();
    if (entry.phase === null) {
      const phase = { kind: 'prepared' } as const;
      await this.parts.records.create({ version: 1, assignment, bootId: this.parts.bootId, phase });
      entry.phase = phase;
    }
  }

  /** Given up when the task is not wanted any more, it is as if nobody had asked for it. */
  async start(entry: TaskEntry): Promise<void> {
    const starting = new AbortController();
    entry.starting = starting;
    try {
      await this.startUnlessAborted(entry, starting.signal);
    } catch (error) {
      if (!starting.signal.aborted || error !== starting.signal.reason) throw error;
      entry.uncertain = false;
    } finally {
      entry.starting = null;
    }
  }

  private async startUnlessAborted(entry: TaskEntry, abort: AbortSignal): Promise<void> {
    const { order, assignment } = entry;
    if (order?.kind !== 'run' || assignment === null) return;
    const { jobId } = entry.task;
    const spec = decodeJobSpec(assignment.specJson);
    await this.parts.checkpoints.prepare(jobId, spec);
    const checkpointDir = this.parts.checkpoints.pathFor(jobId, spec);
    // Held until now; the task's own listener takes the port over.
    await this.freePort(entry);
    abort.throwIfAborted();
    const launch = buildLaunch(this.parts.node, this.location(entry), assignment, checkpointDir, order);
    entry.uncertain = true;
    try {
      await this.driverOf(entry).start(launch, abort);
      entry.uncertain = false;
    } catch (error) {
      // A driver that is being closed may give up a start; that is no end of the task.
      if (!(error instanceof DriverError) || this.closing.aborted) throw error;
      entry.uncertain = false;
      const cause = {
        kind: error.causeKind as Cause['kind'],
        message: error.message,
        nodeRank: entry.task.nodeRank,
      };
      const startError = { ...cause, node: this.parts.nodeName };
      this.setEnded(entry, { ...nothingRan, startError, logBytes: this.output(entry).size });
      return;
    }
    this.setPhase(entry, { kind: 'started', ...this.now() });
    this.follow(entry);
  }

  /** Signal, grace, kill; done when nothing of the task is left. */
  async stop(entry: TaskEntry, options: StopOptions): Promise<void> {
    const exit = await this.driverOf(entry).stop(this.location(entry), options);
    this.setEnded(entry, this.endOf(entry, exit));
  }

  /** Ends a task that was never started. */
  async discard(entry: TaskEntry): Promise<void> {
    await this.freePort(entry);
    this.setEnded(entry, nothingRan);
  }

  /** There is no record of a task that was released, or no answer to its start: the drivers say what is true. */
  async examine(entry: TaskEntry): Promise<void> {
    if (entry.phase !== null) {
      await this.recover(entry, this.parts.bootId);
      return;
    }
    if (entry.assignment === null) {
      this.setEnded(entry, { ...nothingRan, statusLost: true });
      return;
    }
    // On disk it counts as started before anybody has answered: the next agent must not start it, should we die here.
    const phase = { kind: 'started', ...this.now() } as const;
    const { bootId } = this.parts;
    await this.parts.records.create({ version: 1, assignment: entry.assignment, bootId, phase });
    const observed = await this.driverOf(entry).recover(this.location(entry));
    entry.phase = phase;
    this.accept(entry, observed, bootId);
  }

  /** The drivers know: running, ended while we were away, or never started. */
  async recover(entry: TaskEntry, recordedBootId: string): Promise<void> {
    const observed = await this.driverOf(entry).recover(this.location(entry));
    entry.uncertain = false;
    this.accept(entry, observed, recordedBootId);
  }

  private accept(entry: TaskEntry, observed: TaskObservation, recordedBootId: string): void {
    if (observed.kind === 'running') {
      const sameBoot = recordedBootId === this.parts.bootId;
      if (entry.phase?.kind !== 'started' || !sameBoot) {
        const now = this.now();
        const startedAtMs = observed.startedAtMs ?? now.startedAtMs;
        this.setPhase(entry, { kind: 'started', ...now, startedAtMs });
      }
      this.follow(entry);
    } else if (observed.kind === 'exited') {
      this.setEnded(entry, this.endOf(entry, observed.exit));
    } else if (entry.phase?.kind === 'started') {
      const gpuUsage = this.parts.gpuUsage(entry.task);
      const logBytes = this.output(entry).size;
      this.setEnded(entry, { ...nothingRan, statusLost: true, logBytes, gpuUsage });
    }
  }

  async remove(entry: TaskEntry): Promise<void> {
    await this.freePort(entry);
    await this.driverOf(entry).remove(this.location(entry));
    if (entry.assignment !== null) {
      await this.parts.checkpoints.cleanUp(entry.task.jobId, decodeJobSpec(entry.assignment.specJson));
    }
    await this.parts.records.remove(entry.task);
    this.parts.onRemoved(entry.task);
  }

  /** Sends a task's output and waits for its end, beside whatever else happens to it. */
  follow(entry: TaskEntry): void {
    this.parts.onOutput(entry.task, this.output(entry).path, null);
    void this.watch(entry);
  }

  private async watch(entry: TaskEntry): Promise<void> {
    try {
      const exit = await this.driverOf(entry).wait(this.location(entry), this.closing);
      if (entry.phase?.kind === 'started') this.setEnded(entry, this.endOf(entry, exit));
      this.onEnded(entry);
    } catch (error) {
      if (this.closing.aborted || entry.phase?.kind !== 'started') return;
      const fields = { task: taskKey(entry.task), error: messageOf(error) };
      this.parts.log.warn(fields, 'lost sight of a task; looking again');
      setTimeout(() => {
        if (entry.phase?.kind === 'started') void this.watch(entry);
      }, lookAgainMs).unref();
    }
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
    this.handOverOutput(entry);
  }

  /** The output of a task that has ended: what is there is all there will be. */
  handOverOutput(entry: TaskEntry): void {
    const { path, size } = this.output(entry);
    if (size > 0) {
      this.parts.onOutput(entry.task, path, size);
    } else {
      entry.uploaded = true;
      this.parts.onRemoved(entry.task);
    }
  }

  private async freePort(entry: TaskEntry): Promise<void> {
    await entry.port?.release();
    entry.port = null;
  }

  private driverOf(entry: TaskEntry): Driver {
    if (entry.assignment === null) return this.parts.drivers[entry.foundBy ?? 'process'];
    const { image } = decodeJobSpec(entry.assignment.specJson);
    return image === null ? this.parts.drivers.process : this.parts.drivers.docker;
  }

  private location(entry: TaskEntry): TaskLocation {
    return { key: taskKey(entry.task), directory: this.parts.records.directory(entry.task) };
  }

  /** Of a start, on both clocks. */
  private now(): { readonly startedAtMs: number; readonly startedBoottimeMs: number } {
    return { startedAtMs: this.parts.wallMs(), startedBoottimeMs: this.parts.boottimeMs() };
  }

  private output(entry: TaskEntry): { readonly path: string; readonly size: number } {
    const { records } = this.parts;
    return { path: records.outputPath(entry.task), size: records.outputSize(entry.task) };
  }

  private endOf(entry: TaskEntry, exit: TaskExit): TaskEnd {
    const gpuUsage = this.parts.gpuUsage(entry.task);
    return { ...exit, startError: null, logBytes: this.output(entry).size, gpuUsage };
  }
}
