/**
 * Carries out the effects that `step` gives for one task. What takes its time is work: its result, and what comes of
 * everything else, is posted as an event.
 */

import { causeOf, nothingRan } from '@muster/common/cause';
import { messageOf } from '@muster/common/errors';
import { type TaskRef, taskKey } from '@muster/common/ids';
import { isCauseKind } from '@muster/common/spec/causes';
import type { TaskDriver } from '../drivers/driver.ts';
import { DriverError, LeaseExpired } from '../taskFacts/errors.ts';
import type { StopOptions, TaskLocation, TaskObservation } from '../taskFacts/execution.ts';
import { concludeTask, stopTask } from './ending.ts';
import type { Effect, TaskEvent } from './events.ts';
import type { AssignedTask, ExitOfTask, HookParts, TaskContext, TaskHook } from './hooks.ts';
import { launchOf, writeLaunchFiles } from './launch.ts';
import type { TaskMessage } from './messages.ts';
import { kindOfFileError, NotReady } from './notReady.ts';
import { recordPhase, type TaskRecords } from './records.ts';
import type { Order, StartOrder, TaskState } from './state.ts';

const lookAgainMs = 1_000;

export interface RunnerParts extends HookParts {
  readonly drivers: Readonly<Record<TaskDriver['name'], TaskDriver>>;
  readonly records: Pick<TaskRecords, keyof TaskRecords>;
  readonly bootId: string;
  /** The address that rank 0 on this node is reached at. */
  readonly address: string;
  readonly wallMs: () => number;
  /** CLOCK_BOOTTIME. */
  readonly boottimeMs: () => number;
  /** Sends a message, or drops it while there is no connection: the next Hello says it. */
  readonly send: (message: TaskMessage) => void;
}

/** What all tasks of a node share. */
export interface RunnerShared {
  readonly parts: RunnerParts;
  readonly hooks: readonly TaskHook[];
  readonly portOf: (task: TaskRef) => number | null;
  /** Aborts when the agent closes. Tasks run on. */
  readonly closing: AbortSignal;
  /** Nothing is left of the task. */
  readonly onRemoved: (task: TaskState) => void;
}

/** The runner of the task, to its effects. */
interface EffectsOwner {
  readonly state: TaskState;
  post(event: TaskEvent): void;
  sendReport(): void;
}

type Timer = 'pause' | 'grace' | 'look';

/** What has come of work that did not come to its end. */
class WorkOutcome extends Error {
  readonly event: TaskEvent;

  constructor(event: TaskEvent) {
    super(event.kind);
    this.event = event;
  }
}

export class TaskEffects {
  private readonly shared: RunnerShared;
  private readonly parts: RunnerParts;
  private readonly hooks: readonly TaskHook[];
  private readonly owner: EffectsOwner;
  private readonly task: TaskRef;
  private readonly location: TaskLocation;
  /** The driver that knew of a task without a record. */
  private foundBy: TaskDriver['name'] = 'process';
  private workAbort: AbortController | null = null;
  /** The work that began last is given up when the agent closes. */
  private endsWithAgent = false;
  private readonly timers = new Map<Timer, NodeJS.Timeout>();

  constructor(shared: RunnerShared, task: TaskRef, owner: EffectsOwner) {
    this.shared = shared;
    this.parts = shared.parts;
    this.hooks = shared.hooks;
    this.owner = owner;
    this.task = task;
    this.location = { key: taskKey(task), directory: shared.parts.records.directory(task) };
  }

