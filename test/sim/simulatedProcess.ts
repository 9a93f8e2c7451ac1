/**
 * One task's processes, as their machine sees them: they work, hear signals and end, and frozen they do nothing of that.
 * They are in the hands of the kernel alone; nothing here belongs to an agent or a guard.
 */

import type { Driver } from '@muster/agent/drivers/driver';
import type { OwnTask } from '@muster/agent/guard/fences';
import type { StopOptions, TaskExit } from '@muster/agent/taskFacts/execution';
import type { TaskRef } from '@muster/common/ids';
import type { CauseKind } from '@muster/common/spec/causes';
import type { ProcessEnded } from './history.ts';
import type { Machine, Program } from './machine.ts';
import type { Appointment } from './timeline.ts';
import type { Training } from './training.ts';

/** The kernel is asked to freeze, and now and then something takes its time. Less than what a fence counts on. */
const freezeMsMax = 1_900;

/** Something that it does once it has executed for `leftMs` more. */
interface Step {
  leftMs: number;
  readonly act: () => void;
  appointment: Appointment | null;
}

interface Running {
  readonly kind: 'running';
  readonly startedAtMs: number;
  stopping: { readonly signal: string; readonly deadlineMs: number } | null;
  readonly waiting: ((exit: TaskExit) => void)[];
}

export interface FinalOutput {
  readonly kind: CauseKind;
  readonly message: string;
}

type End = Pick<TaskExit, 'exitCode' | 'signal'>;

export class SimulatedProcess implements OwnTask {
  readonly task: TaskRef;
  readonly driver: Driver['name'];
  readonly program: Program;
  /** What it was started with; the others of its gang find it by that. */
  readonly masterPort: number;
  state: Running | { readonly kind: 'exited'; readonly exit: TaskExit; readonly atMs: number };
  /** It ended badly only because another of its gang had. */
  isConsequence = false;
  /** The cause of its end that its output shows. null: nothing. */
  lastOutput: FinalOutput | null = null;
  /** Of rank 0 of a program that saves. */
  training: Training | null = null;
  private executedBeforeMs = 0;
  /** null: it is frozen, or over. */
  private executesSinceMs: number | null;
  private freezing: 'no' | 'asked' | 'done' = 'no';
  private stopsAt: Appointment | null = null;
  private readonly steps = new Set<Step>();
  private readonly machine: Machine;

  constructor(machine: Machine, parts: Pick<SimulatedProcess, 'task' | 'driver' | 'program' | 'masterPort'>) {
    this.machine = machine;
    this.task = parts.task;
    this.driver = parts.driver;
    this.program = parts.program;
    this.masterPort = parts.masterPort;
    this.executesSinceMs = machine.timeline.nowMs;
    this.state = { kind: 'running', startedAtMs: machine.timeline.nowMs, stopping: null, waiting: [] };
  }

  /** Since its start, without the times when it was frozen. */
  get executedMs(): number {
    const sinceMs = this.executesSinceMs;
    return this.executedBeforeMs + (sinceMs === null ? 0 : this.machine.timeline.nowMs - sinceMs);
  }

  get isRunning(): boolean {
    return this.state.kind === 'running';
  }

  /** As the kernel reports it: a freeze that was asked for counts as done. */
  get isFrozen(): boolean {
    return this.isRunning && this.freezing !== 'no';
  }

  /** As a guard has it in its hands. */
  readonly group: OwnTask['group'] = {
    pids: () => (this.isRunning ? [1] : []),
    isEmpty: () => !this.isRunning,
    looksNeeded: 1,
    kill: () => {
      this.kill('fence');
      return true;
    },
    freeze: () => this.freeze(),
    isFrozen: () => this.isFrozen,
    thaw: () => this.thaw(),
    release: () => true,
  };

  /** Runs `act` after `delayMs` of its own time: none of it passes while it is frozen. */
  after(delayMs: number, act: () => void): void {
    const step: Step = { leftMs: delayMs, act, appointment: null };
    this.steps.add(step);
    if (this.freezing !== 'done') this.arrange(step);
  }

  private arrange(step: Step): void {
    const { timeline, power } = this.machine;
    step.appointment = timeline.at(step.leftMs, power, () => {
      this.steps.delete(step);
      step.act();
    });
  }

