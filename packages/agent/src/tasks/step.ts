/**
 * The life of one task on a node as a plain function: state, event and moment give the next state and the effects to carry
 * out. `TaskRunner` keeps the state, and `TaskEffects` carries out the effects and posts their results as events. After every
 * event `step` compares what is ordered with what is true, and begins what is missing; it never remembers what it was about
 * to do.
 */

import { nothingRan } from '@muster/common/cause';
import { backoffMs } from '@muster/common/retry';
import type { TaskEnd } from '@muster/common/views';
import type { StopOptions, TaskExit } from '../taskFacts/execution.ts';
import type { Effect, TaskEvent, TaskMoment, TaskStep } from './events.ts';
import type { TaskRecord } from './records.ts';
import {
  assignmentAfter,
  type Life,
  type Order,
  type Prepared,
  ranMoments,
  type StartMoment,
  type StartOrder,
  type TaskState,
  unrecordedTask,
} from './state.ts';

/** The pause after a failure of the node. A new kind of order ends it. */
const pause = { initialMs: 100, maxMs: 10_000 } as const;

/** The state of a task that an earlier agent has recorded. Unless it has ended, its driver says what became of it. */
export function restored({ assignment, phase, bootId }: TaskRecord, bootIdNow: string): TaskState {
  const state = { ...unrecordedTask(assignment.task), assignment };
  switch (phase.kind) {
    case 'assigned':
      return { ...state, life: { kind: 'starting', prepared: null }, work: { kind: 'examine' } };
    case 'running': {
      const { isStopping = false } = phase;
      return { ...state, life: { ...phase, isStopping, graceEndsAtMs: null }, work: { kind: 'examine' } };
    }
    case 'ended': {
      // A start of another boot of the machine has no age that this one could tell.
      const started = (bootId === bootIdNow ? phase.started : null) ?? null;
      return { ...state, life: { kind: 'ended', end: phase.exit, started, isUploaded: false } };
    }
    default: {
      const never: never = phase;
      return never;
    }
  }
}

export function step(state: TaskState, event: TaskEvent, now: TaskMoment): TaskStep {
  const after = applied(state, event, now);
  // The coordinator sends its orders on each connection, and a lease lets a task do nothing but start.
  const beginsNothing =
    event.kind === 'connected' || (event.kind === 'leaseChanged' && state.order?.kind !== 'start');
  if (beginsNothing) return after;
  const { state: next, effects } = advanced(after.state, now);
  return { state: next, effects: [...after.effects, ...effects] };
}

function unchanged(state: TaskState): TaskStep {
  return { state, effects: [] };
}

/** What the event itself changes. */
function applied(state: TaskState, event: TaskEvent, now: TaskMoment): TaskStep {
  const { life } = state;
  switch (event.kind) {
    case 'ordered':
      return ordered(state, event.order, now);
    case 'unnamed':
      // A task that is not on disk was not in the Hello, so nobody will ever order to forget it.
      return life.kind === 'unrecorded'
        ? ordered(state, { kind: 'forget' }, now)
        : unchanged({ ...state, order: null });
    case 'connected':
      return unchanged({ ...state, life: unsent(life) });
    case 'leaseChanged':
      // Also of a task that is being stopped, or that the coordinator does not know.
      return { state, effects: isRunning(life) ? [{ kind: 'report' }] : [] };
    case 'uploaded':
      return unchanged(life.kind === 'ended' ? { ...state, life: { ...life, isUploaded: true } } : state);
    case 'pauseOver':
      return unchanged({ ...state, isPaused: false });
    case 'graceOver':
      return { state, effects: isBeingStopped(life) ? [{ kind: 'kill' }] : [] };
    case 'recorded':
      return unchanged(
        life.kind === 'unrecorded' ? { ...state, life: { kind: 'assigned', doing: null } } : state,
      );
    case 'doing':
      return unchanged('doing' in life ? { ...state, life: { ...life, doing: event.text } } : state);
    case 'prepared': {
      const nothingSent = { announced: 'no', findings: null, areFindingsSent: false } as const;
      return unchanged(done(state, { kind: 'prepared', port: event.port, ...nothingSent }));
    }
    case 'checked':
      return unchanged(
        done(
          state,
          life.kind === 'prepared' ? { ...life, findings: event.findings, areFindingsSent: false } : life,
        ),
      );
    case 'started':
      return begun(state, startedNow(now), 'started');
    case 'examined':
      return examined(state, event, now);
    case 'unseen':
      return { state: { ...state, work: null }, effects: [{ kind: 'follow', how: 'unseen' }] };
    case 'exited':
      return exited(state, event.exit);
    case 'stopped':
      return exited(done(state, life), event.exit);
    case 'ended':
      return ended(state, event.end);
    case 'removed':
      return unchanged(done(state, { kind: 'removed' }));
    case 'cancelled':
      return unchanged({ ...state, work: null, life: withoutStart(life) });
    case 'failed':
      return failed(state, event);
    default: {
      const never: never = event;
      return never;
    }
  }
}

