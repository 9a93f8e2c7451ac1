import { expect, test } from 'vitest';
import { nothingRan } from './entry.ts';
import { type Action, type ActualState, type DesiredState, reconcile } from './reconcile.ts';

const locals = {
  unknown: undefined,
  assigned: { kind: 'assigned', leased: false },
  assignedWithLease: { kind: 'assigned', leased: true },
  prepared: { kind: 'prepared', announced: false, checkedRound: null, leased: false },
  announced: { kind: 'prepared', announced: true, checkedRound: null, leased: false },
  checkedBefore: { kind: 'prepared', announced: true, checkedRound: 1, leased: false },
  checked: { kind: 'prepared', announced: true, checkedRound: 2, leased: false },
  checkedWithLease: { kind: 'prepared', announced: true, checkedRound: 2, leased: true },
  uncertain: { kind: 'uncertain' },
  running: { kind: 'running' },
  ended: { kind: 'ended', exit: nothingRan, uploaded: false },
  uploaded: { kind: 'ended', exit: nothingRan, uploaded: true },
} as const satisfies Record<string, ActualState | undefined>;

type Row = Readonly<Record<keyof typeof locals, Action>>;

/** What is → what to do, for all that can be wanted: the whole of the function. */
const table: Readonly<Record<DesiredState['kind'] | 'unsaid', Row>> = {
  unsaid: {
    unknown: 'nothing',
    assigned: 'nothing',
    assignedWithLease: 'nothing',
    prepared: 'nothing',
    announced: 'nothing',
    checkedBefore: 'nothing',
    checked: 'nothing',
    checkedWithLease: 'nothing',
    uncertain: 'nothing',
    running: 'nothing',
    ended: 'nothing',
    uploaded: 'nothing',
  },
  prepare: {
    unknown: 'prepare',
    assigned: 'prepare',
    assignedWithLease: 'prepare',
    prepared: 'announce',
    announced: 'announce',
    checkedBefore: 'announce',
    checked: 'announce',
    checkedWithLease: 'announce',
    uncertain: 'examine',
    running: 'report',
    ended: 'report',
    uploaded: 'report',
  },
  check: {
    unknown: 'prepare',
    assigned: 'prepare',
    assignedWithLease: 'prepare',
    prepared: 'announce',
    announced: 'check',
    checkedBefore: 'check',
    checked: 'send_findings',
    checkedWithLease: 'send_findings',
    uncertain: 'examine',
    running: 'report',
    ended: 'report',
    uploaded: 'report',
  },
  start: {
    unknown: 'examine',
    assigned: 'nothing',
    assignedWithLease: 'start',
    prepared: 'nothing',
    announced: 'nothing',
    checkedBefore: 'nothing',
    checked: 'nothing',
    checkedWithLease: 'start',
    uncertain: 'examine',
    running: 'report',
    ended: 'report',
    uploaded: 'report',
  },
  stop: {
    unknown: 'examine',
    assigned: 'discard',
    assignedWithLease: 'discard',
    prepared: 'discard',
    announced: 'discard',
    checkedBefore: 'discard',
    checked: 'discard',
    checkedWithLease: 'discard',
    uncertain: 'examine',
    running: 'stop',
    ended: 'report',
    uploaded: 'report',
  },
  forget: {
    unknown: 'remove',
    assigned: 'remove',
    assignedWithLease: 'remove',
    prepared: 'remove',
    announced: 'remove',
    checkedBefore: 'remove',
    checked: 'remove',
    checkedWithLease: 'remove',
    uncertain: 'examine',
    running: 'kill',
    ended: 'nothing',
    uploaded: 'remove',
  },
};

const cases = Object.entries(table).flatMap(([wanted, row]) =>
  Object.entries(row).map(([is, action]) => ({ wanted, is: is as keyof typeof locals, action })),
);

test.each(cases)('$wanted wanted, $is found: $action', ({ wanted, is, action }) => {
  const desired = wanted === 'unsaid' ? undefined : ({ kind: wanted, round: 2 } as DesiredState);
  expect(reconcile(desired, locals[is])).toBe(action);
});
