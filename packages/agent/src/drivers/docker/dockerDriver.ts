/**
 * Runs tasks as containers of the Docker engine on this machine.
 *
 * The engine is the memory: a task is found again by the name and labels of its container, its exit status is the
 * container's, and nothing about it lives in the agent. The container is the task's process tree: the kernel kills all of
 * it with its first process.
 *
 * A signal reaches the first process of the container, through the engine's init; what that one started hears of it from
 * there, or is killed when it ends.
 *
 * A stop whose grace the agent's death interrupts is finished by nobody: the next agent finds the task running and still
 * not wanted, and stops it again; its lease, which the guard holds, ends before long.
 *
 * Freezing, thawing and the last SIGKILL go to the container's control group and not through the engine, which may hang
 * (containerFences.ts).
 */

import { setTimeout as delay } from 'node:timers/promises';
import { untilAborted } from '@muster/common/async';
import type { Logger } from '@muster/common/log';
import { backoffMs } from '@muster/common/retry';
import { boottimeMs } from '../../probes/boot.ts';
import { engineState } from '../../probes/engine.ts';
import { DriverError, LeaseExpired } from '../../taskFacts/errors.ts';
import type {
  Lease,
  StopOptions,
  TaskExit,
  TaskLocation,
  TaskName,
  TaskObservation,
} from '../../taskFacts/execution.ts';
import type { Fence, TaskDriver, TaskLaunch } from '../driver.ts';
import { stopPastHelper } from '../helperStop.ts';
import { ContainerFences } from './containerFences.ts';
import type { ContainerPolicy } from './containerPolicy.ts';
import { type ContainerIdentity, containerName, labels } from './containerSpec.ts';
import { ContainerStart } from './containerStart.ts';
import { Engine } from './engine.ts';
import type { Container } from './engineAnswers.ts';
import { EngineError } from './engineHttp.ts';
import { explained, explainStart, nameTaken } from './startErrors.ts';
import { exitOf, observationOf, statusLost } from './taskExit.ts';
import { TaskOutputs } from './taskOutputs.ts';

export interface DockerDriverOptions extends ContainerIdentity {
  readonly socketPath: string;
  /** Of the agent: no container gets to see it. */
  readonly dataDir: string;
  readonly policy: ContainerPolicy;
  /** What holds the tasks' leases without this agent. Its opener closes it. */
  readonly fence: Fence;
  readonly log: Logger;
}

/** Nothing is asked of the engine before the first call; it may come and go at any time. */
export function createDockerDriver(options: DockerDriverOptions): TaskDriver {
  return new DockerDriver(options);
}

/**
 * A second agent process may start the same task at the same moment, around an upgrade. The engine then knows the name
 * before it shows the container; with the delays between the tries it has ten seconds to do so.
 */
const startTriesMax = 8;
const retryPolicy = { initialMs: 100, maxMs: 5_000 };
const exitOfSigkill = 137;
const oomLooks = 10;
const oomLookMs = 100;
/** For the rest of the output of a task that is found ended. */
const outputMs = 3_000;
/** Long enough for an init with the least share of a CPU that the engine allows, 1 %. */
const initLooks = 500;
const initLookMs = 10;

const never = new AbortController().signal;

class DockerDriver implements TaskDriver {
  readonly name = 'docker';
  private readonly engine: Engine;
  private readonly agentId: string;
  private readonly bootId: string;
  private readonly log: Logger;
  private readonly containerStart: ContainerStart;
  private readonly outputs: TaskOutputs;
  private readonly fences: ContainerFences;
  /** In the grace of a stop: a lease that comes now lets a frozen task run to its end. */
  private readonly saving = new Set<TaskName>();
  /** Signals of stops that the engine has passed on. */
  private readonly signalled = new Map<TaskName, string>();
  /** Tasks that this driver has sent SIGKILL. */
  private readonly killed = new Set<TaskName>();
  private readonly starts = new Map<TaskName, Promise<void>>();
  /** CLOCK_BOOTTIME of ends that happened before our eyes; the first look counts. */
  private readonly ends = new Map<TaskName, number>();
  private readonly closing = new AbortController();

