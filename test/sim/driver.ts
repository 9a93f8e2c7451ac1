/**
 * The driver that an agent of the simulation uses: requests to a machine's guard that take time, and that may fail with
 * their effect done or not done, as requests over a socket do.
 */
import type { Driver, StopOptions, TaskExit, TaskLaunch, TaskLocation } from '@muster/agent/drivers/driver';
import { DriverError } from '@muster/agent/drivers/errors';
import { lostExit, type Machine, type Program, type SimulatedProcess } from './machine.ts';
import type { Random } from './random.ts';
import type { Life, Timeline } from './timeline.ts';

/** One guard or container engine: away for a while now and then; its tasks run on. */
export class Guard {
  awayUntilMs = 0;
  /** Requests are taken in the order they were sent. */
  private takesNextAtMs = 0;
  /** Whoever waits for an answer loses the connection when the guard goes away. */
  private readonly unanswered = new Set<(error: Error) => void>();
  private readonly machine: Machine;
  private readonly timeline: Timeline;
  private readonly random: Random;

  constructor(machine: Machine, timeline: Timeline, random: Random) {
    this.machine = machine;
    this.timeline = timeline;
    this.random = random;
  }

  goAway(forMs: number): void {
    this.awayUntilMs = this.timeline.nowMs + forMs;
    for (const fail of [...this.unanswered]) fail(new Error('the guard has gone away'));
  }

  /** Whoever wants to stop the task does not wait for it. */
  fetchImage(agent: Life, image: string | null, abort: AbortSignal | undefined): Promise<void> {
    if (image === null || this.random.chance(0.6)) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.timeline.at(this.random.between(1, imagePullMsMax), agent, resolve);
      abort?.addEventListener('abort', () => this.timeline.at(0, agent, () => reject(abort.reason)));
    });
  }

  /** @param act has its effect on the machine and calls `answer` once it is done, now or later */
  request<T>(agent: Life, act: (answer: (value: T) => void) => void): Promise<T> {
    const { timeline, random, machine, unanswered } = this;
    const isAway = () => timeline.nowMs < this.awayUntilMs;
    // Sent by an agent that dies before the guard reads it: still in the socket, or lost with it.
    const survivesSender = random.chance(0.7);
    const { power } = machine;
    return new Promise((resolve, reject) => {
      const settle = (delayMs: number, how: () => void) => {
        if (!unanswered.delete(fail)) return;
        timeline.at(delayMs, agent, how);
      };
      const fail = (error: Error) => settle(1, () => reject(error));
      unanswered.add(fail);
      agent.onEnd(() => unanswered.delete(fail));
      if (isAway() && random.chance(0.8)) {
        settle(random.between(1, 50), () => reject(new Error('the guard does not answer')));
        return;
      }
      this.takesNextAtMs = Math.max(this.takesNextAtMs, timeline.nowMs + random.between(0, 5));
      timeline.at(this.takesNextAtMs - timeline.nowMs, power, () => {
        if (!agent.alive && !survivesSender) return;
        try {
          act((value) => {
            if (isAway()) fail(new Error('the guard went away before it answered'));
            else settle(random.between(0, 5), () => resolve(value));
          });
        } catch (error) {
          fail(error as Error);
        }
      });
    });
  }
}

/** Most are there already. */
const imagePullMsMax = 6_000;

export class SimulatedDriver implements Driver {
  readonly name: Driver['name'];
  private readonly machine: Machine;
  private readonly guard: Guard;
  private readonly agent: Life;

  constructor(name: Driver['name'], machine: Machine, guard: Guard, agent: Life) {
    this.name = name;
    this.machine = machine;
    this.guard = guard;
    this.agent = agent;
  }

  async start(launch: TaskLaunch, abort?: AbortSignal): Promise<void> {
    await this.guard.fetchImage(this.agent, launch.image, abort);
    return this.guard.request(this.agent, (answer) => {
      const { startError } = JSON.parse(launch.command[1] ?? '{}') as Program;
      if (startError !== null)
        throw new DriverError(startError, `the simulated program has no start: ${startError}`);
      if (!this.machine.processes.has(launch.key)) this.machine.start(launch, this.name);
      answer();
    });
  }

  recover({ key }: TaskLocation): ReturnType<Driver['recover']> {
    return this.guard.request(this.agent, (answer) => {
      const { state } = this.machine.processes.get(key) ?? { state: null };
      if (state === null) answer({ kind: 'absent' });
      else if (state.kind === 'exited') answer({ kind: 'exited', exit: state.exit });
      else answer({ kind: 'running', pid: 1, startedAtMs: state.startedAtMs });
    });
  }

  async wait({ key }: TaskLocation, abort: AbortSignal): Promise<TaskExit> {
    abort.throwIfAborted();
    return this.guard.request(this.agent, (answer) => whenExited(this.machine.processes.get(key), answer));
  }

  async signal(): Promise<void> {
    throw new Error('agents send signals by stopping tasks');
  }

  stop({ key }: TaskLocation, options: StopOptions): Promise<TaskExit> {
    return this.guard.request(this.agent, (answer) => {
      const process = this.machine.processes.get(key);
      if (process !== undefined) this.machine.stop(process, options);
      whenExited(process, answer);
    });
  }

  remove({ key }: TaskLocation): Promise<void> {
    return this.guard.request(this.agent, (answer) => {
      if (this.machine.processes.get(key)?.state.kind === 'running') {
        throw new Error(`task ${key} still runs: stop it before removing it`);
      }
      this.machine.processes.delete(key);
      answer();
    });
  }

  list(): Promise<readonly string[]> {
    return this.guard.request(this.agent, (answer) => {
      const mine = [...this.machine.processes].filter(([, process]) => process.driver === this.name);
      answer(mine.map(([key]) => key));
    });
  }

  async close(): Promise<void> {}
}

function whenExited(process: SimulatedProcess | undefined, answer: (exit: TaskExit) => void): void {
  if (process === undefined) answer(lostExit);
  else if (process.state.kind === 'exited') answer(process.state.exit);
  else process.state.waiting.push(answer);
}
