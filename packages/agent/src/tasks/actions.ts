/**
 * What can be done about one task of this node from its release on, through its driver and its record. Each may come
 * twice: what is true afterwards is in the entry, on disk, and in the driver.
 */
import { messageOf } from '@muster/common/errors';
import { taskKey } from '@muster/common/ids';
import { isCauseKind } from '@muster/common/spec/causes';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import type { Driver, StopOptions, TaskExit, TaskLocation, TaskObservation } from '../drivers/driver.ts';
import { DriverError, LeaseExpired } from '../drivers/errors.ts';
import { isTorchrun } from '../failure/torchrun.ts';
import { nothingRan, type TaskEntry } from './entry.ts';
import { buildLaunch, writeLaunchFiles } from './launch.ts';
import type { ManagerParts } from './parts.ts';
import type { TaskPhases } from './phases.ts';
import { whileWanted } from './preparation.ts';

const lookAgainMs = 1_000;
/** Twice in a row alone, so that one that is about to start its workers is not taken for one that has lost them. */
const loneLookMs = 200;

export class TaskActions {
  private readonly parts: ManagerParts;
  private readonly phases: TaskPhases;
  /** Aborts when the agent closes; tasks run on. */
  private readonly closing: AbortSignal;
  /** A task has ended by itself. */
  private readonly onEnded: (entry: TaskEntry) => void;

  constructor(
    parts: ManagerParts,
    phases: TaskPhases,
    closing: AbortSignal,
    onEnded: (entry: TaskEntry) => void,
  ) {
    this.parts = parts;
    this.phases = phases;
    this.closing = closing;
    this.onEnded = onEnded;
  }

  /** Given up when the task is not wanted any more. */
  async start(entry: TaskEntry): Promise<void> {
    const givenUp = await whileWanted(entry, { kind: 'starting' }, (abort) =>
      this.startUnlessAborted(entry, abort),
    );
    if (givenUp) this.nothingStarted(entry);
  }

  /** It stays prepared until there is a fresh lease, or another word of what becomes of it. */
  private nothingStarted(entry: TaskEntry): void {
    entry.uncertain = false;
    this.parts.leases.startsNot(entry.task);
  }

  private async startUnlessAborted(entry: TaskEntry, abort: AbortSignal): Promise<void> {
    const { order, assignment, task } = entry;
    if (order?.kind !== 'run' || assignment === null) return;
    const spec = decodeJobSpec(assignment.specJson);
    // Again, for an earlier attempt that is cleaned up here takes an empty one away.
    await this.parts.checkpoints.prepare(task.jobId, spec);
    const checkpointDir = this.parts.checkpoints.pathFor(task.jobId, spec);
    // Held until now; the task's own listener takes the port over.
    await this.phases.freePort(entry);
    abort.throwIfAborted();
    const location = this.phases.location(entry);
    const release = { ...order, lease: this.parts.leases.starts(task, this.phases.fenced(entry)) };
    try {
      await writeLaunchFiles(location, assignment, release);
      const launch = buildLaunch(this.parts.node, location, assignment, checkpointDir, release);
      entry.uncertain = true;
      await this.phases.driverOf(entry).start(launch, abort);
      entry.uncertain = false;
    } catch (error) {
      if (error instanceof LeaseExpired) this.nothingStarted(entry);
      // A driver that is being closed may give up a start; that is no end of the task.
      if (!(error instanceof DriverError) || this.closing.aborted) throw error;
      entry.uncertain = false;
      const kind = isCauseKind(error.causeKind) ? error.causeKind : 'unknown';
      this.phases.endUnstarted(entry, kind, error.message);
      return;
    }
    this.phases.set(entry, { kind: 'started', ...this.phases.now() });
    this.parts.leases.runs(task);
    this.follow(entry);
  }

  /** Signal, grace, kill; done when nothing of the task is left. */
  async stop(entry: TaskEntry, options: StopOptions): Promise<void> {
    const { phase } = entry;
    if (phase?.kind === 'started' && phase.stopping !== true)
      this.phases.set(entry, { ...phase, stopping: true });
    const exit = await this.stopDriver(entry, options);
    this.phases.endWith(entry, exit);
  }

  /** Superseded while it is being stopped: whoever waits for that hears of the end. */
  async endGrace(entry: TaskEntry): Promise<void> {
    const { phase } = entry;
    if (phase?.kind !== 'started' || phase.stopping !== true) return;
    const now = { signal: 'SIGKILL', graceMs: 0 };
    try {
      await this.phases.driverOf(entry).stop(this.phases.location(entry), now);
    } catch (error) {
      // It is asked for again as soon as the stop has come to an end.
      const fields = { task: taskKey(entry.task), error: messageOf(error) };
      this.parts.log.warn(fields, 'the grace of a task could not be ended');
    }
  }

