/**
 * Carries out what `step` says of one task: keeps its state, takes its events one after the other, and returns the result of
 * each effect as an event. Nothing here survives the agent, and nothing has to.
 */

import { nothingRan } from '@muster/common/cause';
import { messageOf } from '@muster/common/errors';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { TaskReport } from '@muster/common/views';
import type { TaskDriver } from '../drivers/driver.ts';
import type { TaskObservation } from '../taskFacts/execution.ts';
import { TaskEffects } from './effects.ts';
import type { Effect, TaskEvent, TaskMoment } from './events.ts';
import { recordPhase, type TaskRecord } from './records.ts';
import { reportOf } from './report.ts';
import { type TaskState, unrecordedTask } from './state.ts';
import { restored, step } from './step.ts';
import {
  checkTask,
  prepareTask,
  type RunnerParts,
  type RunnerShared,
  startTask,
  type TaskWorker,
  unanswered,
  WorkOutcome,
} from './work.ts';

/** Most short tasks end within this time, and the report of the end then shows that the task ran, too. */
const runningReportMs = 100;

export class TaskRunner {
  state: TaskState;
  private readonly shared: RunnerShared;
  private readonly parts: RunnerParts;
  private readonly log: Logger;
  private readonly effects: TaskEffects;
  private readonly queue: TaskEvent[] = [];
  private isTaking = false;
  private workAbort: AbortController | null = null;
  /** The work that began last is given up when the agent closes. */
  private endsWithAgent = false;
  private readonly reports: ReportSender;

  constructor(shared: RunnerShared, task: TaskRef) {
    this.shared = shared;
    this.parts = shared.parts;
    this.log = shared.parts.log;
    this.state = unrecordedTask(task);
    this.effects = new TaskEffects(shared, task, this);
    const { parts } = shared;
    this.reports = new ReportSender(
      () => this.report(parts.boottimeMs),
      (report) => parts.send({ kind: 'report', report }),
    );
  }

  get task(): TaskRef {
    return this.state.task;
  }

  /** Takes an event, after those that have come before it. */
  post(event: TaskEvent): void {
    this.queue.push(event);
    if (this.isTaking) return;
    this.isTaking = true;
    try {
      for (let next = this.queue.shift(); next !== undefined; next = this.queue.shift()) this.take(next);
    } finally {
      this.isTaking = false;
    }
  }

  /** Resumes a task of an earlier agent. @returns when its driver has reported what became of it */
  async restore(record: TaskRecord): Promise<void> {
    this.state = restored(record);
    if (record.phase.kind === 'ended') this.carryOut([{ kind: 'close' }]);
    else await this.effects.find(record.bootId);
  }

  /** Adopts a task that runs and has no record here. */
  adopt(driver: TaskDriver['name'], observed: TaskObservation): void {
    this.effects.adopt(driver, observed);
  }

  connected(): void {
    this.reports.connected();
    this.post({ kind: 'connected' });
  }

  /** @returns null for a task that is not recorded */
  report(boottimeMs: () => number): TaskReport | null {
    const { task } = this;
    const { leases, checkpoints, training } = this.parts;
    return reportOf(this.state, boottimeMs, {
      frozen: leases.isFrozen(task),
      trainingComplete: checkpoints.isTrainingComplete(task),
      training: training.progress(task),
      hang: training.hang(task),
    });
  }

  /** Sends a report, unless the same was sent on this connection. The first one of a task that runs waits for a moment. */
  sendReport(): void {
    this.reports.report(this.state.life.kind === 'running');
  }

  /** The program has failed and will not end soon: signal, the job's grace, kill. The task ends as by itself. */
  async endFailed(): Promise<void> {
    const { life, assignment } = this.state;
    if (life.kind !== 'running' || assignment === null) return;
    await this.effects.stopDriver({ signal: 'SIGTERM', graceMs: assignment.spec.stopGraceMs });
  }

  close(): void {
    if (this.endsWithAgent) this.workAbort?.abort(this.shared.closing.reason);
    this.effects.close();
    this.reports.close();
  }

  private take(event: TaskEvent): void {
    if (this.shared.closing.aborted) return;
    const { state, effects } = step(this.state, event, this.now());
    this.state = state;
    if (!state.isPaused) this.effects.endTimer('pause');
    if (state.life.kind !== 'running') this.effects.endTimer('grace');
    this.carryOut(effects);
    if (event.kind === 'removed') this.shared.onRemoved(state);
  }

  private now(): TaskMoment {
    const { parts, task } = this;
    // Most events need neither a clock nor a lease.
    return {
      get wallMs() {
        return parts.wallMs();
      },
      get boottimeMs() {
        return parts.boottimeMs();
      },
      get isLeased() {
        return parts.leases.isLive(task);
      },
    };
  }

  private carryOut(effects: readonly Effect[]): void {
    for (const effect of effects) this.carryOutOne(effect);
  }

