/** Any sequence of events keeps the rules of a task's life on its node, and a task whose node answers comes to its end. */

import { nothingRan } from '@muster/common/cause';
import type { TaskRef } from '@muster/common/ids';
import { expect, test } from 'vitest';
import { seededChance } from '../../../../test/support/chance.ts';
import { exited } from '../drivers/fakeDriver.ts';
import type { Effect, TaskEvent, TaskMoment } from './events.ts';
import { anAssignment, aTask, checkRound, forget, start, stop } from './managerFixture.ts';
import { type Life, type Order, type TaskState, unrecordedTask } from './state.ts';
import { restored, step } from './step.ts';

const task: TaskRef = aTask;
const assignment = anAssignment();
const workKinds: readonly string[] = ['prepare', 'check', 'start', 'examine', 'stop', 'remove'];
const lifeKinds: readonly Life['kind'][] = [
  'unrecorded',
  'assigned',
  'prepared',
  'starting',
  'running',
  'ending',
  'ended',
  'removed',
];

test('any sequence of events keeps the rules', () => {
  const random = seededChance(20_261_123).fraction;
  const visited = new Set<Life['kind']>();
  for (let life = 0; life < 3_000; life += 1) {
    const walk = new Walk(random, visited);
    for (let turn = 0; turn < 60; turn += 1) walk.turn();
    walk.finish();
  }
  expect([...visited].sort()).toEqual([...lifeKinds].sort());
});

/** A node around one task: what its driver would say, what is on its disk, and which work is under way. */
class Walk {
  private state: TaskState = unrecordedTask(task);
  private readonly random: () => number;
  private readonly visited: Set<Life['kind']>;
  private readonly history: string[] = [];
  /** What the driver knows. */
  private process: 'absent' | 'running' | 'exited' = 'absent';
  private starts = 0;
  private hasRecord = false;
  /** The work that was begun and has not answered. */
  private work: Effect | null = null;
  private isCancelled = false;
  /** The last output and checkpoints are being read. */
  private isConcluding = false;
  private isFollowed = false;
  private now: TaskMoment = { wallMs: 1_000, boottimeMs: 1_000, isLeased: false };

  constructor(random: () => number, visited: Set<Life['kind']>) {
    this.random = random;
    this.visited = visited;
  }

  turn(): void {
    if (this.state.life.kind === 'removed') return;
    this.now = { ...this.now, boottimeMs: this.now.boottimeMs + this.below(50), isLeased: this.chance(0.6) };
    if (this.chance(0.05)) this.restart();
    else this.play(this.anyEvent());
  }

  /** Every answer of the node is good, the coordinator forgets the task, and its output arrives. */
  finish(): void {
    this.now = { ...this.now, isLeased: true };
    for (let turn = 0; this.state.life.kind !== 'removed'; turn += 1) {
      this.rule(turn < 30, 'a task whose node answers comes to its end');
      this.play({ kind: 'ordered', order: forget });
      this.play({ kind: 'pauseOver' });
      if (this.work !== null) this.play(this.goodAnswer(this.work));
      if (this.isConcluding) this.concluded();
      if (this.state.life.kind === 'ended') this.play({ kind: 'uploaded' });
    }
    this.rule(this.process === 'absent', 'nothing of a removed task runs');
    this.rule(!this.hasRecord, 'nothing of a removed task is on disk');
  }

  private anyEvent(): TaskEvent {
    if (this.work !== null && this.chance(0.4)) return this.anyAnswer(this.work);
    if (this.isConcluding && this.chance(0.5)) return this.concluding();
    if (this.isFollowed && this.process === 'running' && this.chance(0.2)) {
      this.process = 'exited';
      return { kind: 'exited', exit: exited(this.below(2)) };
    }
    return this.pick<() => TaskEvent>(
      () => ({ kind: 'ordered', order: this.anyOrder() }),
      () => ({ kind: 'ordered', order: this.anyOrder() }),
      () => ({ kind: 'unnamed' }),
      () => ({ kind: 'connected' }),
      () => ({ kind: 'leaseChanged' }),
      () => ({ kind: 'uploaded' }),
      () => ({ kind: 'pauseOver' }),
      () => ({ kind: 'graceOver' }),
    )();
  }

