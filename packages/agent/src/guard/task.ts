/**
 * One task from the moment its main process exists until nothing of it is left.
 *
 *   running ── main process ends ──▶ ending ── nothing left ──▶ ended
 *
 * Whatever is left when the main process ends is killed, at once or, during a stop, when the grace is over: a shell
 * that dies of the signal must not cost the training below it the time to save. A task is `ended` only when the
 * kernel shows no process of it any longer; one that cannot be killed keeps it `ending` for as long as it takes.
 *
 * A frozen task that is stopped with a grace is thawed, to save what it has; unless its lease has run out, then it has
 * to end where it is.
 */

import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '@muster/common/clock';
import type { Logger } from '@muster/common/log';
import { hasRunOutOfMemory, removeEmptyGroups } from '../fence/controlGroup.ts';
import { isGroupGone, killFrozen } from '../fence/freeze.ts';
import { isRunning, type ProcessIdentity, sendSignal } from '../fence/processes.ts';
import type { TaskGroup } from '../fence/taskGroup.ts';
import type {
  StopOptions,
  TaskExit,
  TaskLocation,
  TaskName,
  TaskObservation,
} from '../taskFacts/execution.ts';
import { openGroup } from './containment.ts';
import type { OwnTask } from './fences.ts';
import {
  type MainExit,
  noteSignal,
  type ProcessRecord,
  readSignal,
  writeExit,
  writeMainExit,
} from './records.ts';

/** What a supervisor needs to know of a task, whether it runs or ended long ago. */
export interface KnownTask {
  observe(): TaskObservation;
  /** Resolves when no process is left. */
  whenEnded(): Promise<TaskExit>;
  readonly isEnded: boolean;
  /** What its lease is enforced on; null: it has ended. */
  readonly fenced: OwnTask | null;
  /** @throws {Error} for a name that is no signal */
  signal(signal: string): void;
  /** Returns at once; `whenEnded` resolves when it is done. */
  stop(options: StopOptions): void;
}

export function endedTask(exit: TaskExit): KnownTask {
  return {
    observe: () => ({ kind: 'exited', exit }),
    whenEnded: async () => exit,
    isEnded: true,
    fenced: null,
    signal() {},
    stop() {},
  };
}

export interface GuardContext {
  readonly clock: Clock;
  readonly log: Logger;
  /** Of an end that is seen. */
  readonly now: () => Required<Pick<TaskExit, 'finishedAtMs' | 'finishedBoottimeMs'>>;
  /** false: its lease has run out. */
  readonly mayRun: (key: TaskName) => boolean;
  /** It is stopped only because it wrote its output too fast. */
  readonly isHeld: (key: TaskName) => boolean;
}

type Phase =
  | { readonly kind: 'running'; readonly main: ProcessIdentity }
  | { readonly kind: 'ending'; readonly mainExit: MainExit }
  | { readonly kind: 'ended'; readonly exit: TaskExit };

interface Stopping {
  readonly signal: string;
  /** Monotonic; only ever moves closer. */
  readonly deadlineMs: number;
}

export const lostExit: TaskExit = {
  exitCode: null,
  signal: null,
  oomKilled: false,
  finishedAtMs: null,
  statusLost: true,
};

/** Between two looks at processes that were killed: they need a moment to go. Doubles up to the second value. */
const killRetryMs = { first: 1, most: 200 };
/** A killed process that is still there by then is worth a line in the log: stuck in the kernel, or frozen. */
const killExpectedMs = 10_000;
/** A longer timer would fire at once; this is 24 days. */
const timerMsMax = 2 ** 31 - 1;
/** How often leftovers in their grace are looked at. */
const gracePollMs = 50;

export class GuardedTask implements KnownTask, OwnTask {
  readonly location: TaskLocation;
  readonly group: TaskGroup;
  private readonly record: ProcessRecord;
  private readonly context: GuardContext;
  private readonly ended = Promise.withResolvers<TaskExit>();
  private phase: Phase;
  private stopping: Stopping | null = null;
  private graceTimer: NodeJS.Timeout | null = null;
  private killing: Promise<void> | null = null;
  /** What could not be done at the end is tried again: a full disk gets space, a group gets empty. */
  private endRecorded = false;
  private groupReleased = false;
  private reportedUnrecorded = false;
  private isOverMemory = false;

