import { nothingRan } from '@muster/common/cause';
import { expect, test } from 'vitest';
import { exited } from '../drivers/fakeDriver.ts';
import type { Effect, TaskMoment } from './events.ts';
import { anAssignment, aTask, checkRound, forget, prepare, start, stop } from './managerFixture.ts';
import { type Life, type Order, type TaskState, unrecordedTask } from './state.ts';
import { step } from './step.ts';

const now: TaskMoment = { wallMs: 1_000, boottimeMs: 500, isLeased: false };
const leased: TaskMoment = { ...now, isLeased: true };
const ready = {
  kind: 'prepared',
  port: 4_000,
  announced: 'no',
  findings: null,
  areFindingsSent: false,
} as const;
const started = { startedAtMs: 900, startedBoottimeMs: 400 };
const findings = (round: number) => ({ round, paths: [], preflight: null });

const lives = {
  unrecorded: { kind: 'unrecorded' },
  assigned: { kind: 'assigned', doing: null },
  prepared: ready,
  announced: { ...ready, announced: 'lost' },
  checkedBefore: { ...ready, announced: 'yes', findings: findings(1) },
  checked: { ...ready, announced: 'yes', findings: findings(2) },
  starting: { kind: 'starting', prepared: null },
  running: { kind: 'running', ...started, isStopping: false, graceEndsAtMs: null },
  ending: { kind: 'ending', ...started, isStopping: false, exit: exited(0), doing: null },
  ended: { kind: 'ended', end: nothingRan, started: null, isUploaded: false },
  uploaded: { kind: 'ended', end: nothingRan, started: null, isUploaded: true },
  removed: { kind: 'removed' },
} as const satisfies Record<string, Life>;

type Row = Readonly<Record<keyof typeof lives, string>>;

/** The effects of an order, for every state in which it may come. */
const table: Readonly<Record<Order['kind'], Row>> = {
  prepare: {
    unrecorded: 'prepare',
    assigned: 'prepare',
    prepared: 'announce',
    announced: 'announce',
    checkedBefore: 'announce',
    checked: 'announce',
    starting: 'examine',
    running: 'report',
    ending: '',
    ended: 'report',
    uploaded: 'report',
    removed: '',
  },
  check: {
    unrecorded: 'prepare',
    assigned: 'prepare',
    prepared: 'announce check',
    announced: 'check',
    checkedBefore: 'check',
    checked: 'sendFindings',
    starting: 'examine',
    running: 'report',
    ending: '',
    ended: 'report',
    uploaded: 'report',
    removed: '',
  },
  start: {
    unrecorded: 'examine',
    assigned: '',
    prepared: '',
    announced: '',
    checkedBefore: '',
    checked: '',
    starting: 'examine',
    running: 'report',
    ending: '',
    ended: 'report',
    uploaded: 'report',
    removed: '',
  },
  stop: {
    unrecorded: 'examine',
    assigned: 'record close report',
    prepared: 'record close report',
    announced: 'record close report',
    checkedBefore: 'record close report',
    checked: 'record close report',
    starting: 'examine',
    running: 'record stop',
    ending: 'hurry',
    ended: 'report',
    uploaded: 'report',
    removed: '',
  },
  forget: {
    unrecorded: 'remove',
    assigned: 'remove',
    prepared: 'remove',
    announced: 'remove',
    checkedBefore: 'remove',
    checked: 'remove',
    starting: 'examine',
    running: 'record stop',
    ending: 'hurry',
    ended: '',
    uploaded: 'remove',
    removed: '',
  },
};

const orders: Readonly<Record<Order['kind'], Order>> = {
  prepare: prepare(),
  check: checkRound(2),
  start,
  stop,
  forget,
};

const inState = (life: Life): TaskState => ({ ...unrecordedTask(aTask), assignment: anAssignment(), life });
const kinds = (effects: readonly Effect[]) => effects.map(({ kind }) => kind).join(' ');

const cases = Object.entries(table).flatMap(([order, row]) =>
  Object.entries(row).map(([life, effects]) => ({
    order: order as Order['kind'],
    life: life as keyof typeof lives,
    effects,
  })),
);

test.each(cases)('$order ordered, $life found: "$effects"', ({ order, life, effects }) => {
  const after = step(inState(lives[life]), { kind: 'ordered', order: orders[order] }, now);
  expect(kinds(after.effects)).toBe(effects);
});

test.each(['assigned', 'prepared', 'checked'] as const)('a lease starts a task that is %s', (life) => {
  const ordered = step(inState(lives[life]), { kind: 'ordered', order: start }, now);
  expect(kinds(ordered.effects)).toBe('');
  expect(kinds(step(ordered.state, { kind: 'leaseChanged' }, leased).effects)).toBe('start');
});

test('without an order nothing happens', () => {
  for (const life of Object.values(lives)) {
    expect(kinds(step(inState(life), { kind: 'pauseOver' }, leased).effects)).toBe('');
  }
});

test('a new kind of order ends the pause after a failure, and the same order does not', () => {
  const preparing = step(inState(lives.assigned), { kind: 'ordered', order: orders.prepare }, now).state;
  const failed = step(preparing, { kind: 'failed', message: 'no answer', mayRun: false }, now);
  expect(failed.effects).toEqual([{ kind: 'pause', ms: 100, message: 'no answer' }]);
  expect(failed.state.life).toEqual({ kind: 'assigned', doing: 'retrying: no answer' });
  expect(kinds(step(failed.state, { kind: 'ordered', order: orders.prepare }, now).effects)).toBe('');
  expect(kinds(step(failed.state, { kind: 'ordered', order: forget }, now).effects)).toBe('remove');
});
