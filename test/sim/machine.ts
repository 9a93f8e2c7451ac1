/**
 * A machine with GPUs on which tasks run. Processes live here, in the hands of a guard: they outlive agents and end with
 * the machine. What the guard knows of ended ones is mostly kept over a reboot.
 */

import type { Driver, StopOptions, TaskExit, TaskLaunch } from '@muster/agent/drivers/driver';
import type { HeldPort } from '@muster/agent/hooks/masterPort';
import { bareGpu, type Gpu } from '@muster/common/hardware';
import { type NodeName, parseTaskKey, type TaskRef } from '@muster/common/ids';
import { Disk } from './disk.ts';
import { Health } from './health.ts';
import type { History } from './history.ts';
import type { Random } from './random.ts';
import { Life, type Timeline } from './timeline.ts';

/** What a simulated program does; its job's command carries this as JSON. */
export interface Program {
  /** How long it runs; null: until it is stopped. */
  readonly runMs: number | null;
  readonly exitCode: number;
  /** The rank that ends early with `exitCode`; the others of the gang exit with 0. null: every rank does. */
  readonly failingRank: number | null;
  readonly failsAfterMs: number;
  /** From this attempt on no rank fails. */
  readonly succeedsFromAttempt: number;
  readonly onStop: 'exit' | 'save' | 'ignore';
  readonly outputBytes: number;
  /** Set: it cannot be started at all. */
  readonly startError: 'command_not_found' | 'image_pull' | null;
}

export const lostExit: TaskExit = {
  exitCode: null,
  signal: null,
  oomKilled: false,
  finishedAtMs: null,
  statusLost: true,
};

interface Running {
  readonly kind: 'running';
  readonly startedAtMs: number;
  stopping: { readonly signal: string; deadlineMs: number } | null;
  readonly waiting: ((exit: TaskExit) => void)[];
}

export interface SimulatedProcess {
  readonly task: TaskRef;
  readonly driver: Driver['name'];
  readonly program: Program;
  state: Running | { readonly kind: 'exited'; readonly exit: TaskExit; readonly atMs: number };
}

export class Machine {
  readonly name: NodeName;
  readonly gpus: readonly Gpu[];
  readonly health: Health;
  readonly disk: Disk;
  /** What the guards of both drivers know, by task key. */
  readonly processes = new Map<string, SimulatedProcess>();
  private readonly ports = new Map<number, { readonly agent: Life; released: boolean }>();
  /** From boot to power-off. */
  power: Life;
  boots = 0;
  private nextPort = 20_000;
  private readonly timeline: Timeline;
  private readonly random: Random;
  private readonly history: History;

  constructor(name: string, gpuCount: number, timeline: Timeline, random: Random, history: History) {
    this.name = name as NodeName;
    this.gpus = Array.from({ length: gpuCount }, (_, index) => ({
      ...bareGpu(`GPU-${name}-${index}`),
      index,
      model: 'NVIDIA H100 80GB HBM3',
      memoryMb: 81_559,
      simulated: true,
    }));
    this.health = new Health(name, this.gpus, history);
    this.disk = new Disk(name, timeline, random, history);
    this.timeline = timeline;
    this.random = random;
    this.history = history;
    this.power = new Life(name);
    this.power.end();
  }

  get bootId(): string {
    return `boot-${this.name}-${this.boots}`;
  }

  boot(): void {
    this.boots += 1;
    this.power = new Life(this.name);
    this.history.add({ kind: 'process', name: this.name, what: `booted ${this.bootId}` });
  }

  /** Power cut: every process is gone at once, and with it what no one had written out. */
  powerOff(): void {
    this.power.end();
    this.disk.powerCut();
    for (const [key, process] of this.processes) {
      if (process.state.kind === 'running') {
        this.endProcess(process, lostExit, 'reboot');
        if (this.random.chance(0.3)) this.processes.delete(key);
      } else if (this.timeline.nowMs - process.state.atMs < 5_000 && this.random.chance(0.3)) {
        this.processes.delete(key);
      }
    }
    this.history.add({ kind: 'process', name: this.name, what: 'power off' });
  }