function ordered(state: TaskState, order: Order, now: TaskMoment): TaskStep {
  if (isOutdated(state.order, order)) return unchanged(state);
  const isNew = state.order?.kind !== order.kind;
  const { work } = state;
  const next: TaskState = {
    ...state,
    assignment: assignmentAfter(state, order),
    order,
    life: askedAgain(state.life, order),
    isPaused: state.isPaused && !isNew,
  };
  const cancel: readonly Effect[] = work !== null && !isWanted(state, order) ? [{ kind: 'cancel' }] : [];
  if (state.life.kind === 'ending' && (order.kind === 'stop' || order.kind === 'forget'))
    return { state: next, effects: [{ kind: 'hurry', graceMs: order.kind === 'stop' ? order.graceMs : 0 }] };
  if (order.kind === 'stop') {
    const shortened = withShorterGrace(next, order.graceMs, now);
    return { state: shortened.state, effects: [...shortened.effects, ...cancel] };
  }
  // The stop that is under way learns of the end.
  const kill: readonly Effect[] =
    isNew && order.kind === 'forget' && work?.kind === 'stop' ? [{ kind: 'kill' }] : [];
  return { state: next, effects: [...cancel, ...kill] };
}

/** The order came late: paths of a later round are being tried, or have been. */
function isOutdated(before: Order | null, order: Order): boolean {
  if (order.kind !== 'check' || before?.kind !== 'check') return false;
  return order.check.round < before.check.round;
}

/** The coordinator asks for what was sent: it has not arrived. */
function askedAgain(life: Life, order: Order): Life {
  if (life.kind !== 'prepared') return life;
  if (order.kind === 'prepare' && life.announced === 'yes') return { ...life, announced: 'lost' };
  return order.kind === 'check' ? { ...life, areFindingsSent: false } : life;
}

function unsent(life: Life): Life {
  if (life.kind !== 'prepared') return life;
  return { ...life, announced: life.announced === 'yes' ? 'lost' : life.announced, areFindingsSent: false };
}

/** Whether the work that is under way serves this order. What has had an effect is never given up. */
function isWanted({ work }: TaskState, order: Order): boolean {
  switch (work?.kind) {
    case 'prepare':
    case 'start':
      return order.kind !== 'stop' && order.kind !== 'forget';
    case 'check':
      return order.kind === 'check' && order.check.round === work.round;
    default:
      return true;
  }
}

/**
 * A stop gives no more time than the first one did, and may give less. The driver keeps to the first grace and is not asked
 * to signal again, because to many programs a second SIGTERM means that they need not save.
 */
function withShorterGrace(state: TaskState, graceMs: number, now: TaskMoment): TaskStep {
  const { life } = state;
  const graceEndsAtMs = now.boottimeMs + graceMs;
  if (life.kind !== 'running' || life.graceEndsAtMs === null || graceEndsAtMs >= life.graceEndsAtMs)
    return unchanged(state);
  const effect: Effect = graceMs === 0 ? { kind: 'kill' } : { kind: 'grace', ms: graceMs };
  return { state: { ...state, life: { ...life, graceEndsAtMs } }, effects: [effect] };
}

function begun(
  state: TaskState,
  started: { readonly startedAtMs: number; readonly startedBoottimeMs: number },
  how: 'started' | 'found' | 'frozen',
): TaskStep {
  const next = done(state, { kind: 'running', ...started, isStopping: false, graceEndsAtMs: null });
  return {
    state: next,
    effects: [
      { kind: 'record', phase: { kind: 'running', ...started } },
      { kind: 'follow', how },
    ],
  };
}