  private anyOrder(): Order {
    return this.pick<Order>(
      { kind: 'prepare', assignment },
      { ...checkRound(1 + this.below(3)), assignment },
      { ...start, assignment },
      { ...start, assignment },
      { ...stop, assignment, graceMs: this.below(100) },
      forget,
    );
  }

  /** The same agent is gone, and the next one finds what is on disk and what the driver knows. */
  private restart(): void {
    const { life } = this.state;
    this.history.push('restart');
    this.work = null;
    this.isCancelled = false;
    this.isConcluding = false;
    this.isFollowed = false;
    if (!this.hasRecord) {
      this.state = unrecordedTask(task);
      return;
    }
    const running = { startedAtMs: 1, startedBoottimeMs: 1 };
    const phase =
      life.kind === 'ended'
        ? ({ kind: 'ended', exit: life.end } as const)
        : life.kind === 'running' || life.kind === 'ending' || life.kind === 'unrecorded'
          ? ({ kind: 'running', ...running } as const)
          : ({ kind: 'assigned' } as const);
    this.state = restored({ assignment, bootId: 'boot', phase }, 'boot');
    this.rule(this.state.order === null, 'a new agent acts on nothing but orders');
    if (phase.kind !== 'ended') this.play(this.chance(0.2) ? { kind: 'unseen' } : this.examined());
  }

  private anyAnswer(work: Effect): TaskEvent {
    if (this.isCancelled && work.kind !== 'start' && this.chance(0.8))
      return this.answered({ kind: 'cancelled' });
    if (this.isCancelled && work.kind === 'start' && this.process === 'absent')
      return this.answered({ kind: 'cancelled' });
    if (this.chance(0.3)) return this.badAnswer(work);
    return this.goodAnswer(work);
  }

  private badAnswer(work: Effect): TaskEvent {
    if (work.kind !== 'start') {
      const mayRun = this.state.life.kind === 'starting';
      return this.answered({ kind: 'failed', message: 'the node is busy', mayRun });
    }
    // The driver may have started the task before its answer was lost.
    const mayRun = this.chance(0.5);
    if (mayRun && this.chance(0.5)) this.startProcess();
    return this.answered({ kind: 'failed', message: 'no answer', mayRun });
  }

  private goodAnswer(work: Effect): TaskEvent {
    switch (work.kind) {
      case 'prepare':
        if (!this.hasRecord) {
          this.hasRecord = true;
          this.play({ kind: 'recorded' });
        }
        if (this.chance(0.1)) return this.answered({ kind: 'ended', end: nothingRan });
        return this.answered({ kind: 'prepared', port: 4_000 });
      case 'check':
        return this.answered({
          kind: 'checked',
          findings: { round: work.order.check.round, paths: [], preflight: null },
        });
      case 'start':
        this.startProcess();
        return this.answered({ kind: 'started' });
      case 'examine':
        this.hasRecord = true;
        return this.answered(this.examined());
      case 'stop':
        this.process = 'exited';
        return this.answered({ kind: 'stopped', exit: exited(0) });
      case 'remove':
        this.hasRecord = false;
        this.process = 'absent';
        return this.answered({ kind: 'removed' });
      default:
        throw new Error(`${work.kind} is no work`);
    }
  }

  private examined(): TaskEvent {
    const observed =
      this.process === 'running'
        ? ({ kind: 'running', pid: 1, startedAtMs: null, frozen: this.chance(0.2) } as const)
        : this.process === 'exited'
          ? ({ kind: 'exited', exit: exited(1) } as const)
          : ({ kind: 'absent' } as const);
    return { kind: 'examined', observed, isSameBoot: this.chance(0.9) };
  }

  private answered(event: TaskEvent): TaskEvent {
    this.work = null;
    this.isCancelled = false;
    return event;
  }

