import { expect, test } from 'vitest';
import { causeOf } from './cause.ts';
import { causeFacts } from './causeFacts.ts';
import { causeKinds } from './spec/causes.ts';

test.each(causeKinds)('%s is blamed on whoever its kind is usually the fault of', (kind) => {
  expect(causeOf(kind, 'it ended').blame).toBe(causeFacts[kind].blame);
});

test('a cause is about nothing in particular unless that is stated', () => {
  expect(causeOf('unknown', 'it ended')).toEqual({
    kind: 'unknown',
    message: 'it ended',
    nodeRank: null,
    node: null,
    evidence: null,
    blame: 'unknown',
  });
  const evidence = { line: 3, text: 'x', rank: 1 };
  const place = { nodeRank: 1, node: 'node-2' };
  expect(causeOf('hung', 'it stands', place, evidence)).toMatchObject({ ...place, evidence });
});
