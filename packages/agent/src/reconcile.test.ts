import { expect, test } from 'vitest';
import { type Action, type Desired, type Local, reconcile } from './reconcile.ts';
import { nothingRan } from './tasks/entry.ts';

const locals = {
  unknown: undefined,
  prepared: { kind: 'prepared', claimable: false },
  claimable: { kind: 'prepared', claimable: true },
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
    prepared: 'nothing',
    claimable: 'nothing',
    uncertain: 'nothing',
    running: 'nothing',
    ended: 'nothing',
    uploaded: 'nothing',
  },
  prepare: {
    unknown: 'prepare',
    prepared: 'prepare',
    claimable: 'claim',
    uncertain: 'examine',
    running: 'report',
    ended: 'report',
    uploaded: 'report',
  },
  run: {
    unknown: 'examine',
    prepared: 'start',
    claimable: 'start',
    uncertain: 'examine',
    running: 'report',
    ended: 'report',
    uploaded: 'report',
  },
  stop: {
    unknown: 'examine',
    prepared: 'discard',
    claimable: 'discard',
    uncertain: 'examine',
    running: 'stop',
    ended: 'report',
    uploaded: 'report',
  },
  forget: {
    unknown: 'remove',
    prepared: 'remove',
    claimable: 'remove',
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
  const desired = wanted === 'unsaid' ? undefined : { kind: wanted as Desired['kind'] };
  expect(reconcile(desired, locals[is])).toBe(action);
});