  private concluding(): TaskEvent {
    this.isConcluding = false;
    return { kind: 'ended', end: { ...nothingRan, exitCode: 0 } };
  }

  private concluded(): void {
    this.play(this.concluding());
  }

  private startProcess(): void {
    this.rule(this.process === 'absent', 'a task runs once');
    this.process = 'running';
    this.starts += 1;
    this.rule(this.starts === 1, 'a task is started once');
  }

  private play(event: TaskEvent): void {
    this.history.push(event.kind === 'ordered' ? `ordered ${event.order.kind}` : event.kind);
    const before = this.state;
    const { state, effects } = step(before, event, this.now);
    this.state = state;
    this.visited.add(state.life.kind);
    this.checkChange(before, state);
    for (const effect of effects) this.checkEffect(effect, event, before, state);
  }

  private checkChange(before: TaskState, after: TaskState): void {
    const [from, to] = [before.life, after.life];
    const isBack = lifeKinds.indexOf(to.kind) < lifeKinds.indexOf(from.kind);
    this.rule(!isBack || from.kind === 'starting', `a task does not go back from ${from.kind} to ${to.kind}`);
    if (from.kind === 'ended' && to.kind === 'ended') this.rule(from.end === to.end, 'an end is final');
    if (from.kind === 'running' && to.kind === 'running') {
      const isLonger = (to.graceEndsAtMs ?? 0) > (from.graceEndsAtMs ?? Number.POSITIVE_INFINITY);
      this.rule(!isLonger, 'a grace only gets shorter');
    }
    this.rule(
      after.work !== null ||
        after.life.kind !== 'starting' ||
        before.work !== null ||
        after.order === null ||
        after.isPaused,
      'a start without an answer is examined',
    );
  }

  private checkEffect(effect: Effect, event: TaskEvent, before: TaskState, after: TaskState): void {
    if (workKinds.includes(effect.kind)) {
      this.rule(this.work === null, 'a task has at most one work under way');
      this.work = effect;
      this.isCancelled = false;
    }
    switch (effect.kind) {
      case 'start':
        this.rule(this.now.isLeased, 'no start without a lease');
        this.rule(after.order?.kind === 'start', 'no start without the order to start');
        this.rule(
          before.life.kind !== 'starting' || event.kind === 'examined' || event.kind === 'cancelled',
          'no second start before the first was examined',
        );
        this.rule(this.process === 'absent', 'no start of what runs or has run');
        break;
      case 'stop':
        this.rule(after.order?.kind === 'stop' || after.order?.kind === 'forget', 'no stop without an order');
        break;
      case 'remove':
        this.rule(after.order?.kind === 'forget', 'nothing is removed without the order to forget');
        this.rule(this.process !== 'running', 'nothing that runs is removed');
        this.rule(
          before.life.kind !== 'ended' || isUploaded(after.life),
          'output is removed when it has arrived',
        );
        break;
      case 'cancel':
        this.rule(
          ['prepare', 'check', 'start'].includes(this.work?.kind ?? ''),
          'only what can be given up is given up',
        );
        this.isCancelled = true;
        break;
      case 'conclude':
        this.rule(!this.isConcluding, 'an end is concluded once');
        this.isConcluding = true;
        break;
      case 'follow':
        this.isFollowed = true;
        break;
      case 'record':
        this.hasRecord ||= effect.phase.kind === 'running';
        break;
      default:
    }
  }

  private rule(holds: boolean, sentence: string): void {
    if (!holds)
      throw new Error(
        `${sentence}\n${this.history.slice(-25).join('\n')}\n${JSON.stringify(this.state.life)}`,
      );
  }

  private chance(share: number): boolean {
    return this.random() < share;
  }

  private below(limit: number): number {
    return Math.floor(this.random() * limit);
  }

  private pick<T>(...choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T;
  }
}

function isUploaded(life: Life): boolean {
  return life.kind === 'ended' && life.isUploaded;
}