function examined(
  state: TaskState,
  { observed, isSameBoot }: Extract<TaskEvent, { kind: 'examined' }>,
  now: TaskMoment,
): TaskStep {
  const { life } = state;
  if (observed.kind === 'running') {
    const how = observed.frozen ? 'frozen' : 'found';
    if (life.kind === 'running' && isSameBoot)
      return { state: done(state, life), effects: [{ kind: 'follow', how }] };
    const started = startedNow(now);
    return begun(state, { ...started, startedAtMs: observed.startedAtMs ?? started.startedAtMs }, how);
  }
  // The record says that the task ran, or the driver does.
  const hasRun = observed.kind === 'exited' || life.kind === 'running' || life.kind === 'unrecorded';
  if (!hasRun) return unchanged(done(state, withoutStart(life)));
  const ran = { kind: 'running', ...startedNow(now), isStopping: false, graceEndsAtMs: null } as const;
  const running = done(state, life.kind === 'running' ? life : ran);
  return exited(running, observed.kind === 'exited' ? observed.exit : null);
}

function exited(state: TaskState, exit: TaskExit | null): TaskStep {
  const { life } = state;
  if (life.kind !== 'running') return unchanged(state);
  const { startedAtMs, startedBoottimeMs, isStopping } = life;
  const ending: Life = { kind: 'ending', startedAtMs, startedBoottimeMs, isStopping, exit, doing: null };
  return { state: { ...state, life: ending }, effects: [{ kind: 'conclude', exit, isStopping }] };
}

function ended(state: TaskState, end: TaskEnd): TaskStep {
  // A stop whose answer is on its way ends by itself.
  const work = state.work?.kind === 'stop' ? state.work : null;
  const { life } = state;
  const started = isRunning(life) ? ranMoments(life) : null;
  return {
    state: { ...state, work, failures: 0, life: { kind: 'ended', end, started, isUploaded: false } },
    effects: [{ kind: 'record', phase: { kind: 'ended', exit: end, started } }, { kind: 'close' }],
  };
}

function failed(state: TaskState, { message, mayRun }: Extract<TaskEvent, { kind: 'failed' }>): TaskStep {
  const failures = state.failures + 1;
  const life = mayRun ? state.life : withoutStart(state.life);
  // Should the time for the preparation run out, the coordinator can say what the agent was waiting for.
  const nextLife: Life = life.kind === 'assigned' ? { ...life, doing: `retrying: ${message}` } : life;
  return {
    state: { ...state, work: null, failures, isPaused: true, life: nextLife },
    effects: [{ kind: 'pause', ms: backoffMs(pause, failures), message }],
  };
}

/** Nothing was started: what held before the start holds again. The port was given to the task. */
function withoutStart(life: Life): Life {
  if (life.kind !== 'starting') return life;
  return life.prepared === null
    ? { kind: 'assigned', doing: null }
    : { kind: 'prepared', ...life.prepared, port: null };
}

/** The work has succeeded. */
function done(state: TaskState, life: Life): TaskState {
  return { ...state, work: null, failures: 0, life };
}

/** Begins what is missing between what is true and what is ordered. */
function advanced(state: TaskState, now: TaskMoment): TaskStep {
  if (state.work !== null || state.isPaused) return unchanged(state);
  const missing = nextStep(state, now);
  // What is sent takes no time, and something else may follow at once.
  if (missing === null) return unchanged(state);
  if (missing.effects.some(({ kind }) => kind === 'report') || missing.state.work !== null) return missing;
  const { state: next, effects } = advanced(missing.state, now);
  return { state: next, effects: [...missing.effects, ...effects] };
}

