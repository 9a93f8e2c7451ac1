/**
 * A machine with GPUs on which tasks run. Processes live here, in the hands of the kernel: they outlive agents and guards
 * and end with the machine. What its guard knows of ended ones is mostly kept over a reboot.
 */

import type { Driver, TaskLaunch } from '@muster/agent/drivers/driver';
import type { HeldPort } from '@muster/agent/launch/masterPort';
import type { TaskExit } from '@muster/agent/taskFacts/execution';
import { isSetAside } from '@muster/common/checkpoints';
import { bareGpu, type Gpu } from '@muster/common/hardware';
import { type NodeName, parseTaskKey, type TaskRef } from '@muster/common/ids';
import type { CauseKind } from '@muster/common/spec/causes';
import { type Artifacts, stepFilesOf } from './artifacts.ts';
import { MachineClock } from './clock.ts';
import { Disk } from './disk.ts';
import { Health } from './health.ts';
import type { History, ProcessStarted } from './history.ts';
import type { Random } from './random.ts';
import { placeOf, type Shelf, Shelves, shelfAt } from './shelf.ts';
import { SimulatedProcess } from './simulatedProcess.ts';
import { Life, type Timeline } from './timeline.ts';
import { stepMs, Training } from './training.ts';

/** What a simulated program does; its job's command carries this as JSON, as its last argument. */
export interface Program {
  /** How long it runs; null: until it is stopped. */
  readonly runMs: number | null;
  readonly exitCode: number;
  /** The rank that ends early with `exitCode`; the others of the gang exit with 0. null: every rank does. */
  readonly failingRank: number | null;
  readonly failsAfterMs: number;
  /** When one rank of a gang fails, the others lose their connection to it and fail as well. */
  readonly failsTogether: boolean;
  /** From this attempt on no rank fails. */
  readonly succeedsFromAttempt: number;
  readonly onStop: 'exit' | 'save' | 'ignore';
  /** How long it takes to save. */
  readonly saveMs: number;
  /** From there to its exit, after a stop. */
  readonly lingerMs: number;
  /** It saves checkpoints once per so long. null: it saves none. */
  readonly saveEveryMs: number | null;
  /** The cause that its output shows when it fails. null: none that a rule finds. */
  readonly failureKind: CauseKind | null;
  readonly outputBytes: number;
  /** Set: it cannot be started at all. */
  readonly startError: 'command_not_found' | 'image_pull' | null;
  /** When that shows. */
  readonly failsWhen: 'prepared' | 'started';
}

/** It saves nothing, prints little and exits with 0. */
export function plainProgram(runMs: number): Program {
  return {
    runMs,
    exitCode: 0,
    failingRank: null,
    failsAfterMs: 0,
    succeedsFromAttempt: 1,
    onStop: 'exit',
    outputBytes: 10,
    startError: null,
    failsTogether: false,
    saveMs: 0,
    failsWhen: 'started',
    lingerMs: 0,
    saveEveryMs: null,
    failureKind: null,
  };
}

export const lostExit: TaskExit = {
  exitCode: null,
  signal: null,
  oomKilled: false,
  finishedAtMs: null,
  statusLost: true,
};

interface PortHolder {
  readonly agent: Life;
  readonly task: TaskRef;
  released: boolean;
}

export interface MachineParts {
  readonly name: string;
  readonly gpuCount: number;
  readonly timeline: Timeline;
  readonly random: Random;
  readonly history: History;
  readonly wallOffsetMs: () => number;
  /** Storage that every machine sees. */
  readonly shared: Shelves;
  /** Of steps of pipelines. */
  readonly artifacts: Artifacts;
  /** A real one, made when something is written there. */
  readonly directory: string;
  /** A process has ended badly by itself. */
  readonly onBadEnd: (process: SimulatedProcess) => void;
}