  /** @param record with a main process, unless the guard that started it was killed before noting one */
  constructor(location: TaskLocation, record: ProcessRecord, context: GuardContext) {
    this.location = location;
    this.record = record;
    this.context = context;
    this.group = openGroup(location, record);
    const { main, mainExit } = record;
    this.phase =
      main !== null && mainExit === null
        ? { kind: 'running', main }
        : { kind: 'ending', mainExit: mainExit ?? lostExit };
    if (this.phase.kind === 'ending') void this.endWithoutMain(this.phase.mainExit);
  }

  observe(): TaskObservation {
    if (this.phase.kind === 'ended') return { kind: 'exited', exit: this.phase.exit };
    const pid = this.phase.kind === 'running' ? this.phase.main.pid : null;
    const isHeld = this.context.isHeld(this.location.key);
    const frozen = !isHeld && this.group.isFrozen() && !this.group.isEmpty();
    return { kind: 'running', pid, startedAtMs: this.record.startedAtMs, frozen };
  }

  whenEnded(): Promise<TaskExit> {
    return this.ended.promise;
  }

  get isEnded(): boolean {
    return this.phase.kind === 'ended';
  }

  get fenced(): OwnTask | null {
    return this.isEnded ? null : this;
  }

  /** It has been signalled to end. */
  get isStopping(): boolean {
    return this.stopping !== null;
  }

  /** Whether `settle` has nothing left to do. */
  get isSettled(): boolean {
    return this.isEnded && this.endRecorded && this.groupReleased;
  }

  /** The parent of the main process calls this; `checkMain` does it for tasks nobody is the parent of. */
  mainEnded(mainExit: MainExit): void {
    if (this.phase.kind !== 'running') return;
    this.phase = { kind: 'ending', mainExit };
    void this.endWithoutMain(mainExit);
  }

  /** For tasks that an earlier guard started: the kernel does not report their end to this one. */
  checkMain(): void {
    if (this.phase.kind === 'running' && !isRunning(this.phase.main)) {
      this.mainEnded({ ...lostExit, ...this.context.now() });
    }
  }

  /** Does what could not be done when the task ended. */
  settle(): void {
    if (this.phase.kind !== 'ended') return;
    this.groupReleased ||= this.releaseGroups();
    if (this.endRecorded) return;
    try {
      writeExit(this.location.directory, this.phase.exit);
      this.endRecorded = true;
    } catch (error) {
      // A directory that is gone needs no record; the end is still answered from memory.
      this.endRecorded = (error as NodeJS.ErrnoException).code === 'ENOENT';
      if (this.reportedUnrecorded) return;
      this.reportedUnrecorded = true;
      const fields = { task: this.location.key, error };
      this.context.log.error(fields, 'the end of a task cannot be written down, trying again');
    }
  }

  private releaseGroups(): boolean {
    const isReleased = this.record.limitGroups.map((group) => removeEmptyGroups(group));
    return this.group.release() && isReleased.every(Boolean);
  }

  /**
   * Signals go to the process group, not to the main process alone: a shell around a training would die of the signal
   * and leave the training an orphan that never received it.
   */
  signal(signal: string): void {
    if (this.phase.kind === 'ended') return;
    if (this.phase.kind === 'running' && isRunning(this.phase.main)) {
      sendSignal(-this.phase.main.pid, signal);
      return;
    }
    for (const pid of this.group.pids()) sendSignal(pid, signal);
  }

  /**
   * Asked again it keeps the earlier deadline, and does not send the same signal twice: to many programs a second
   * SIGTERM means "never mind saving".
   */
  stop({ signal, graceMs }: StopOptions): void {
    if (this.isEnded) return;
    const before = this.stopping;
    const deadlineMs = this.context.clock.monotonicMs() + graceMs;
    this.stopping = { signal, deadlineMs: Math.min(deadlineMs, before?.deadlineMs ?? Infinity) };
    if (before === null || deadlineMs < before.deadlineMs) this.killAfter(graceMs);
    if (before?.signal !== signal) this.signalOnce(signal, graceMs);
    this.thawToSave();
  }

