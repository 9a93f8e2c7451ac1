import { expect, test } from 'vitest';
import { type Action, type Desired, type Local, reconcile } from './reconcile.ts';
import { nothingRan } from './tasks/entry.ts';

const locals = {
  unknown: undefined,
  preparing: { kind: 'preparing', leased: false },
  preparingWithLease: { kind: 'preparing', leased: true },
  ready: { kind: 'ready', claimed: false, checkedRound: null, leased: false },
  claimed: { kind: 'ready', claimed: true, checkedRound: null, leased: false },
  checkedBefore: { kind: 'ready', claimed: true, checkedRound: 1, leased: false },
  checked: { kind: 'ready', claimed: true, checkedRound: 2, leased: false },
  readyWithLease: { kind: 'ready', claimed: true, checkedRound: 2, leased: true },
  uncertain: { kind: 'uncertain' },
  running: { kind: 'running' },
  ended: { kind: 'ended', exit: nothingRan, uploaded: false },
  uploaded: { kind: 'ended', exit: nothingRan, uploaded: true },
} as const satisfies Record<string, Local | undefined>;

type Row = Readonly<Record<keyof typeof locals, Action>>;

/** What is → what to do, for all that can be wanted: the whole of the function. */
const table: Readonly<Record<Desired['kind'] | 'unsaid', Row>> = {
  unsaid: {
    unknown: 'nothing',
    preparing: 'nothing',
    preparingWithLease: 'nothing',
    ready: 'nothing',
    claimed: 'nothing',
    checkedBefore: 'nothing',
    checked: 'nothing',
    readyWithLease: 'nothing',
    uncertain: 'nothing',
    running: 'nothing',
    ended: 'nothing',
    uploaded: 'nothing',
  },
  prepare: {
    unknown: 'prepare',
    preparing: 'prepare',
    preparingWithLease: 'prepare',
    ready: 'claim',
    claimed: 'claim',
    checkedBefore: 'claim',
    checked: 'claim',
    readyWithLease: 'claim',
    uncertain: 'examine',
    running: 'report',
    ended: 'report',
    uploaded: 'report',
  },
  check: {
    unknown: 'prepare',
    preparing: 'prepare',
    preparingWithLease: 'prepare',
    ready: 'claim',
    claimed: 'check',
    checkedBefore: 'check',
    checked: 'tell_findings',
    readyWithLease: 'tell_findings',
    uncertain: 'examine',
    running: 'report',
    ended: 'report',
    uploaded: 'report',
  },
  run: {
    unknown: 'examine',
    preparing: 'nothing',
    preparingWithLease: 'start',
    ready: 'nothing',
    claimed: 'nothing',
    checkedBefore: 'nothing',
    checked: 'nothing',
    readyWithLease: 'start',
    uncertain: 'examine',
    running: 'report',
    ended: 'report',
    uploaded: 'report',
  },
  stop: {
    unknown: 'examine',
    preparing: 'discard',
    preparingWithLease: 'discard',
    ready: 'discard',
    claimed: 'discard',
    checkedBefore: 'discard',
    checked: 'discard',
    readyWithLease: 'discard',
    uncertain: 'examine',
    running: 'stop',
    ended: 'report',
    uploaded: 'report',
  },
  forget: {
    unknown: 'remove',
    preparing: 'remove',
    preparingWithLease: 'remove',
    ready: 'remove',
    claimed: 'remove',
    checkedBefore: 'remove',
    checked: 'remove',
    readyWithLease: 'remove',
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
  const desired = wanted === 'unsaid' ? undefined : ({ kind: wanted, round: 2 } as Desired);
  expect(reconcile(desired, locals[is])).toBe(action);
});