export class Machine {
  readonly name: NodeName;
  readonly gpus: readonly Gpu[];
  readonly health: Health;
  readonly disk: Disk;
  readonly clock: MachineClock;
  /** What the guard and the container engine know, by task key. */
  readonly processes = new Map<string, SimulatedProcess>();
  /** Whether images can be had. */
  registry: 'well' | 'fails' | 'hangs' = 'well';
  registryEverFailed = false;
  /** Checkpoints that were begun here. */
  saves = 0;
  private readonly shelves = new Shelves();
  private readonly shared: Shelves;
  private readonly artifacts: Artifacts;
  private readonly ports = new Map<number, PortHolder>();
  /** From boot to power-off. */
  power: Life;
  boots = 0;
  private nextPort = 20_000;
  readonly timeline: Timeline;
  readonly random: Random;
  readonly history: History;
  private readonly onBadEnd: MachineParts['onBadEnd'];

  constructor({
    name,
    gpuCount,
    directory,
    wallOffsetMs,
    shared,
    artifacts,
    onBadEnd,
    ...parts
  }: MachineParts) {
    const { timeline, random, history } = parts;
    this.name = name as NodeName;
    this.gpus = Array.from({ length: gpuCount }, (_, index) => ({
      ...bareGpu(`GPU-${name}-${index}`),
      index,
      model: 'NVIDIA H100 80GB HBM3',
      memoryMb: 81_559,
      simulated: true,
    }));
    this.health = new Health(name, this.gpus, history);
    this.disk = new Disk({ machine: name, directory, timeline, random, history });
    this.clock = new MachineClock(timeline, random, wallOffsetMs);
    this.timeline = timeline;
    this.random = random;
    this.history = history;
    this.onBadEnd = onBadEnd;
    this.shared = shared;
    this.artifacts = artifacts;
    this.power = new Life(name);
    this.power.end();
  }

  get bootId(): string {
    return `boot-${this.name}-${this.boots}`;
  }

  boot(): void {
    this.boots += 1;
    this.clock.boot();
    this.power = new Life(this.name);
    this.history.add({ kind: 'process', name: this.name, what: `booted ${this.bootId}` });
  }

  /** Power cut: every process is gone at once, and with it what no one had written out. */
  powerOff(): void {
    this.power.end();
    this.disk.powerCut();
    for (const [key, process] of this.processes) {
      if (process.state.kind === 'running') {
        process.over(lostExit, 'reboot');
        if (this.random.chance(0.3)) this.processes.delete(key);
      } else if (this.timeline.nowMs - process.state.atMs < 5_000 && this.random.chance(0.3)) {
        this.processes.delete(key);
      }
    }
    this.history.add({ kind: 'process', name: this.name, what: 'power off' });
  }

  /** Held until it is released or its agent dies. */
  holdPort(agent: Life, task: TaskRef): HeldPort {
    this.nextPort += 1;
    const port = this.nextPort;
    const holder = { agent, task, released: false };
    this.ports.set(port, holder);
    return {
      port,
      release: async () => {
        holder.released = true;
      },
    };
  }

  /** The task for which its agent listens on a port now. */
  listener(port: number): TaskRef | null {
    const holder = this.ports.get(port);
    return holder === undefined || holder.released || !holder.agent.alive ? null : holder.task;
  }

  /** Whether the port was held here for this very task, and is free for it to listen on. */
  private wasHeld(port: number, task: TaskRef): boolean {
    const holder = this.ports.get(port);
    return (
      holder?.task.attempt === task.attempt &&
      holder.task.jobId === task.jobId &&
      this.listener(port) === null
    );
  }

  shelfAt(path: string): Shelf {
    return shelfAt(path, this.shelves, this.shared);
  }

