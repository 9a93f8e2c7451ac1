/**
 * What can be done about one task of this node from its release on, through its driver and its record. Each may come
 * twice: what is true afterwards is in the entry, on disk, and in the driver.
 */

import { untilAborted } from '@muster/common/async';
import { messageOf } from '@muster/common/errors';
import type { TaskFailure } from '@muster/common/gangs';
import { taskKey } from '@muster/common/ids';
import { isCauseKind } from '@muster/common/spec/causes';
import type { TrainingProgress } from '@muster/common/training';
import type { Driver } from '../drivers/driver.ts';
import { isTorchrun } from '../failure/torchrun.ts';
import { DriverError, LeaseExpired } from '../taskFacts/errors.ts';
import type { StopOptions, TaskExit, TaskLocation, TaskObservation } from '../taskFacts/execution.ts';
import { nothingRan, type TaskEntry } from './entry.ts';
import { buildLaunch, launchCheckpoints, writeLaunchFiles } from './launch.ts';
import type { ManagerParts } from './parts.ts';
import type { TaskPhases } from './phases.ts';
import { whileWanted } from './preparation.ts';

const lookAgainMs = 1_000;
/** What is left of an output is read in a moment; a disk that hangs must not keep an end from being told. */
const lastOutputMs = 5_000;
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

  /** Given up when the task is no longer needed. */
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
    if (order?.kind !== 'start' || assignment === null) return;
    const { spec } = assignment;
    // Again, for an earlier attempt that is cleaned up here takes an empty one away.
    await this.parts.checkpointDirs.prepare(assignment.checkpointJobId, spec);
    const checkpoints = launchCheckpoints(this.parts.checkpointDirs, assignment);
    // Held until now; the task's own listener takes the port over.
    await this.phases.freePort(entry);
    abort.throwIfAborted();
    const location = this.phases.location(entry);
    const release = { ...order, lease: this.parts.leases.starts(task, this.phases.fenced(entry)) };
    try {
      await writeLaunchFiles(this.parts.node, location, assignment, release);
      const launch = buildLaunch(this.parts.node, location, assignment, checkpoints, release);
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
    entry.graceEndsAtMs ??= this.parts.boottimeMs() + options.graceMs;
    // What is saved from the first signal on tells that the rest of the grace is not needed.
    const { checkpoints } = this.parts;
    if (options.graceMs > 0 && checkpoints.isWatched(entry.task)) await checkpoints.stopping(entry.task);
    const exit = await this.stopDriver(entry, options);
    await this.endWith(entry, exit);
  }

  /**
   * It is to be gone sooner than it was told: its driver keeps to the first grace, and is not asked to signal again,
   * because to many programs a second SIGTERM means "never mind saving". More time than it had at first it does not get.
   */
  shortenGrace(entry: TaskEntry, graceMs: number): void {
    const endsAtMs = this.parts.boottimeMs() + graceMs;
    if (entry.graceEndsAtMs === null || endsAtMs >= entry.graceEndsAtMs) return;
    entry.graceEndsAtMs = endsAtMs;
    if (entry.graceTimer !== null) clearTimeout(entry.graceTimer);
    if (graceMs === 0) void this.endGrace(entry);
    else entry.graceTimer = setTimeout(() => void this.endGrace(entry), graceMs);
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
    const graceMs = assignment.spec.stopGraceMs;
    await this.stopDriver(entry, { signal: 'SIGTERM', graceMs });
  }

  private stopDriver(entry: TaskEntry, options: StopOptions): Promise<TaskExit> {
    const { assignment } = entry;
    const driver = this.phases.driverOf(entry);
    const location = this.phases.location(entry);
    const stopped = driver.stop(location, options);
    if (assignment !== null && isTorchrun(assignment.spec))
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
    await this.parts.records.create({ assignment: entry.assignment, bootId, phase });
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
      this.endFound(entry, observed.exit);
    } else if (entry.phase?.kind === 'started') {
      this.endFound(entry, null);
    }
  }

  /** Its checkpoints were not looked at up to its end. The agent has more to do than to wait for what that finds. */
  private endFound(entry: TaskEntry, exit: TaskExit | null): void {
    this.watchCheckpoints(entry);
    this.endWith(entry, exit)?.then(
      () => this.onEnded(entry),
      (error: unknown) => {
        // It stays as it was, and the next agent finds its end.
        if (!this.closing.aborted)
          this.parts.log.error({ error: messageOf(error) }, 'the end of a task could not be told');
      },
    );
  }

  /**
   * Nothing of it runs any more. That is said when what it saved and printed last is known and has been said, and why it
   * failed: by that the coordinator chooses what follows.
   * @param exit null: nobody knows how it ended
   * @returns null: it is done already
   */
  private endWith(entry: TaskEntry, exit: TaskExit | null): Promise<void> | null {
    if (entry.phase?.kind === 'ended') return null;
    if (entry.ending !== null) return entry.ending;
    const end = (training: TrainingProgress | null, failure: TaskFailure | null) => {
      if (exit === null) this.phases.endUnseen(entry, training);
      else this.phases.endWith(entry, exit, failure, training);
    };
    const hasFailed = exit !== null && exit.exitCode !== 0;
    const read = this.parts.training.finish(entry.task);
    if (!hasFailed && read === null && !this.parts.checkpoints.isWatched(entry.task)) {
      end(this.parts.training.progress(entry.task), null);
      return null;
    }
    const failure = hasFailed ? this.phases.failureOf(entry, exit) : null;
    entry.ending = Promise.all([this.lastWords(entry, read), failure]).then((said) => end(...said));
    return entry.ending;
  }

  /** The metrics of a last checkpoint are in what was printed last. */
  private async lastWords(
    { task }: TaskEntry,
    read: Promise<TrainingProgress | null> | null,
  ): Promise<TrainingProgress | null> {
    const { training, checkpoints } = this.parts;
    try {
      if (read !== null) await untilAborted(read, AbortSignal.timeout(lastOutputMs));
    } catch (error) {
      const fields = { task: taskKey(task), error: messageOf(error) };
      this.parts.log.warn(fields, 'the last output of a task could not be read in time');
    }
    await checkpoints.lastLook(task);
    return training.progress(task);
  }

  private watchCheckpoints({ assignment, phase }: TaskEntry): void {
    if (assignment !== null && phase?.kind === 'started') {
      this.parts.checkpoints.watch(assignment, phase.startedAtMs);
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
      const { checkpointJobId, spec } = entry.assignment;
      await this.parts.checkpointDirs.cleanUp(checkpointJobId, spec);
    }
    await this.parts.records.remove(entry.task);
    this.parts.leases.drop(entry.task);
    this.parts.checkpoints.forget(entry.task);
    this.parts.onRemoved(entry.task);
  }

  /** Sends a task's output and waits for its end, beside whatever else happens to it. */
  private follow(entry: TaskEntry): void {
    this.parts.onOutput(entry.task, this.phases.output(entry).path, null);
    this.watchCheckpoints(entry);
    void this.watch(entry);
  }

  private async watch(entry: TaskEntry): Promise<void> {
    try {
      const exit = await this.phases.driverOf(entry).wait(this.phases.location(entry), this.closing);
      if (entry.phase?.kind === 'started') await this.endWith(entry, exit);
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