  /** An agent may have sent the signal while this guard, or an earlier one, did not answer. */
  private signalOnce(signal: string, graceMs: number): void {
    const { directory, key } = this.location;
    if (graceMs > 0) {
      if (readSignal(directory) === signal) return;
      try {
        noteSignal(directory, signal);
      } catch (error) {
        this.context.log.error({ task: key, error }, 'the signal of a stop cannot be written down');
      }
    }
    this.signal(signal);
  }

  /** It needed more memory than it may have before the kernel could hold it to that. */
  killForMemory(): void {
    this.isOverMemory = true;
    this.kill();
  }

  /** No signal to the task first: it has no time to save, and may not run to receive one. */
  kill(): void {
    this.stop({ signal: 'SIGKILL', graceMs: 0 });
  }

  leaseRenewed(): void {
    this.thawToSave();
  }

  /** The signal is waiting by then, so it is the first that the task sees. */
  private thawToSave(): void {
    if (!this.hasGrace() || !this.context.mayRun(this.location.key)) return;
    try {
      this.group.thaw();
    } catch (error) {
      this.context.log.error({ task: this.location.key, error }, 'a task that is to save cannot be thawed');
    }
  }

  private killAfter(graceMs: number): void {
    if (this.graceTimer !== null) clearTimeout(this.graceTimer);
    this.graceTimer = setTimeout(() => void this.killUntilGone(), Math.min(graceMs, timerMsMax));
  }

  private async endWithoutMain(mainExit: MainExit): Promise<void> {
    if (!(await this.isGroupGone())) {
      this.noteMainExit(mainExit);
      while (this.hasGrace() && !(await this.isGroupGone())) await delay(gracePollMs);
      await this.killUntilGone();
    }
    if (this.graceTimer !== null) clearTimeout(this.graceTimer);
    const groups = [...this.record.limitGroups, ...(this.record.cgroup === null ? [] : [this.record.cgroup])];
    // The kernel reports an OOM kill of any process of the task. A task that continued and succeeded was not ended by it.
    const oomKilled = mainExit.exitCode !== 0 && (this.isOverMemory || hasRunOutOfMemory(groups));
    const exit: TaskExit = { ...mainExit, oomKilled };
    this.phase = { kind: 'ended', exit };
    this.settle();
    this.ended.resolve(exit);
  }

  private hasGrace(): boolean {
    return this.stopping !== null && this.context.clock.monotonicMs() < this.stopping.deadlineMs;
  }

  private noteMainExit(mainExit: MainExit): void {
    try {
      writeMainExit(this.location.directory, mainExit);
    } catch (error) {
      this.context.log.error({ task: this.location.key, error }, 'the exit status could not be written down');
    }
  }

  /** One at a time: the grace's end and the main process's end may both ask for it. */
  private killUntilGone(): Promise<void> {
    this.killing ??= this.killLoop().finally(() => {
      this.killing = null;
    });
    return this.killing;
  }

  private async killLoop(): Promise<void> {
    const since = this.context.clock.monotonicMs();
    let pauseMs = killRetryMs.first;
    let warned = false;
    while (!(await this.isGroupGone())) {
      try {
        killFrozen(this.group);
        if (!warned && this.context.clock.monotonicMs() - since > killExpectedMs) {
          warned = true;
          const fields = { task: this.location.key, pids: this.group.pids() };
          this.context.log.warn(fields, 'processes survive SIGKILL; the task is not reported as ended');
        }
      } catch (error) {
        this.context.log.error({ task: this.location.key, error }, 'killing a task failed, trying again');
      }
      await delay(pauseMs);
      pauseMs = Math.min(pauseMs * 2, killRetryMs.most);
    }
  }

  private async isGroupGone(): Promise<boolean> {
    try {
      return await isGroupGone(this.group);
    } catch (error) {
      this.context.log.error({ task: this.location.key, error }, 'cannot see the processes of a task');
      return false;
    }
  }
}