  carryOut(effect: Effect): void {
    switch (effect.kind) {
      case 'prepare':
        return this.work((abort) => this.prepare(abort), true);
      case 'check':
        return this.work((abort) => this.check(effect.order, abort), true);
      case 'start':
        return this.work((abort) => this.start(effect.order, abort));
      case 'examine':
        return this.work(() => this.examine());
      case 'stop':
        return this.work(() => this.stop(effect.options));
      case 'remove':
        return this.work(() => this.remove());
      case 'cancel':
        return this.workAbort?.abort(new WorkOutcome({ kind: 'cancelled' }));
      case 'kill':
        return this.kill();
      case 'follow':
        return this.follow(effect.how);
      case 'conclude':
        return this.conclude(effect);
      case 'hurry':
        for (const hook of this.hooks) hook.hurried?.(this.context(), effect.graceMs);
        return;
      case 'close':
        for (const hook of this.hooks.toReversed()) hook.ended?.(this.context());
        if (this.parts.records.outputSize(this.task) === 0) this.owner.post({ kind: 'uploaded' });
        return;
      case 'record':
        if (this.owner.state.assignment !== null) recordPhase(this.parts, this.task, effect.phase);
        return;
      case 'announce':
        return this.announce(effect.port);
      case 'sendFindings':
        return this.parts.send({ kind: 'checked', task: this.task, findings: effect.findings });
      case 'report':
        return this.owner.sendReport();
      case 'pause':
        this.warn(effect.message, 'work on a task has failed', { retryInMs: effect.ms });
        return this.timer('pause', effect.ms, () => this.owner.post({ kind: 'pauseOver' }));
      case 'grace':
        return this.timer('grace', effect.ms, () => this.owner.post({ kind: 'graceOver' }));
      default: {
        const never: never = effect;
        return never;
      }
    }
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

  /** The earlier agent may not have reported the end, nor what else is known of it. @param startedAtMs null: nothing ran */
  async recall(startedAtMs: number | null): Promise<void> {
    if (startedAtMs === null) return;
    for (const hook of this.hooks) await hook.recalled?.(this.context(), startedAtMs);
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
    if (this.endsWithAgent) this.workAbort?.abort(this.shared.closing.reason);
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
  }

  /**
   * Begins work, whose result is an event. What fails is tried again, unless the agent closes.
   * @param endsWithAgent nothing runs yet, so the work is given up when the agent closes
   */
  private work(act: (abort: AbortSignal) => Promise<TaskEvent>, endsWithAgent = false): void {
    const abort = new AbortController();
    this.workAbort = abort;
    this.endsWithAgent = endsWithAgent;
    act(abort.signal)
      .catch((error: unknown): TaskEvent => {
        if (error instanceof WorkOutcome) return error.event;
        return { kind: 'failed', message: messageOf(error), mayRun: false };
      })
      .then((event) => this.owner.post(event))
      .catch((error: unknown) =>
        this.parts.log.error({ error: messageOf(error) }, 'a task could not take an event'),
      );
  }

  /** @throws the reason of `abort`, and what may pass */
  private async prepare(abort: AbortSignal): Promise<TaskEvent> {
    const { life } = this.owner.state;
    const task = assigned(this.context());
    try {
      // The intent comes first, on disk: whatever goes wrong from here on has a place to be noted.
      if (life.kind === 'unrecorded') await this.recordIntent(task);
      abort.throwIfAborted();
      const onDoing = (text: string) => this.owner.post({ kind: 'doing', text });
      for (const hook of this.hooks) {
        await hook.prepare?.(task, onDoing, abort);
        abort.throwIfAborted();
      }
      return { kind: 'prepared', port: this.shared.portOf(this.task) };
    } catch (error) {
      return this.unstarted(error);
    }
  }

  private async recordIntent({ assignment }: AssignedTask): Promise<void> {
    const { records, bootId } = this.parts;
    await records.create({ assignment, bootId, phase: { kind: 'assigned' } }).catch((error: unknown) => {
      const message = `no task directory: ${messageOf(error)}`;
      throw new NotReady(kindOfFileError(error), message, { cause: error });
    });
    this.owner.post({ kind: 'recorded' });
  }

  private announce(port: number | null): void {
    const { task, parts } = this;
    parts.send({
      kind: 'prepared',
      task,
      master: task.nodeRank === 0 && port !== null ? { addr: parts.address, port } : null,
      endpoints: parts.rendezvous.endpoints(this.owner.state.assignment?.spec.network ?? null),
      testPort: port,
      look: parts.checkpoints.lookOf(task),
    });
  }

  /** @throws the reason of `abort` */
  private async check({ check }: Extract<Order, { kind: 'check' }>, abort: AbortSignal): Promise<TaskEvent> {
    const task = assigned(this.context());
    const { node, checkpointDirs, rendezvous } = this.parts;
    const { addresses, preflight } = check;
    // What is measured has the job's environment and a rendezvous of its own. It has no lease, because it is not the task.
    const release = preflight === null ? null : { ...preflight.master, addresses, lease: null };
    const launch = launchOf(node, checkpointDirs, task, release);
    const findings = await rendezvous.check(task.task, launch, check, abort);
    // What was found while the check was being given up tells nothing about the paths.
    abort.throwIfAborted();
    return { kind: 'checked', findings };
  }

  /** @throws {LeaseExpired} and what failed before the driver was asked: nothing runs then */
  private async start({ addr, port, addresses }: StartOrder, abort: AbortSignal): Promise<TaskEvent> {
    const task = assigned(this.context());
    const { node, checkpointDirs, leases } = this.parts;
    let isAsked = false;
    try {
      for (const hook of this.hooks) await hook.starting?.(task);
      abort.throwIfAborted();
      const release = { addr, port, addresses, lease: leases.leaseOf(task.task) };
      await writeLaunchFiles(node, task.location, task.assignment, release);
      const launch = launchOf(node, checkpointDirs, task, release);
      isAsked = true;
      await task.driver.start(launch, abort);
      return { kind: 'started' };
    } catch (error) {
      const isRefused =
        error instanceof LeaseExpired || error instanceof DriverError || error instanceof WorkOutcome;
      if (isAsked && !isRefused) return unanswered(error);
      for (const hook of this.hooks) hook.notStarted?.(task);
      return this.unstarted(error);
    }
  }

  /** The end of a task that could not be prepared or started. @throws what may pass, and everything while the agent closes */
  private unstarted(error: unknown): TaskEvent {
    // A driver that is being closed may give up. That is no end of the task.
    if (this.shared.closing.aborted || !(error instanceof NotReady || error instanceof DriverError))
      throw error;
    const given = error instanceof NotReady ? error.kind : error.causeKind;
    const kind = isCauseKind(given) ? given : 'unknown';
    const { task, parts } = this;
    const startError = causeOf(kind, error.message, { nodeRank: task.nodeRank, node: parts.nodeName });
    return { kind: 'ended', end: { ...nothingRan, startError, logBytes: parts.records.outputSize(task) } };
  }

  private follow(how: 'started' | 'found' | 'frozen' | 'unseen'): void {
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

  /** The drivers know what is true of a task that has no record, or whose start was not answered. */
  private async examine(): Promise<TaskEvent> {
    const { parts } = this;
    const { life } = this.owner.state;
    const { driver, location, assignment } = this.context();
    if (life.kind === 'unrecorded') {
      if (assignment === null) return { kind: 'ended', end: { ...nothingRan, statusLost: true } };
      // On disk the task counts as running before a driver has answered: the next agent must not start it.
      const moment = { startedAtMs: parts.wallMs(), startedBoottimeMs: parts.boottimeMs() };
      await parts.records.create({ assignment, bootId: parts.bootId, phase: { kind: 'running', ...moment } });
    }
    const observed = await driver.recover(location).catch((error: unknown) => {
      throw life.kind === 'starting' ? new WorkOutcome(unanswered(error)) : error;
    });
    return { kind: 'examined', observed, isSameBoot: true };
  }

  private async stop(options: StopOptions): Promise<TaskEvent> {
    const context = this.context();
    const waits = this.hooks.flatMap((hook) => hook.stopping?.(context, options.graceMs) ?? []);
    // Without a wait the signal is sent now, before anything else can be ordered.
    if (waits.length > 0) await Promise.all(waits);
    try {
      return { kind: 'stopped', exit: await this.stopDriver(options) };
    } catch (error) {
      for (const hook of this.hooks) hook.notStopped?.(context);
      throw error;
    }
  }

  private kill(): void {
    const { driver, location } = this.context();
    driver.stop(location, { signal: 'SIGKILL', graceMs: 0 }).catch((error: unknown) => {
      // The stop is repeated as soon as its present call has come to an end.
      this.warn(messageOf(error), 'the grace of a task could not be ended');
    });
  }

  private conclude({ exit, isStopping }: Pick<ExitOfTask, 'exit' | 'isStopping'>): void {
    const { life } = this.owner.state;
    const startedAtMs = life.kind === 'ending' ? life.startedAtMs : this.parts.wallMs();
    const onUnknown = (error: unknown) => {
      const fields = { task: this.location.key, error: messageOf(error) };
      if (!this.shared.closing.aborted) this.parts.log.error(fields, 'the end of a task is not fully known');
    };
    const onDoing = (text: string) => this.owner.post({ kind: 'doing', text });
    const of = { startedAtMs, exit, isStopping };
    void concludeTask(this.hooks, this.context(), of, { onUnknown, onDoing }).then((end) => {
      if (!this.shared.closing.aborted) this.owner.post({ kind: 'ended', end });
    });
  }

  private async remove(): Promise<TaskEvent> {
    const context = this.context();
    for (const hook of this.hooks.toReversed()) await hook.removed?.(context);
    await this.parts.records.remove(this.task);
    return { kind: 'removed' };
  }

  private timer(name: Timer, ms: number, act: () => void): void {
    this.endTimer(name);
    this.timers.set(name, setTimeout(act, ms));
  }

  private warn(error: string, message: string, fields: object = {}): void {
    this.parts.log.warn({ task: this.location.key, error, ...fields }, message);
  }

  private context(): TaskContext {
    const { task, location } = this;
    const { assignment } = this.owner.state;
    const { drivers, records } = this.parts;
    const name = assignment === null ? this.foundBy : assignment.spec.image === null ? 'process' : 'docker';
    return { task, assignment, location, outputPath: records.outputPath(task), driver: drivers[name] };
  }
}

/** The driver was asked to start the task and has not answered: the task may be running. */
function unanswered(error: unknown): TaskEvent {
  return { kind: 'failed', message: messageOf(error), mayRun: true };
}

function assigned(context: TaskContext): AssignedTask {
  const { assignment } = context;
  if (assignment === null) throw new Error('the coordinator has not sent which job this task belongs to');
  return { ...context, assignment };
}
