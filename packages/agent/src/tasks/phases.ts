/** How a task's state changes: in the entry, on disk, and in what is said of its end. */

import { causeOf } from '@muster/common/cause';
import { messageOf } from '@muster/common/errors';
import type { TaskFailure } from '@muster/common/gangs';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { TrainingProgress } from '@muster/common/training';
import type { Cause, TaskEnd } from '@muster/common/views';
import type { Driver } from '../drivers/driver.ts';
import { type BareTask, withRemark } from '../failure/remarks.ts';
import type { FencedTask } from '../leases/taskFence.ts';
import type { TaskExit, TaskLocation } from '../taskFacts/execution.ts';
import { nothingRan, type TaskEntry } from './entry.ts';
import type { ManagerParts } from './parts.ts';
import type { Phase } from './records.ts';

/** What it wrote tells of no category then, and neither does its exit. */
const platformsDoing = { kind: null, blame: null, line: null } as const;

export class TaskPhases {
  private readonly parts: ManagerParts;

  constructor(parts: ManagerParts) {
    this.parts = parts;
  }

  /** A full disk must not hide what happens to a task: after a restart the drivers tell what could not be noted. */
  set(entry: TaskEntry, phase: Phase): void {
    entry.phase = phase;
    if (entry.assignment === null) return;
    try {
      this.parts.records.update(entry.task, this.parts.bootId, phase);
    } catch (error) {
      const fields = { task: taskKey(entry.task), phase: phase.kind, error: messageOf(error) };
      this.parts.log.error(fields, 'the state of a task could not be written down');
    }
  }

  end(entry: TaskEntry, exit: TaskEnd): void {
    if (entry.phase?.kind === 'ended') return;
    if (entry.graceTimer !== null) clearTimeout(entry.graceTimer);
    this.parts.leases.drop(entry.task);
    this.set(entry, { kind: 'ended', exit });
    this.handOverOutput(entry);
  }

  /** It could not be prepared or started: nothing of it ran. */
  endUnstarted(entry: TaskEntry, kind: Cause['kind'], message: string): void {
    const { nodeRank } = entry.task;
    const startError = causeOf(kind, message, { nodeRank, node: this.parts.nodeName });
    this.end(entry, { ...nothingRan, startError, logBytes: this.output(entry).size });
  }

  /** It ran, and nobody knows how it ended. */
  endUnseen(entry: TaskEntry, training: TrainingProgress | null): void {
    const gpuUsage = this.parts.gpuUsage(entry.task);
    const logBytes = this.output(entry).size;
    this.end(entry, { ...nothingRan, statusLost: true, logBytes, gpuUsage, training });
  }

  /** @param failure as `failureOf` tells it */
  endWith(
    entry: TaskEntry,
    exit: TaskExit,
    failure: TaskFailure | null,
    training: TrainingProgress | null,
  ): void {
    const gpuUsage = this.parts.gpuUsage(entry.task);
    const logBytes = this.output(entry).size;
    const { exitCode, signal, finishedAtMs, statusLost } = exit;
    const oomKilled = exit.oomKilled || (failure?.source === 'kernel' && failure.kind === 'host_oom');
    const how = { exitCode, signal, oomKilled, finishedAtMs, statusLost };
    this.end(entry, { ...how, startError: null, logBytes, gpuUsage, failure, training });
  }

  /** What went wrong first. To be asked for once, as soon as it has ended. */
  async failureOf(entry: TaskEntry, exit: TaskExit): Promise<TaskFailure> {
    const { phase } = entry;
    const location = this.location(entry);
    const { directory } = location;
    const outputPath = this.output(entry).path;
    const stopping = phase?.kind === 'started' && phase.stopping === true;
    const said = await this.parts.failureOf({ exit, directory, outputPath, stopping }, location);
    const bare = this.bareTask(entry);
    const failure = bare === null ? said : withRemark(said, bare);
    if (stopping) return failure;
    // What it wrote before tells of something else: a task that was killed from outside said nothing of that.
    const message = this.parts.leases.deathBy(entry.task, this.fenced(entry), exit, failure.atBoottimeMs);
    return message === null
      ? failure
      : { ...failure, source: 'lease', consequence: false, rank: null, message, ...platformsDoing };
  }

  /** null: it ran in a container, whose files are not ours to read, or nobody knows what it was. */
  private bareTask({ task, assignment }: TaskEntry): BareTask | null {
    if (assignment === null) return null;
    const { image, command, args, env, workdir } = assignment.spec;
    if (image !== null) return null;
    return {
      command: [...command, ...args],
      path: env['PATH'] ?? this.parts.node.baseEnvironment['PATH'],
      workdir: workdir ?? this.parts.records.directory(task),
    };
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

  output({ task }: { readonly task: TaskRef }): { readonly path: string; readonly size: number } {
    const { records } = this.parts;
    return { path: records.outputPath(task), size: records.outputSize(task) };
  }

  driverOf(entry: TaskEntry): Driver {
    if (entry.assignment === null) return this.parts.drivers[entry.foundBy ?? 'process'];
    const { image } = entry.assignment.spec;
    return image === null ? this.parts.drivers.process : this.parts.drivers.docker;
  }

  location({ task }: { readonly task: TaskRef }): TaskLocation {
    return { key: taskKey(task), directory: this.parts.records.directory(task) };
  }

  /** What its leases need to know of it. Somebody's work without a record is not killed for want of one. */
  fenced(entry: TaskEntry): FencedTask {
    const { assignment } = entry;
    const onExpiry = assignment === null ? 'freeze' : assignment.spec.onLeaseExpiry;
    return { driver: this.driverOf(entry), location: this.location(entry), onExpiry };
  }

  /** Of a start, on both clocks. */
  now(): { readonly startedAtMs: number; readonly startedBoottimeMs: number } {
    return { startedAtMs: this.parts.wallMs(), startedBoottimeMs: this.parts.boottimeMs() };
  }

  async freePort(entry: TaskEntry): Promise<void> {
    await entry.port?.release();
    entry.port = null;
  }
}
