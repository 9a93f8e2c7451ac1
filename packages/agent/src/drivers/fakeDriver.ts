/**
 * A driver without processes, for tests of what stands above the seam. A job turns its knobs through its environment:
 *
 *     FAKE_PREPARE_ERROR cause kind that `prepare` fails with
 *     FAKE_START_ERROR   cause kind that `start` fails with; nothing runs then
 *     FAKE_OUTPUT        what the task writes as soon as it runs
 *     FAKE_EXIT_CODE     ends at once with it; without it the task runs until a test, or a stop, ends it
 *
 * It outlives the agents of a test, as a guard does: give the same one to the next agent.
 */

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { untilAborted } from '@muster/common/async';
import { DriverError, LeaseExpired } from '../taskFacts/errors.ts';
import type {
  Lease,
  StopOptions,
  TaskExit,
  TaskLocation,
  TaskName,
  TaskObservation,
} from '../taskFacts/execution.ts';
import { statusLost } from './docker/taskExit.ts';
import type { TaskDriver, TaskLaunch } from './driver.ts';

type Method =
  | 'prepare'
  | 'start'
  | 'recover'
  | 'wait'
  | 'renew'
  | 'freeze'
  | 'thaw'
  | 'signal'
  | 'stop'
  | 'remove'
  | 'list';

interface FakeTask {
  readonly startedAtMs: number;
  exit: TaskExit | null;
  /** The second fence is armed with it; null: never fenced. */
  lease: Lease | null;
  frozen: boolean;
  readonly ended: PromiseWithResolvers<TaskExit>;
}

export function exited(exitCode: number): TaskExit {
  return { ...statusLost, exitCode, finishedAtMs: 2_000, statusLost: false };
}

function killedBy(signal: string): TaskExit {
  return { ...statusLost, signal, finishedAtMs: 2_000, statusLost: false };
}

export class FakeDriver implements TaskDriver {
  readonly name: 'process' | 'docker';
  /** Everything that was asked, in order: `start job_….1.0`, `stop job_….1.0 SIGTERM 5000`. */
  readonly calls: string[] = [];
  /** What came into being, in order; a key that is here twice ran twice. */
  readonly launches: TaskLaunch[] = [];
  private readonly tasks = new Map<TaskName, FakeTask>();
  private readonly errors = new Map<Method, { readonly error: Error; readonly when: 'before' | 'after' }>();
  private readonly gates = new Map<
    Method,
    { readonly open: Promise<void>; readonly when: 'before' | 'after' }
  >();

  private readonly boottimeMs: () => number;
  private processesSeen: () => readonly number[] | null = () => null;
  private readonly unfreezable = new Set<TaskName>();

  /** @param boottimeMs what `start` holds a lease against; without it no lease has run out */
  constructor(name: 'process' | 'docker' = 'process', boottimeMs: () => number = () => 0) {
    this.name = name;
    this.boottimeMs = boottimeMs;
  }

  /** Every call of `method` fails: before it has an effect, or after, with only its answer lost. */
  fail(method: Method, when: 'before' | 'after', error = new Error(`the fake ${this.name} is away`)): void {
    this.errors.set(method, { error, when });
  }

  /** Ends what `fail` began. */
  mend(method: Method): void {
    this.errors.delete(method);
  }

  /** Calls of `method` wait, before they take effect or before they answer, until the returned function runs. */
  hold(method: Method, when: 'before' | 'after' = 'before'): () => void {
    const { promise: open, resolve } = Promise.withResolvers<void>();
    this.gates.set(method, { open, when });
    return () => {
      this.gates.delete(method);
      resolve();
    };
  }

  isRunning(key: TaskName): boolean {
    return this.tasks.get(key)?.exit === null;
  }

  isFrozen(key: TaskName): boolean {
    return this.tasks.get(key)?.frozen === true;
  }

  /** What the second fence would hold; undefined: there is no such task. */
  leaseOf(key: TaskName): Lease | null | undefined {
    return this.tasks.get(key)?.lease;
  }

  /** `freeze` kills this task, as one that does not freeze in time. */
  refuseToFreeze(key: TaskName): void {
    this.unfreezable.add(key);
  }

  /** As the second fence does at the deadline, without this agent. */
  freezeFromOutside(key: TaskName): void {
    const task = this.tasks.get(key);
    if (task === undefined || task.exit !== null) throw new Error(`no task ${key} runs`);
    task.frozen = true;
  }

  /** The task ends by itself. */
  end(key: TaskName, exit: TaskExit): void {
    const task = this.tasks.get(key);
    if (task === undefined || task.exit !== null) throw new Error(`no task ${key} runs`);
    task.exit = exit;
    task.frozen = false;
    task.ended.resolve(exit);
  }

  /** As after a power cut: nothing runs, and nobody knows of anything. */
  loseAll(): void {
    this.tasks.clear();
  }

  /** A task that runs, as if an earlier agent had started it. */
  addRunning(key: TaskName, lease: Lease | null = null): void {
    const ended = Promise.withResolvers<TaskExit>();
    this.tasks.set(key, { startedAtMs: 1_000, exit: null, lease, frozen: false, ended });
  }