  constructor({ socketPath, agentId, bootId, dataDir, policy, fence, log }: DockerDriverOptions) {
    this.engine = new Engine(socketPath);
    this.agentId = agentId;
    this.bootId = bootId;
    this.log = log;
    this.fences = new ContainerFences({ fence, bootId, boottimeMs, log });
    const mounts = { policy, dataDir, dockerSocket: socketPath, fence };
    const startOptions = { agentId, bootId, policy, mounts, accounts: fence, fences: this.fences, log };
    this.containerStart = new ContainerStart(this.engine, startOptions);
    this.outputs = new TaskOutputs(this.engine, log);
  }

  async prepare(
    launch: TaskLaunch,
    onDoing: (what: string) => void,
    abort: AbortSignal = never,
  ): Promise<void> {
    abort.throwIfAborted();
    try {
      await this.containerStart.prepare(launch, onDoing, abort);
    } catch (error) {
      if (abort.aborted && error === abort.reason) throw error;
      throw explainStart(error, launch);
    }
  }

  start(launch: TaskLaunch, abort: AbortSignal = never): Promise<void> {
    const inFlight = this.starts.get(launch.key);
    if (inFlight !== undefined) return inFlight;
    const start = this.startTask(launch, abort).finally(() => this.starts.delete(launch.key));
    this.starts.set(launch.key, start);
    return start;
  }

  async recover(task: TaskLocation): Promise<TaskObservation> {
    return explained(async () => {
      const container = await this.find(task.key);
      if (container?.phase === 'running') {
        this.outputs.follow(container, task);
        this.fences.learn(task, container);
      }
      if (container?.phase === 'ended') {
        // Hello waits for this. Whoever then waits for the end of the task gets all of its output.
        await untilAborted(this.outputs.complete(container, task), AbortSignal.timeout(outputMs));
      }
      // The kernel has the word: what the engine calls paused may have been thawed past it.
      const knows = this.fences.knows(task);
      const frozen = knows ? this.fences.isFrozen(task) : container?.isPaused === true;
      return observationOf(container, this.bootId, frozen);
    });
  }

