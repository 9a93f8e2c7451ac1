/**
 * The driver that an agent of the simulation uses: requests to a machine's guard or container engine that take time, and
 * that may fail with their effect done or not done, as requests over a socket do. Freezing and thawing ask nothing but the
 * kernel.
 */

import type { TaskDriver, TaskLaunch } from '@muster/agent/drivers/driver';
import { DriverError } from '@muster/agent/taskFacts/errors';
import type { Lease, StopOptions, TaskExit, TaskLocation } from '@muster/agent/taskFacts/execution';
import type { Guard } from './guard.ts';
import { lostExit, type Machine, type Program } from './machine.ts';
import type { Service } from './service.ts';
import type { SimulatedProcess } from './simulatedProcess.ts';
import type { Life } from './timeline.ts';

/** Most are there already. */
const imagePullMsMax = 6_000;

export interface DriverParts {
  readonly name: TaskDriver['name'];
  readonly machine: Machine;
  /** The guard itself, or the container engine. */
  readonly service: Service;
  readonly guard: Guard;
  readonly agent: Life;
}

export class SimulatedDriver implements TaskDriver {
  readonly name: TaskDriver['name'];
  private readonly machine: Machine;
  private readonly service: Service;
  private readonly guard: Guard;
  private readonly agent: Life;

  constructor({ name, machine, service, guard, agent }: DriverParts) {
    this.name = name;
    this.machine = machine;
    this.service = service;
    this.guard = guard;
    this.agent = agent;
  }

  async prepare(launch: TaskLaunch, onDoing: (what: string) => void, abort?: AbortSignal): Promise<void> {
    const { startError, failsWhen } = programOf(launch);
    if (launch.image !== null) {
      onDoing(`pulls image ${launch.image}`);
      await this.fetchImage(abort);
    }
    return this.service.request(this.agent, (answer) => {
      if (startError !== null && failsWhen === 'prepared') throw noStart(startError);
      answer();
    });
  }

  /** A stop of the task does not wait for it. */
  private fetchImage(abort: AbortSignal | undefined): Promise<void> {
    const { random, timeline, registry } = this.machine;
    if (registry === 'well' && random.chance(0.6)) return Promise.resolve();
    return new Promise((resolve, reject) => {
      abort?.addEventListener('abort', () => timeline.at(0, this.agent, () => reject(abort.reason)));
      if (registry === 'hangs') return;
      timeline.at(random.between(1, imagePullMsMax), this.agent, () => {
        if (registry === 'fails') reject(noStart('image_pull'));
        else resolve();
      });
    });
  }

  async start(launch: TaskLaunch): Promise<void> {
    return this.service.request(this.agent, (answer) => {
      const { startError, failsWhen } = programOf(launch);
      if (startError !== null && failsWhen === 'started') throw noStart(startError);
      if (!this.machine.processes.has(launch.key)) {
        this.guard.admit(launch);
        this.machine.start(launch, this.name);
      }
      answer();
    });
  }

  recover({ key }: TaskLocation): ReturnType<TaskDriver['recover']> {
    return this.service.request(this.agent, (answer) => {
      const process = this.machine.processes.get(key);
      if (process === undefined) answer({ kind: 'absent' });
      else if (process.state.kind === 'exited') answer({ kind: 'exited', exit: process.state.exit });
      else {
        const { startedAtMs } = process.state;
        answer({ kind: 'running', pid: 1, startedAtMs, frozen: process.isFrozen });
      }
    });
  }

  async wait({ key }: TaskLocation, abort: AbortSignal): Promise<TaskExit> {
    abort.throwIfAborted();
    return this.service.request(this.agent, (answer) => whenExited(this.machine.processes.get(key), answer));
  }

  /** Whatever runs the task: it is the guard that holds its second fence. */
  renew(task: TaskLocation, lease: Lease | null): Promise<void> {
    return this.guard.request(this.agent, (answer) => {
      this.guard.renew(task, lease);
      answer();
    });
  }

  async freeze({ key }: TaskLocation): ReturnType<TaskDriver['freeze']> {
    const process = this.machine.processes.get(key);
    if (process?.isRunning !== true) return 'ended';
    process.freeze();
    await this.moment();
    return process.isRunning ? 'frozen' : 'ended';
  }

  processes(): null {
    return null;
  }

  async thaw({ key }: TaskLocation): Promise<void> {
    await this.moment();
    this.machine.processes.get(key)?.thaw();
  }

  async signal(): Promise<void> {
    throw new Error('agents send signals by stopping tasks');
  }

  stop({ key }: TaskLocation, options: StopOptions): Promise<TaskExit> {
    return this.service.request(this.agent, (answer) => {
      const process = this.machine.processes.get(key);
      process?.stop(options, () => this.guard.mayRun(key));
      whenExited(process, answer);
    });
  }

  remove({ key }: TaskLocation): Promise<void> {
    return this.service.request(this.agent, (answer) => {
      if (this.machine.processes.get(key)?.isRunning === true) {
        throw new Error(`task ${key} still runs: stop it before removing it`);
      }
      this.machine.processes.delete(key);
      this.guard.forget(key);
      answer();
    });
  }

  list(): Promise<readonly string[]> {
    return this.service.request(this.agent, (answer) => {
      const mine = [...this.machine.processes].filter(([, process]) => process.driver === this.name);
      answer(mine.map(([key]) => key));
    });
  }

  async close(): Promise<void> {}

  /** Between asking the kernel and knowing of it. */
  private moment(): Promise<void> {
    const { timeline, random } = this.machine;
    return new Promise((resolve) => {
      timeline.at(random.between(0, 3), this.agent, resolve);
    });
  }
}

function programOf({ command }: TaskLaunch): Program {
  return JSON.parse(command.at(-1) ?? '{}') as Program;
}

function noStart(kind: NonNullable<Program['startError']>): DriverError {
  return new DriverError(kind, `the simulated program has no start: ${kind}`);
}

function whenExited(process: SimulatedProcess | undefined, answer: (exit: TaskExit) => void): void {
  if (process === undefined) answer(lostExit);
  else if (process.state.kind === 'exited') answer(process.state.exit);
  else process.state.waiting.push(answer);
}