  prepare(launch: TaskLaunch, onDoing: (what: string) => void, abort?: AbortSignal): Promise<void> {
    onDoing(`prepares ${launch.key}`);
    const act = () => {
      const { FAKE_PREPARE_ERROR: prepareError } = launch.env;
      if (prepareError !== undefined) throw new DriverError(prepareError, 'it could not be prepared');
    };
    return this.asked('prepare', launch.key, act, abort);
  }

  start(launch: TaskLaunch, abort?: AbortSignal): Promise<void> {
    const act = () => {
      const { FAKE_START_ERROR: startError, FAKE_OUTPUT: output, FAKE_EXIT_CODE: exitCode } = launch.env;
      if (this.tasks.has(launch.key)) return;
      if (launch.lease !== null && launch.lease.deadlineBoottimeMs <= this.boottimeMs()) {
        throw new LeaseExpired(`the lease of task ${launch.key} has run out`);
      }
      if (startError !== undefined) throw new DriverError(startError, 'it could not be started');
      this.launches.push(launch);
      this.addRunning(launch.key, launch.lease);
      if (output !== undefined) appendFileSync(join(launch.directory, 'output.log'), output);
      if (exitCode !== undefined) this.end(launch.key, exited(Number(exitCode)));
    };
    return this.asked('start', launch.key, act, abort);
  }

  recover({ key }: TaskLocation): Promise<TaskObservation> {
    return this.asked('recover', key, () => {
      const task = this.tasks.get(key);
      if (task === undefined) return { kind: 'absent' };
      if (task.exit !== null) return { kind: 'exited', exit: task.exit };
      return { kind: 'running', pid: 1, startedAtMs: task.startedAtMs, frozen: task.frozen };
    });
  }

  async wait({ key }: TaskLocation, abort: AbortSignal): Promise<TaskExit> {
    const ended = await this.asked('wait', key, () => this.tasks.get(key)?.ended ?? null);
    if (ended === null) return statusLost;
    return untilAborted(ended.promise, abort);
  }

  renew({ key }: TaskLocation, lease: Lease | null): Promise<void> {
    return this.asked('renew', `${key} ${lease?.deadlineBoottimeMs ?? 'never'}`, () => {
      const task = this.tasks.get(key);
      if (task === undefined || task.exit !== null) return;
      const isLater = (lease?.deadlineBoottimeMs ?? Infinity) >= (task.lease?.deadlineBoottimeMs ?? 0);
      if (isLater) task.lease = lease;
    });
  }

  freeze({ key }: TaskLocation): Promise<'frozen' | 'killed' | 'ended'> {
    return this.asked('freeze', key, () => {
      const task = this.tasks.get(key);
      if (task === undefined || task.exit !== null) return 'ended';
      if (this.unfreezable.has(key)) {
        this.end(key, killedBy('SIGKILL'));
        return 'killed';
      }
      task.frozen = true;
      return 'frozen';
    });
  }

  processes(): readonly number[] | null {
    return this.processesSeen();
  }

  /** What `processes` shows from now on. */
  seeProcesses(look: () => readonly number[] | null): void {
    this.processesSeen = look;
  }

  thaw({ key }: TaskLocation): Promise<void> {
    return this.asked('thaw', key, () => {
      const task = this.tasks.get(key);
      if (task !== undefined) task.frozen = false;
    });
  }

  async signal({ key }: TaskLocation, signal: string): Promise<void> {
    await this.asked('signal', `${key} ${signal}`, () => {});
  }

  stop({ key }: TaskLocation, { signal, graceMs }: StopOptions): Promise<TaskExit> {
    return this.asked('stop', `${key} ${signal} ${graceMs}`, () => {
      const task = this.tasks.get(key);
      if (task?.exit === null) this.end(key, killedBy(signal));
      return task?.exit ?? statusLost;
    });
  }

  remove({ key }: TaskLocation): Promise<void> {
    return this.asked('remove', key, () => {
      if (this.isRunning(key)) throw new Error(`task ${key} still runs`);
      this.tasks.delete(key);
    });
  }

  list(): Promise<readonly TaskName[]> {
    return this.asked('list', '', () => [...this.tasks.keys()]);
  }

  async close(): Promise<void> {
    // The same one serves the next agent of the test.
  }

  /** @param abort as long as the call has had no effect */
  private async asked<T>(method: Method, what: string, act: () => T, abort?: AbortSignal): Promise<T> {
    this.calls.push(`${method} ${what}`.trim());
    const gate = this.gates.get(method);
    const isHeld = gate?.when === 'before' ? gate.open : Promise.resolve();
    await (abort === undefined ? isHeld : untilAborted(isHeld, abort));
    const failure = this.errors.get(method);
    if (failure?.when === 'before') throw failure.error;
    const answer = act();
    if (gate?.when === 'after') await gate.open;
    if (failure !== undefined) throw failure.error;
    return answer;
  }
}