  /** Runs on for a moment, in which a thaw may come. */
  freeze(): void {
    if (!this.isRunning || this.freezing !== 'no') return;
    const { timeline, random, power } = this.machine;
    this.freezing = 'asked';
    const takesMs = random.chance(0.8) ? random.between(0, 5) : random.between(5, freezeMsMax);
    this.stopsAt = timeline.at(takesMs, power, () => this.stopHere());
  }

  private stopHere(): void {
    const { timeline, history, name } = this.machine;
    if (!this.isRunning) return;
    this.freezing = 'done';
    this.executedBeforeMs = this.executedMs;
    this.executesSinceMs = null;
    for (const step of this.steps) {
      step.leftMs = Math.max(0, (step.appointment?.atMs ?? timeline.nowMs) - timeline.nowMs);
      if (step.appointment !== null) step.appointment.cancelled = true;
    }
    history.add({ kind: 'frozen', machine: name, task: this.task });
  }

  thaw(): void {
    const wasStopped = this.freezing === 'done';
    this.freezing = 'no';
    if (this.stopsAt !== null) this.stopsAt.cancelled = true;
    if (!wasStopped || !this.isRunning) return;
    this.executesSinceMs = this.machine.timeline.nowMs;
    this.machine.history.add({ kind: 'thawed', machine: this.machine.name, task: this.task });
    for (const step of this.steps) this.arrange(step);
  }

  /** Signal, grace, SIGKILL. Asked again it keeps the earlier deadline and does not repeat the signal. */
  stop({ signal, graceMs }: StopOptions, mayRun: () => boolean): void {
    if (this.state.kind !== 'running') return;
    const { timeline, power } = this.machine;
    const before = this.state.stopping;
    const deadlineMs = Math.min(timeline.nowMs + graceMs, before?.deadlineMs ?? Number.POSITIVE_INFINITY);
    this.state.stopping = { signal, deadlineMs };
    if (before === null)
      this.machine.history.add({ kind: 'stopReceived', machine: this.machine.name, task: this.task });
    if (before?.signal !== signal && signal !== 'SIGKILL') this.hear(signal);
    if (before === null || deadlineMs < before.deadlineMs)
      timeline.at(deadlineMs - timeline.nowMs, power, () => this.kill('stop'));
    if (mayRun()) this.thawToSave();
  }

  /** The signal is waiting by then, so it is the first thing that it sees. */
  private thawToSave(): void {
    if (this.state.kind !== 'running' || this.state.stopping === null) return;
    if (this.machine.timeline.nowMs < this.state.stopping.deadlineMs) this.thaw();
  }

  /** By the fence. */
  kill(by: ProcessEnded['by'] = 'fence'): void {
    const { timeline, random, power } = this.machine;
    // A killed process needs a moment to go, more when its memory is large.
    timeline.at(random.between(1, 300), power, () => this.end({ exitCode: null, signal: 'SIGKILL' }, by));
  }

  leaseRenewed(): void {
    this.thawToSave();
  }

  private hear(signal: string): void {
    const { onStop, saveMs, lingerMs } = this.program;
    const { random } = this.machine;
    const linger = () => this.after(lingerMs, () => this.end({ exitCode: 0, signal: null }, 'stop'));
    if (onStop === 'exit')
      this.after(random.between(1, 30), () => this.end({ exitCode: null, signal }, 'stop'));
    else if (onStop === 'save' && this.training !== null) this.training.saveLast(saveMs, linger);
    else if (onStop === 'save') this.after(saveMs, linger);
  }

  end({ exitCode, signal }: End, by: ProcessEnded['by']): void {
    if (this.state.kind !== 'running') return;
    const { clock } = this.machine;
    const finished = { finishedAtMs: clock.wallMs(), finishedBoottimeMs: clock.boottimeMs() };
    const exit = { exitCode, signal, oomKilled: false, statusLost: false, ...finished };
    const { waiting } = this.state;
    this.over(exit, by);
    for (const answer of waiting) answer(exit);
  }

  /** Nothing is notified. */
  over(exit: TaskExit, by: ProcessEnded['by']): void {
    const { timeline, history, name } = this.machine;
    this.state = { kind: 'exited', exit, atMs: timeline.nowMs };
    for (const { appointment } of this.steps) if (appointment !== null) appointment.cancelled = true;
    this.steps.clear();
    const { exitCode, signal } = exit;
    history.add({ kind: 'ended', machine: name, task: this.task, exitCode, signal, by });
  }
}