  /** Whoever waits for its end hears of it; nobody has told it to stop. */
  async endFailed(entry: TaskEntry): Promise<void> {
    const { phase, assignment } = entry;
    if (phase?.kind !== 'started' || assignment === null) return;
    const graceMs = decodeJobSpec(assignment.specJson).stopGraceMs;
    await this.stopDriver(entry, { signal: 'SIGTERM', graceMs });
  }

  private stopDriver(entry: TaskEntry, options: StopOptions): Promise<TaskExit> {
    const { assignment } = entry;
    const driver = this.phases.driverOf(entry);
    const location = this.phases.location(entry);
    const stopped = driver.stop(location, options);
    if (assignment !== null && isTorchrun(decodeJobSpec(assignment.specJson)))
      void this.endLoneLauncher(driver, location, stopped);
    return stopped;
  }

  /**
   * The grace is for the ranks to save what they have. A torchrun whose workers are gone has nothing to save, and often
   * does not hear the signal: it waits for the other nodes' torchruns inside a library call.
   */
  private async endLoneLauncher(
    driver: Driver,
    location: TaskLocation,
    stopped: Promise<TaskExit>,
  ): Promise<void> {
    let isStopped = false;
    const note = () => void (isStopped = true);
    stopped.then(note, note);
    try {
      for (let alone = 0; alone < 2; ) {
        await new Promise((resolve) => setTimeout(resolve, loneLookMs));
        if (isStopped || this.closing.aborted) return;
        alone = driver.processes(location)?.length === 1 ? alone + 1 : 0;
      }
      await driver.stop(location, { signal: 'SIGKILL', graceMs: 0 });
    } catch (error) {
      const fields = { task: location.key, error: messageOf(error) };
      this.parts.log.warn(fields, 'a launcher without workers could not be ended; its grace does');
    }
  }

  /** Ends a task that was never started. */
  async discard(entry: TaskEntry): Promise<void> {
    await this.phases.freePort(entry);
    this.phases.end(entry, nothingRan);
  }

  /** There is no record of a task that was released, or no answer to its start: the drivers say what is true. */
  async examine(entry: TaskEntry): Promise<void> {
    if (entry.phase !== null) {
      await this.recover(entry, this.parts.bootId);
      return;
    }
    if (entry.assignment === null) {
      this.phases.end(entry, { ...nothingRan, statusLost: true });
      return;
    }
    // On disk it counts as started before anybody has answered: the next agent must not start it, should we die here.
    const phase = { kind: 'started', ...this.phases.now() } as const;
    const { bootId } = this.parts;
    await this.parts.records.create({ version: 1, assignment: entry.assignment, bootId, phase });
    const observed = await this.phases.driverOf(entry).recover(this.phases.location(entry));
    entry.phase = phase;
    this.accept(entry, observed, bootId);
  }

  /** The drivers know: running, ended while we were away, or never started. */
  async recover(entry: TaskEntry, recordedBootId: string): Promise<void> {
    const observed = await this.phases.driverOf(entry).recover(this.phases.location(entry));
    entry.uncertain = false;
    this.accept(entry, observed, recordedBootId);
  }

  private accept(entry: TaskEntry, observed: TaskObservation, recordedBootId: string): void {
    if (observed.kind === 'running') {
      const sameBoot = recordedBootId === this.parts.bootId;
      if (entry.phase?.kind !== 'started' || !sameBoot) {
        const now = this.phases.now();
        const startedAtMs = observed.startedAtMs ?? now.startedAtMs;
        this.phases.set(entry, { kind: 'started', ...now, startedAtMs });
      }
      this.parts.leases.adopt(entry.task, this.phases.fenced(entry), observed.frozen);
      this.follow(entry);
    } else if (observed.kind === 'exited') {
      this.phases.endWith(entry, observed.exit);
    } else if (entry.phase?.kind === 'started') {
      this.phases.endUnseen(entry);
    }
  }

  /** It was started, and its driver cannot say now what became of it: it may be running all the same. */
  followUnseen(entry: TaskEntry): void {
    this.parts.leases.adopt(entry.task, this.phases.fenced(entry), false);
    if (entry.phase?.kind === 'started') this.follow(entry);
  }

  async remove(entry: TaskEntry): Promise<void> {
    await this.phases.freePort(entry);
    await this.phases.driverOf(entry).remove(this.phases.location(entry));
    if (entry.assignment !== null) {
      await this.parts.checkpoints.cleanUp(entry.task.jobId, decodeJobSpec(entry.assignment.specJson));
    }
    await this.parts.records.remove(entry.task);
    this.parts.leases.drop(entry.task);
    this.parts.onRemoved(entry.task);
  }

  /** Sends a task's output and waits for its end, beside whatever else happens to it. */
  private follow(entry: TaskEntry): void {
    this.parts.onOutput(entry.task, this.phases.output(entry).path, null);
    void this.watch(entry);
  }

  private async watch(entry: TaskEntry): Promise<void> {
    try {
      const exit = await this.phases.driverOf(entry).wait(this.phases.location(entry), this.closing);
      if (entry.phase?.kind === 'started') this.phases.endWith(entry, exit);
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
}
