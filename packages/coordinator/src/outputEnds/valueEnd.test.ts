import { expect, test } from 'vitest';
import { aNode } from '../modelFixture.ts';
import type { RowSender } from './outputEnds.ts';
import type { SenderState } from './sender.ts';
import { type AttemptRows, type ValueEnd, valueEnd } from './valueEnd.ts';

const complete: SenderState = { kind: 'complete' };
const lost: SenderState = { kind: 'lost', why: 'node_lost' };
const awaited: SenderState = { kind: 'awaited', isSilent: false };

/** @param states by rank @param step up to which rows are here @param resumeStep null: from scratch */
function attempt(
  number: number,
  states: readonly SenderState[],
  step: number | null = 100,
  resumeStep: number | null = null,
): AttemptRows {
  const senders = states.map(
    (state, nodeRank): RowSender => ({ nodeRank, node: aNode('node-1').name, state, step }),
  );
  const resume = resumeStep === null ? null : { name: `step-${resumeStep}`, step: resumeStep };
  return { number, resume, senders };
}

const first = { index: 0, nodeRank: 0 };
const second = { index: 1, nodeRank: 0 };

test.each<[string, ValueEnd['kind'], Parameters<typeof valueEnd>]>([
  ['all of it is here', 'final', [[attempt(1, [complete])], first, 'newest']],
  ['the rest can still come', 'awaited', [[attempt(1, [awaited])], first, 'newest']],
  ['its node is lost', 'incomplete', [[attempt(1, [lost])], first, 'all']],
  ['nothing shows it, and the rest can still come', 'awaited', [[attempt(1, [awaited])], null, 'newest']],
  ['nothing shows it, and its node is lost', 'incomplete', [[attempt(1, [lost])], null, 'newest']],
  [
    'a higher rank is lost, whose values do not count',
    'final',
    [[attempt(1, [complete, lost])], first, 'newest'],
  ],
  [
    'a lower rank is lost, whose values would count',
    'incomplete',
    [[attempt(1, [lost, complete])], { index: 0, nodeRank: 1 }, 'newest'],
  ],
  [
    'an earlier attempt is lost, and the last value is of the later one',
    'final',
    [[attempt(1, [lost], 3), attempt(2, [complete], 100, 50)], second, 'newest'],
  ],
  [
    'rows before the checkpoint of the next attempt are lost, and the best may be among them',
    'incomplete',
    [[attempt(1, [lost], 49), attempt(2, [complete], 100, 50)], second, 'all'],
  ],
  [
    'only rows that the next attempt did again are lost',
    'final',
    [[attempt(1, [lost], 50), attempt(2, [complete], 100, 50)], second, 'all'],
  ],
  [
    'the next attempt began from scratch',
    'final',
    [[attempt(1, [lost], null), attempt(2, [complete])], second, 'all'],
  ],
  [
    'the later attempt shows none, and the one that does is lost',
    'incomplete',
    [[attempt(1, [lost], 60), attempt(2, [complete], null, 50)], first, 'newest'],
  ],
  [
    'rows of an earlier attempt can still come, and the best may be among them',
    'awaited',
    [[attempt(1, [awaited], 10), attempt(2, [complete], 100, 50)], second, 'all'],
  ],
])('a value is final unless something that counts is missing: %s', (_title, expected, parts) => {
  expect(valueEnd(...parts).kind).toBe(expected);
});

test('what is awaited and what is lost is said with its attempt and node', () => {
  expect(valueEnd([attempt(3, [{ kind: 'awaited', isSilent: true }])], null, 'all')).toEqual({
    kind: 'awaited',
    reason:
      'the last metrics of attempt 3 from node-1, which does not respond; without it: muster node remove node-1',
  });
  expect(valueEnd([attempt(3, [{ kind: 'lost', why: 'node_removed' }])], null, 'all')).toEqual({
    kind: 'incomplete',
    reason: 'metrics of attempt 3 are lost: node-1 was removed before it had sent them',
  });
});
