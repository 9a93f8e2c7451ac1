/** Nodes whose tasks write real files, and agents that follow them. */
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TaskRef, taskKey } from '@muster/common/ids';
import { type Logger, silentLogger } from '@muster/common/log';
import type { TrainingRow } from '@muster/common/training';
import { expect, onTestFinished, vi } from 'vitest';
import { anAssignment, aTask } from '../tasks/managerFixture.ts';
import { TaskTraining } from './taskTraining.ts';
import type { RowsEnd, TrainingSignMessage } from './taskTrainingParts.ts';

export const step = (number: number, loss: number | string = 2.5) =>
  `iter ${number}: loss ${loss}, time 250.00ms, mfu 30.00%\n`;
export const steps = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => step(from + index)).join('');

export class Node {
  readonly directory = mkdtempSync(join(tmpdir(), 'training-'));
  readonly running: { task: TaskRef; assignment: ReturnType<typeof anAssignment>; gpuUuids: string[] }[] = [];
  /** What is known of tasks whether they run or not. */
  readonly assigned = new Map<string, ReturnType<typeof anAssignment>>();
  readonly sent: TrainingSignMessage[] = [];
  readonly warnings: string[] = [];
  readonly rows: ({ readonly task: TaskRef } & TrainingRow)[] = [];
  readonly ended: ({ readonly task: string } & RowsEnd)[] = [];
  readonly unread: number[] = [];
  looks = 0;
  frozen = false;
  nowMs = 1_000_000;
  /** How long it takes from one look at the clock to the next. */
  tickMs = 0;
  onLook = () => {};
  log: Logger = { ...silentLogger, warn: (_fields, message) => this.warnings.push(message) };
  private readonly agents: TaskTraining[] = [];

  constructor() {
    onTestFinished(() => {
      for (const agent of this.agents) agent.close();
      rmSync(this.directory, { recursive: true, maxRetries: 10 });
    });
  }

  async agent(): Promise<TaskTraining> {
    const agent = new TaskTraining({
      running: () => this.running,
      resumeOf: (task) => this.assigned.get(taskKey(task))?.resume ?? null,
      isFrozen: () => {
        this.looks += 1;
        this.onLook();
        return this.frozen;
      },
      outputPathOf: (task) => this.path(task),
      send: (message) => this.sent.push(message),
      rows: {
        add: (task, row) => this.rows.push({ task, ...row }),
        ended: (task, end) => this.ended.push({ task: taskKey(task), ...end }),
        skipped: (_task, bytes) => this.unread.push(bytes),
      },
      wallMs: () => this.nowMs,
      monotonicMs: () => (this.nowMs += this.tickMs),
      lookIntervalMs: 5,
      log: this.log,
    });
    this.agents.push(agent);
    await agent.start();
    return agent;
  }

  run(task = aTask, spec: Readonly<Record<string, unknown>> = {}, gpuUuids: string[] = []): void {
    this.running.push({ task, assignment: anAssignment(spec, task), gpuUuids });
  }

  write(text: string | Buffer, task = aTask): void {
    appendFileSync(this.path(task), text);
  }

  path(task: TaskRef): string {
    return join(this.directory, taskKey(task));
  }

  /** Resolves when every task has been looked at once more. */
  async looked(): Promise<void> {
    const before = this.looks;
    await vi.waitFor(() => expect(this.looks).toBeGreaterThan(before + this.running.length));
  }
}