  async wait(task: TaskLocation, abort: AbortSignal): Promise<TaskExit> {
    const signal = AbortSignal.any([abort, this.closing.signal]);
    for (let failures = 0; ; ) {
      signal.throwIfAborted();
      try {
        const container = await this.find(task.key);
        if (container === null || container.phase === 'created') return statusLost;
        if (container.phase === 'ended') {
          await untilAborted(this.outputs.complete(container, task), signal);
          const finishedBoottimeMs = this.ends.get(task.key);
          const exit = exitOf(await this.withOomReport(container, task, signal), this.bootId);
          return finishedBoottimeMs === undefined ? exit : { ...exit, finishedBoottimeMs };
        }
        this.outputs.follow(container, task);
        await this.engine.waitForEnd(container.id, signal);
        if (!this.ends.has(task.key)) this.ends.set(task.key, boottimeMs());
        failures = 0;
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof EngineError)) throw error;
        // The engine restarts, or is being upgraded; the task may well run on.
        failures++;
        const fields = { task: task.key, error: error.message, failures };
        const level = failures === 1 ? 'warn' : 'debug';
        this.log[level](fields, 'the container engine does not report the state of a task; asking again');
        await delay(backoffMs(retryPolicy, failures), undefined, { signal }).catch(() =>
          signal.throwIfAborted(),
        );
      }
    }
  }

  /**
   * The engine learns of an exit and of a kill for lack of memory in two ways, and may report the exit first. An end by
   * SIGKILL that this driver did not ask for, below a memory limit, is therefore looked at again for up to a second.
   */
  private async withOomReport(
    container: Container,
    task: TaskLocation,
    signal: AbortSignal,
  ): Promise<Container> {
    let latest = container;
    if (!container.hasMemoryLimit || container.exitCode !== exitOfSigkill || this.killed.has(task.key))
      return latest;
    for (let looks = 0; !latest.oomKilled && looks < oomLooks; looks++) {
      await delay(oomLookMs, undefined, { signal });
      latest = (await this.find(task.key)) ?? latest;
    }
    return latest;
  }

  async renew(task: TaskLocation, lease: Lease | null): Promise<void> {
    if (!this.fences.knows(task)) {
      const container = await explained(() => this.find(task.key));
      if (container?.phase !== 'running') return;
      this.fences.learn(task, container);
    }
    await this.fences.renew(task, lease);
    if (this.saving.has(task.key)) await this.fences.thawToSave(task);
  }

  freeze(task: TaskLocation): Promise<'frozen' | 'killed' | 'ended'> {
    return this.fences.freeze(task);
  }

  processes(task: TaskLocation): readonly number[] | null {
    return this.fences.processes(task);
  }

  thaw(task: TaskLocation): Promise<void> {
    return this.fences.thaw(task);
  }

  async signal(task: TaskLocation, signal: string): Promise<void> {
    await explained(async () => {
      const container = await this.find(task.key);
      if (container?.phase !== 'running') return;
      this.fences.learn(task, container);
      await this.sendSignal(task, container, signal);
    });
  }

  stop(task: TaskLocation, options: StopOptions): Promise<TaskExit> {
    return stopPastHelper({
      answer: this.stopByEngine(task, options),
      options,
      answers: async (deadlineMs) => (await engineState(this.engine.socketPath, deadlineMs)) === 'answers',
      groups: () => this.fences.groupsOf(task),
      signal: (name) => {
        if (this.signalled.get(task.key) !== name) this.fences.signalMain(task, name);
      },
      onTakeOver: () => {
        this.log.warn(
          { task: task.key },
          'the container engine does not answer: the agent stops a container directly',
        );
        this.killed.add(task.key);
      },
      monotonicMs: () => performance.now(),
    });
  }

  private async stopByEngine(task: TaskLocation, options: StopOptions): Promise<TaskExit> {
    await explained(async () => {
      const container = await this.find(task.key);
      if (container?.phase !== 'running') return;
      this.fences.learn(task, container);
      if (options.graceMs > 0 && (await this.endsBySignal(task, container, options))) return;
      // The engine refuses to end what is paused; where the control group was reached, that has not been its business.
      this.killed.add(task.key);
      const reachedAll = await this.fences.kill(task);
      if (!reachedAll && container.isPaused) await this.engine.unpauseContainer(container.id);
      await this.engine.killContainer(container.id, 'SIGKILL');
    });
    return this.wait(task, this.closing.signal);
  }

  async remove(task: TaskLocation): Promise<void> {
    await explained(async () => {
      const container = await this.find(task.key);
      if (container?.phase === 'running') {
        throw new DriverError(
          'unknown',
          `task ${task.key} still runs: it must be stopped before it is removed`,
        );
      }
      await this.outputs.forget(task.key);
      if (container !== null) await this.engine.removeContainer(container.id);
    });
    this.ends.delete(task.key);
    this.killed.delete(task.key);
    this.signalled.delete(task.key);
    await this.fences.forget(task);
  }

  async list(): Promise<readonly TaskName[]> {
    return explained(async () => {
      const found = await this.engine.listContainers(`${labels.agent}=${this.agentId}`);
      return found.map((each) => each[labels.task]).filter((key) => key !== undefined);
    });
  }

  async close(): Promise<void> {
    this.closing.abort(new Error('the Docker driver was closed'));
    this.fences.close();
    await this.outputs.close();
  }

  private async startTask(launch: TaskLaunch, abort: AbortSignal): Promise<void> {
    try {
      for (let tries = 1; ; tries++) {
        try {
          this.outputs.follow(await this.startOrAdopt(launch, abort), launch);
          return;
        } catch (error) {
          const wasOvertaken = error instanceof EngineError && (error.status === 404 || error.status === 409);
          if (!wasOvertaken || tries === startTriesMax) throw error;
          const pause = delay(backoffMs(retryPolicy, tries), undefined, { signal: this.closing.signal });
          await untilAborted(pause, abort);
        }
      }
    } catch (error) {
      if ((abort.aborted && error === abort.reason) || error instanceof LeaseExpired) throw error;
      // No answer is no verdict: the container may run, and the agent finds out once there is an engine to ask.
      if (error instanceof EngineError && error.status === null) throw error;
      throw explainStart(error, launch);
    }
  }

  private async startOrAdopt(launch: TaskLaunch, abort: AbortSignal): Promise<Container> {
    const found = await untilAborted(this.engine.inspectContainer(containerName(launch.key)), abort);
    if (found !== null && !this.isOurs(found, launch.key)) throw nameTaken(launch.key);
    if (found !== null && found.phase !== 'created') {
      await this.renewFound(launch, found);
      return found;
    }
    return this.containerStart.run(launch, found, abort);
  }

  /** It runs whether or not the guard answers, so that is no failure of the start: the next renewal arms it. */
  private async renewFound(launch: TaskLaunch, found: Container): Promise<void> {
    if (found.phase !== 'running') return;
    try {
      this.fences.learn(launch, found);
      await this.fences.renew(launch, launch.lease);
    } catch (error) {
      this.log.warn({ task: launch.key, error: String(error) }, 'the lease of a container is not armed yet');
    }
  }

  /** null also when the name belongs to a container of somebody else. */
  private async find(key: TaskName): Promise<Container | null> {
    const container = await this.engine.inspectContainer(containerName(key));
    return container !== null && this.isOurs(container, key) ? container : null;
  }

  private isOurs(container: Container, key: TaskName): boolean {
    return container.labels[labels.task] === key && container.labels[labels.agent] === this.agentId;
  }

  private async endsBySignal(task: TaskLocation, container: Container, { signal, graceMs }: StopOptions) {
    const { id, isPaused } = container;
    this.saving.add(task.key);
    try {
      if (isPaused && this.fences.mayRun(task)) await this.engine.unpauseContainer(id);
      // The signal waits in a frozen container, and is the first that it sees.
      await this.sendSignal(task, container, signal);
      this.signalled.set(task.key, signal);
      await this.fences.thawToSave(task);
      return await this.endsWithin(id, graceMs);
    } finally {
      this.saving.delete(task.key);
    }
  }

  private async sendSignal(task: TaskLocation, container: Container, signal: string): Promise<void> {
    if (container.hasInit) await this.untilInitForwards(task);
    await this.engine.killContainer(container.id, signal);
  }

  /**
   * The kernel drops signals for PID 1 of a container that it has neither blocked nor given a handler
   * (pid_namespaces(7)). The init blocks them before it starts the task's program, so a second process in the container
   * shows that none is lost. A frozen init starts nothing.
   */
  private async untilInitForwards(task: TaskLocation): Promise<void> {
    for (let looks = 0; looks < initLooks; looks++) {
      const isAlone = this.fences.processes(task)?.length === 1;
      if (!isAlone || this.fences.isFrozen(task)) return;
      await delay(initLookMs, undefined, { signal: this.closing.signal });
    }
  }

  private async endsWithin(id: string, graceMs: number): Promise<boolean> {
    const grace = AbortSignal.any([AbortSignal.timeout(graceMs), this.closing.signal]);
    while (!grace.aborted) {
      try {
        await this.engine.waitForEnd(id, grace);
        return true;
      } catch (error) {
        // An engine that restarts within the grace must not cost the task the rest of it.
        if (!(error instanceof EngineError) && !grace.aborted) throw error;
        await delay(retryPolicy.initialMs, undefined, { signal: grace }).catch(() => null);
      }
    }
    this.closing.signal.throwIfAborted();
    return false;
  }
}
