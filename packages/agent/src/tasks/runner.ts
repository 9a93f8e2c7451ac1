/**
 * Keeps the state of one task: takes its events one after the other, asks `step` what follows from each, and has the effects
 * carried out. Nothing here survives the agent, and nothing has to.
 */

import type { TaskRef } from '@muster/common/ids';
import type { TaskReport } from '@muster/common/views';
import type { TaskDriver } from '../drivers/driver.ts';
import type { TaskObservation } from '../taskFacts/execution.ts';
import { type RunnerShared, TaskEffects } from './effects.ts';
import type { TaskEvent, TaskMoment } from './events.ts';
import type { TaskRecord } from './records.ts';
import { reportOf } from './report.ts';
import { type TaskState, unrecordedTask } from './state.ts';
import { restored, step } from './step.ts';

/** Most short tasks end within this time, and the report of the end then shows that the task ran, too. */
const runningReportMs = 100;

export class TaskRunner {
  state: TaskState;
  private readonly shared: RunnerShared;
  private readonly effects: TaskEffects;
  private readonly reports: ReportSender;
  private readonly queue: TaskEvent[] = [];
  private isTaking = false;

  constructor(shared: RunnerShared, task: TaskRef) {
    this.shared = shared;
    this.state = unrecordedTask(task);
    this.effects = new TaskEffects(shared, task, this);
    const { parts } = shared;
    this.reports = new ReportSender(
      () => this.report(parts.boottimeMs),
      (report) => parts.send({ kind: 'report', report }),
    );
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

  /** Resumes a task of an earlier agent. @returns when it is known what became of it, and what it saved */
  async restore(record: TaskRecord): Promise<void> {
    this.state = restored(record, this.shared.parts.bootId);
    if (record.phase.kind !== 'ended') return await this.effects.find(record.bootId);
    this.effects.carryOut({ kind: 'close' });
    await this.effects.recall(record.phase.started?.startedAtMs ?? null);
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
    const { task } = this.state;
    const { leases, checkpoints, training } = this.shared.parts;
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
    this.effects.close();
    this.reports.close();
  }

  private take(event: TaskEvent): void {
    if (this.shared.closing.aborted) return;
    const { state, effects } = step(this.state, event, this.now());
    this.state = state;
    if (!state.isPaused) this.effects.endTimer('pause');
    if (state.life.kind !== 'running') this.effects.endTimer('grace');
    for (const effect of effects) this.effects.carryOut(effect);
    if (event.kind === 'removed') this.shared.onRemoved(state);
  }

  private now(): TaskMoment {
    const { parts } = this.shared;
    const { task } = this.state;
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