  start(launch: TaskLaunch, driver: Driver['name']): void {
    const task = parseTaskKey(launch.key);
    if (task === null) throw new Error(`${launch.key} is not a task key`);
    const program = JSON.parse(launch.command.at(-1) ?? '{}') as Program;
    const masterPort = Number(launch.env['MASTER_PORT']);
    const resumeFrom = launch.env['MUSTER_RESUME_FROM'] ?? '';
    this.history.add({
      kind: 'started',
      machine: this.name,
      task,
      nodeCount: Number(launch.env['MUSTER_NNODES']),
      phase: launch.env['MUSTER_PHASE'] ?? null,
      gpuUuids: launch.gpus.map((gpu) => gpu.uuid),
      portWasHeld: task.nodeRank === 0 ? this.wasHeld(masterPort, task) : null,
      resume: task.nodeRank === 0 && resumeFrom !== '' ? this.resumeAt(resumeFrom) : null,
      ahead: this.aheadOf(task, launch.env),
    });
    const process = new SimulatedProcess(this, { task, driver, program, masterPort });
    this.processes.set(launch.key, process);
    this.disk.outputSizes.set(launch.key, program.outputBytes);
    const files = stepFilesOf(launch.command);
    const missing = files.inputs.find((input) => !this.artifacts.has(input));
    if (missing !== undefined)
      this.history.add({ kind: 'inputMissing', machine: this.name, task, path: missing.path });
    const firstStep = Number(launch.env['MUSTER_RESUME_STEP'] ?? 0);
    if (task.nodeRank === 0 && resumeFrom !== '' && this.dieOf(resumeFrom, process)) return;
    const directory = launch.env['MUSTER_CHECKPOINT_DIR'];
    if (task.nodeRank === 0 && program.saveEveryMs !== null && directory !== undefined) {
      process.training = new Training(this, process, this.shelfAt(directory), firstStep);
      process.training.saveRegularly(program.saveEveryMs, program.saveMs);
    }
    const fails = isFailing(program, task);
    const leftMs = program.runMs === null ? null : Math.max(1, program.runMs - firstStep * stepMs);
    const endsAfterMs = fails ? program.failsAfterMs : leftMs;
    if (endsAfterMs === null) return;
    const exitCode = fails ? program.exitCode : 0;
    process.after(endsAfterMs, () => {
      const { failureKind: kind } = program;
      if (exitCode !== 0 && kind !== null) process.lastOutput = { kind, message: `it failed with ${kind}` };
      if (exitCode === 0 && task.nodeRank === 0) {
        const bytes = this.artifacts.make(task, files);
        if (bytes !== null) this.disk.outputSizes.set(launch.key, bytes);
      }
      process.end({ exitCode, signal: null }, 'itself');
      if (exitCode !== 0) this.onBadEnd(process);
    });
  }

  /** It still has some of the output of the task to send. */
  hasUnsent(task: TaskRef): boolean {
    return this.artifacts.isUnsent(task);
  }

  /** What earlier attempts of the job have saved under names that this one is going to write over, step by step. */
  private aheadOf(task: TaskRef, env: Readonly<Record<string, string>>): readonly string[] {
    const directory = env['MUSTER_CHECKPOINT_DIR'];
    if (task.nodeRank !== 0 || directory === undefined) return [];
    const firstStep = Number(env['MUSTER_RESUME_STEP'] ?? 0);
    return [...this.shelfAt(directory).checkpoints.values()]
      .filter(({ savedBy }) => savedBy.jobId === task.jobId && savedBy.attempt < task.attempt)
      .filter(({ name, step, verdict }) => verdict === 'verified' && step > firstStep && !isSetAside(name))
      .map(({ name }) => name);
  }

  private resumeAt(path: string): NonNullable<ProcessStarted['resume']> {
    const { directory, name } = placeOf(path);
    return { name, state: this.shelfAt(directory).stateOf(name) };
  }

  /** @returns whether the checkpoint that it begins from is its end */
  private dieOf(path: string, process: SimulatedProcess): boolean {
    const { directory, name } = placeOf(path);
    const quality = this.shelfAt(directory).checkpoints.get(name)?.quality;
    if (quality !== 'rotten' && quality !== 'poisoned') return false;
    const kind = quality === 'rotten' ? 'corrupt_checkpoint' : 'python_exception';
    process.after(this.random.between(1, 500), () => {
      process.lastOutput = { kind, message: `cannot go on from ${path}` };
      process.end({ exitCode: 1, signal: null }, 'itself');
      this.onBadEnd(process);
    });
    return true;
  }
}

function isFailing({ exitCode, failingRank, succeedsFromAttempt }: Program, task: TaskRef): boolean {
  if (exitCode === 0 || task.attempt >= succeedsFromAttempt) return false;
  return failingRank === null || failingRank === task.nodeRank;
}