  private carryOutOne(effect: Effect): void {
    const context = this.effects.context();
    switch (effect.kind) {
      case 'prepare':
        return this.work((abort) => prepareTask(this.worker(), abort), true);
      case 'check':
        return this.work((abort) => checkTask(this.worker(), effect.order, abort), true);
      case 'start':
        return this.work((abort) => startTask(this.worker(), effect.order, abort));
      case 'examine':
        return this.work(() => this.examineTask());
      case 'stop':
        return this.work(async () => {
          const waits = this.shared.hooks.flatMap(
            (hook) => hook.stopping?.(context, effect.options.graceMs) ?? [],
          );
          // Without a wait the signal is sent now, before anything else can be ordered.
          if (waits.length > 0) await Promise.all(waits);
          try {
            return { kind: 'stopped', exit: await this.effects.stopDriver(effect.options) };
          } catch (error) {
            for (const hook of this.shared.hooks) hook.notStopped?.(context);
            throw error;
          }
        });
      case 'remove':
        return this.work(async () => {
          for (const hook of this.shared.hooks.toReversed()) await hook.removed?.(context);
          await this.parts.records.remove(this.task);
          return { kind: 'removed' };
        });
      case 'cancel':
        return this.workAbort?.abort(new WorkOutcome({ kind: 'cancelled' }));
      case 'kill':
        return this.effects.kill();
      case 'follow':
        return this.effects.follow(effect.how);
      case 'conclude':
        return this.effects.conclude(effect);
      case 'close':
        for (const hook of this.shared.hooks.toReversed()) hook.ended?.(context);
        if (this.parts.records.outputSize(this.task) === 0) this.post({ kind: 'uploaded' });
        return;
      case 'record':
        if (this.state.assignment !== null) recordPhase(this.parts, this.task, effect.phase);
        return;
      case 'announce':
        return this.effects.announce(effect.port);
      case 'sendFindings':
        return this.parts.send({ kind: 'checked', task: this.task, findings: effect.findings });
      case 'report':
        return this.sendReport();
      case 'pause': {
        const fields = { task: taskKey(this.task), error: effect.message, retryInMs: effect.ms };
        this.log.warn(fields, 'work on a task has failed');
        return this.effects.timer('pause', effect.ms, () => this.post({ kind: 'pauseOver' }));
      }
      case 'grace':
        return this.effects.timer('grace', effect.ms, () => this.post({ kind: 'graceOver' }));
      default: {
        const never: never = effect;
        return never;
      }
    }
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
      .then((event) => this.post(event))
      .catch((error: unknown) =>
        this.log.error({ error: messageOf(error) }, 'a task could not take an event'),
      );
  }

  /** The drivers know what is true of a task that has no record, or whose start was not answered. */
  private async examineTask(): Promise<TaskEvent> {
    const { state, parts } = this;
    const { driver, location, assignment } = this.effects.context();
    if (state.life.kind === 'unrecorded') {
      if (assignment === null) return { kind: 'ended', end: { ...nothingRan, statusLost: true } };
      // On disk the task counts as running before a driver has answered: the next agent must not start it.
      const now = this.now();
      const phase = {
        kind: 'running',
        startedAtMs: now.wallMs,
        startedBoottimeMs: now.boottimeMs,
      } as const;
      await parts.records.create({ assignment, bootId: parts.bootId, phase });
    }
    const observed = await driver.recover(location).catch((error: unknown) => {
      throw state.life.kind === 'starting' ? new WorkOutcome(unanswered(error)) : error;
    });
    return { kind: 'examined', observed, isSameBoot: true };
  }

  private worker(): TaskWorker {
    return {
      shared: this.shared,
      context: this.effects.context(),
      life: this.state.life,
      post: (event) => this.post(event),
    };
  }
}

/** Sends the reports of one task, none of them twice on one connection. */
class ReportSender {
  private readonly read: () => TaskReport | null;
  private readonly send: (report: TaskReport) => void;
  private timer: NodeJS.Timeout | null = null;
  /** The report that was sent last on this connection. */
  private sent: string | null = null;

  /** @param read the report as it is now. null: there is none */
  constructor(read: () => TaskReport | null, send: (report: TaskReport) => void) {
    this.read = read;
    this.send = send;
  }

  /** A new connection: what was sent on the one before may not have arrived. */
  connected(): void {
    this.sent = null;
  }

  /** @param isRunning the task runs: the first report of that waits for a moment */
  report(isRunning: boolean): void {
    if (!isRunning || this.sent !== null) this.sendNow();
    else this.timer ??= setTimeout(() => this.sendNow(), runningReportMs);
  }

  close(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  private sendNow(): void {
    this.close();
    const report = this.read();
    if (report === null) return;
    const { state, exit, frozen, trainingComplete, hang } = report;
    const text = JSON.stringify([state, exit, frozen, trainingComplete, hang !== null]);
    if (this.sent === text) return;
    this.sent = text;
    this.send(report);
  }
}