/** @returns null: all that is ordered is true, or has to wait */
function nextStep(state: TaskState, now: TaskMoment): TaskStep | null {
  const { order, life } = state;
  if (order === null || life.kind === 'ending' || life.kind === 'removed') return null;
  // A driver that was to start the task has not answered: what is true is found out before anything else.
  if (life.kind === 'starting') return working(state, { kind: 'examine' });
  switch (order.kind) {
    case 'prepare':
      if (life.kind === 'unrecorded' || life.kind === 'assigned') return working(state, { kind: 'prepare' });
      if (life.kind === 'prepared') return life.announced === 'yes' ? null : announced(state, life);
      return reported(state);
    case 'check':
      if (life.kind === 'unrecorded' || life.kind === 'assigned') return working(state, { kind: 'prepare' });
      if (life.kind !== 'prepared') return reported(state);
      // After a restart of the agent its port is another one, and a check with the old one would find nobody.
      if (life.announced === 'no') return announced(state, life);
      return checked(state, order, life);
    case 'start':
      if (life.kind === 'unrecorded') return working(state, { kind: 'examine' });
      if (life.kind !== 'assigned' && life.kind !== 'prepared') return reported(state);
      return mayStart(now) ? starting(state, order, life.kind === 'prepared' ? life : null) : null;
    case 'stop':
      if (life.kind === 'unrecorded') return working(state, { kind: 'examine' });
      if (life.kind === 'running') return stopping(state, order, now);
      return life.kind === 'ended' ? reported(state) : ended(state, nothingRan);
    case 'forget':
      if (life.kind === 'running') return stopping(state, { signal: 'SIGKILL', graceMs: 0 }, now);
      return mayRemove(life) ? working(state, { kind: 'remove' }) : null;
    default: {
      const never: never = order;
      return never;
    }
  }
}

/** A late order starts nothing: the next answered heartbeat brings a lease, or says what became of the attempt. */
export function mayStart({ isLeased }: TaskMoment): boolean {
  return isLeased;
}

/** The directory of a task holds its output, which goes to the coordinator first. */
export function mayRemove(life: Life): boolean {
  return life.kind !== 'ended' || life.isUploaded;
}

function working(
  state: TaskState,
  effect: Extract<Effect, { kind: 'prepare' | 'examine' | 'remove' }>,
): TaskStep {
  return { state: { ...state, work: { kind: effect.kind } }, effects: [effect] };
}

function announced(state: TaskState, life: Extract<Life, { kind: 'prepared' }>): TaskStep {
  return {
    state: { ...state, life: { ...life, announced: 'yes' } },
    effects: [{ kind: 'announce', port: life.port }],
  };
}

function checked(
  state: TaskState,
  order: Extract<Order, { kind: 'check' }>,
  life: Extract<Life, { kind: 'prepared' }>,
): TaskStep | null {
  const { findings } = life;
  if (findings?.round !== order.check.round)
    return {
      state: { ...state, work: { kind: 'check', round: order.check.round } },
      effects: [{ kind: 'check', order }],
    };
  if (life.areFindingsSent) return null;
  return {
    state: { ...state, life: { ...life, areFindingsSent: true } },
    effects: [{ kind: 'sendFindings', findings }],
  };
}

function starting(state: TaskState, order: StartOrder, prepared: Prepared | null): TaskStep {
  return {
    state: { ...state, work: { kind: 'start' }, life: { kind: 'starting', prepared } },
    effects: [{ kind: 'start', order }],
  };
}

function stopping(state: TaskState, { signal, graceMs }: StopOptions, now: TaskMoment): TaskStep | null {
  const { life } = state;
  if (life.kind !== 'running') return null;
  const { startedAtMs, startedBoottimeMs } = life;
  const graceEndsAtMs = life.graceEndsAtMs ?? now.boottimeMs + graceMs;
  const phase = { kind: 'running', startedAtMs, startedBoottimeMs, isStopping: true } as const;
  const record: readonly Effect[] = life.isStopping ? [] : [{ kind: 'record', phase }];
  return {
    state: { ...state, work: { kind: 'stop' }, life: { ...life, isStopping: true, graceEndsAtMs } },
    effects: [...record, { kind: 'stop', options: { signal, graceMs } }],
  };
}

/** The runner sends no report twice on one connection. */
function reported(state: TaskState): TaskStep {
  return { state, effects: [{ kind: 'report' }] };
}

function isRunning(life: Life): life is Extract<Life, StartMoment> {
  return life.kind === 'running' || life.kind === 'ending';
}

function isBeingStopped(life: Life): boolean {
  return life.kind === 'running' && life.isStopping;
}

function startedNow({ wallMs, boottimeMs }: TaskMoment) {
  return { startedAtMs: wallMs, startedBoottimeMs: boottimeMs };
}
