/**
 * Carries out the effects that `step` gives for one task, and posts what comes of them as events.
 */

import { messageOf } from '@muster/common/errors';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { TaskDriver } from '../drivers/driver.ts';
import type { StopOptions, TaskLocation, TaskObservation } from '../taskFacts/execution.ts';
import { concludeTask, stopTask } from './ending.ts';
import type { TaskEvent } from './events.ts';
import type { ExitOfTask, TaskContext, TaskHook } from './hooks.ts';
import type { TaskState } from './state.ts';
import type { RunnerParts, RunnerShared } from './work.ts';

const lookAgainMs = 1_000;

/** The runner of the task, to its effects. */
interface EffectsOwner {
  readonly state: TaskState;
  post(event: TaskEvent): void;
}

type Timer = 'pause' | 'grace' | 'look';

export class TaskEffects {
  private readonly shared: RunnerShared;
  private readonly parts: RunnerParts;
  private readonly hooks: readonly TaskHook[];
  private readonly owner: EffectsOwner;
  private readonly task: TaskRef;
  private readonly location: TaskLocation;
  /** The driver that knew of a task without a record. */
  private foundBy: TaskDriver['name'] = 'process';
  private readonly timers = new Map<Timer, NodeJS.Timeout>();

  constructor(shared: RunnerShared, task: TaskRef, owner: EffectsOwner) {
    this.shared = shared;
    this.parts = shared.parts;
    this.hooks = shared.hooks;
    this.owner = owner;
    this.task = task;
    this.location = { key: taskKey(task), directory: shared.parts.records.directory(task) };
  }

  /** Adopts a task that runs and has no record here. */
  adopt(driver: TaskDriver['name'], observed: TaskObservation): void {
    this.foundBy = driver;
    this.owner.post({ kind: 'examined', observed, isSameBoot: false });
  }

  /**
   * Finds out what became of a task of an earlier agent. A driver that cannot answer now, because its engine is away, does
   * not keep the agent from its other tasks.
   */
  async find(recordedBootId: string): Promise<void> {
    const { driver, location } = this.context();
    try {
      const observed = await driver.recover(location);
      this.owner.post({ kind: 'examined', observed, isSameBoot: recordedBootId === this.parts.bootId });
    } catch (error) {
      this.warn(messageOf(error), 'a task cannot be seen yet');
      this.owner.post({ kind: 'unseen' });
    }
  }

  /** Signal, grace, kill. @returns when no process of the task is left */
  stopDriver(options: StopOptions) {
    const { closing, parts } = this.shared;
    return stopTask(this.context(), options, { closing, log: parts.log });
  }

  endTimer(name: Timer): void {
    clearTimeout(this.timers.get(name));
    this.timers.delete(name);
  }

  close(): void {
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
  }

  announce(port: number | null): void {
    const { task, parts } = this;
    const network = this.owner.state.assignment?.spec.network ?? null;
    parts.send({
      kind: 'prepared',
      task,
      master: task.nodeRank === 0 && port !== null ? { addr: parts.address, port } : null,
      endpoints: parts.rendezvous.endpoints(network),
      testPort: port,
    });
  }

  follow(how: 'started' | 'found' | 'frozen' | 'unseen'): void {
    const { life } = this.owner.state;
    const startedAtMs = life.kind === 'running' ? life.startedAtMs : null;
    const context = this.context();
    for (const hook of this.hooks) hook.followed?.(context, how, startedAtMs);
    if (startedAtMs !== null) void this.awaitExit();
  }

  private async awaitExit(): Promise<void> {
    const { driver, location } = this.context();
    try {
      const exit = await driver.wait(location, this.shared.closing);
      this.owner.post({ kind: 'exited', exit });
    } catch (error) {
      if (this.shared.closing.aborted || this.owner.state.life.kind !== 'running') return;
      this.warn(messageOf(error), 'lost sight of a task; looking again');
      this.timer('look', lookAgainMs, () => {
        if (this.owner.state.life.kind === 'running') void this.awaitExit();
      });
    }
  }

  kill(): void {
    const { driver, location } = this.context();
    driver.stop(location, { signal: 'SIGKILL', graceMs: 0 }).catch((error: unknown) => {
      // The stop is repeated as soon as its present call has come to an end.
      this.warn(messageOf(error), 'the grace of a task could not be ended');
    });
  }

  conclude({ exit, isStopping }: Pick<ExitOfTask, 'exit' | 'isStopping'>): void {
    const { life } = this.owner.state;
    const startedAtMs = life.kind === 'ending' ? life.startedAtMs : this.parts.wallMs();
    const onUnknown = (error: unknown) => {
      const fields = { task: this.location.key, error: messageOf(error) };
      if (!this.shared.closing.aborted) this.parts.log.error(fields, 'the end of a task is not fully known');
    };
    void concludeTask(this.hooks, this.context(), { startedAtMs, exit, isStopping }, onUnknown).then(
      (end) => {
        if (!this.shared.closing.aborted) this.owner.post({ kind: 'ended', end });
      },
    );
  }

  timer(name: Timer, ms: number, act: () => void): void {
    this.endTimer(name);
    this.timers.set(name, setTimeout(act, ms));
  }

  private warn(error: string, message: string, fields: object = {}): void {
    this.parts.log.warn({ task: this.location.key, error, ...fields }, message);
  }

  context(): TaskContext {
    const { task, location } = this;
    const { assignment } = this.owner.state;
    const { drivers, records } = this.parts;
    const name = assignment === null ? this.foundBy : assignment.spec.image === null ? 'process' : 'docker';
    return { task, assignment, location, outputPath: records.outputPath(task), driver: drivers[name] };
  }
}