  /** Held until it is released or its agent dies. */
  holdPort(agent: Life): HeldPort {
    this.nextPort += 1;
    const port = this.nextPort;
    const held = { agent, released: false };
    this.ports.set(port, held);
    return {
      port,
      release: async () => {
        held.released = true;
      },
    };
  }

  /** Whether the port was held here for a task, and is free for it to listen on. */
  private wasHeld(port: number): boolean {
    const held = this.ports.get(port);
    return held !== undefined && (held.released || !held.agent.alive);
  }

  start(launch: TaskLaunch, driver: Driver['name']): void {
    const task = parseTaskKey(launch.key);
    if (task === null) throw new Error(`${launch.key} is not a task key`);
    const program = JSON.parse(launch.command[1] ?? '{}') as Program;
    this.history.add({
      kind: 'started',
      machine: this.name,
      task,
      nodeCount: Number(launch.env['MUSTER_NNODES']),
      gpuUuids: launch.gpus.map((gpu) => gpu.uuid),
      portWasHeld: task.nodeRank === 0 ? this.wasHeld(Number(launch.env['MASTER_PORT'])) : null,
    });
    const process: SimulatedProcess = {
      task,
      driver,
      program,
      state: { kind: 'running', startedAtMs: this.timeline.nowMs, stopping: null, waiting: [] },
    };
    this.processes.set(launch.key, process);
    this.disk.outputSizes.set(launch.key, program.outputBytes);
    const fails = isFailing(program, task);
    const endsAfterMs = fails ? program.failsAfterMs : program.runMs;
    if (endsAfterMs === null) return;
    const exitCode = fails ? program.exitCode : 0;
    this.timeline.at(endsAfterMs, this.power, () => this.exit(process, exitCode, null, 'itself'));
  }

  /** Signal, grace, SIGKILL. Asked again it keeps the earlier deadline and does not repeat the signal. */
  stop(process: SimulatedProcess, { signal, graceMs }: StopOptions): void {
    if (process.state.kind !== 'running') return;
    const before = process.state.stopping;
    const deadlineMs = Math.min(
      this.timeline.nowMs + graceMs,
      before?.deadlineMs ?? Number.POSITIVE_INFINITY,
    );
    process.state.stopping = { signal, deadlineMs };
    if (before?.signal !== signal && signal !== 'SIGKILL') this.signal(process, signal);
    if (before !== null && before.deadlineMs <= deadlineMs) return;
    // A killed process needs a moment to go, more when its memory is large.
    const goneAfterMs = deadlineMs - this.timeline.nowMs + this.random.between(1, 300);
    this.timeline.at(goneAfterMs, this.power, () => this.exit(process, null, 'SIGKILL', 'stop'));
  }

  private signal(process: SimulatedProcess, signal: string): void {
    const { onStop } = process.program;
    if (onStop === 'ignore') return;
    if (onStop === 'exit') {
      this.timeline.at(this.random.between(1, 30), this.power, () =>
        this.exit(process, null, signal, 'stop'),
      );
    } else {
      this.timeline.at(this.random.between(50, 900), this.power, () => this.exit(process, 0, null, 'stop'));
    }
  }

  private exit(
    process: SimulatedProcess,
    exitCode: number | null,
    signal: string | null,
    by: 'itself' | 'stop',
  ): void {
    if (process.state.kind !== 'running') return;
    const exit = { exitCode, signal, oomKilled: false, finishedAtMs: this.timeline.nowMs, statusLost: false };
    const { waiting } = process.state;
    this.endProcess(process, exit, by);
    for (const answer of waiting) answer(exit);
  }

  private endProcess(process: SimulatedProcess, exit: TaskExit, by: 'itself' | 'stop' | 'reboot'): void {
    process.state = { kind: 'exited', exit, atMs: this.timeline.nowMs };
    const { exitCode, signal } = exit;
    this.history.add({ kind: 'ended', machine: this.name, task: process.task, exitCode, signal, by });
  }
}

function isFailing({ exitCode, failingRank, succeedsFromAttempt }: Program, task: TaskRef): boolean {
  if (exitCode === 0 || task.attempt >= succeedsFromAttempt) return false;
  return failingRank === null || failingRank === task.nodeRank;
}
