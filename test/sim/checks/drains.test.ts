/** The check of conditions on made-up histories: what no removed rule brings about alone is shown to be seen as well. */
import type { StoredEvent } from '@muster/coordinator/model';
import { expect, test } from 'vitest';
import type { Fact } from '../history.ts';
import { DrainCheck } from './drains.ts';
import { Verdict } from './verdict.ts';

/** @param facts each a second after the one before */
function judge(facts: readonly Fact[]): readonly string[] {
  const verdict = new Verdict(() => 0);
  const drains = new DrainCheck(verdict);
  for (const [index, fact] of facts.entries()) drains.see(fact, index * 1_000);
  return verdict.violations.map(({ guarantee, what }) => `${guarantee}: ${what}`);
}

function committed(...events: readonly Pick<StoredEvent, 'kind' | 'data'>[]): Fact {
  const full = events.map((event, index) => {
    const subject = event.kind.startsWith('attempt.') ? 'job_1' : 'node-1';
    return {
      ...event,
      subject,
      seq: index + 1,
      id: `c-${index}`,
      subjectSeq: index + 1,
      timeMs: 0,
      by: 'test',
      peer: '',
    };
  });
  return { kind: 'committed', events: full, steps: [], trials: [] };
}

const gpus = ['GPU-1', 'GPU-2'].map((uuid) => ({ uuid }));
const joined = { kind: 'node.joined' as const, data: { inventory: { gpus } } };
const reported = (
  kind: 'raised' | 'changed' | 'cleared',
  action = 'drain_gpu',
  gpuUuid: string | null = 'GPU-1',
) => {
  return { kind: `condition.${kind}` as const, data: { kind: 'xid_48', gpuUuid, action } };
};
const allocated = (...gpuUuids: readonly string[]) => {
  return { kind: 'attempt.allocated' as const, data: { attempt: 1, tasks: [{ node: 'node-1', gpuUuids }] } };
};
const truth = (gpuUuid: string | null = 'GPU-1'): Fact => {
  return { kind: 'condition', machine: 'node-1', what: 'raised', condition: 'xid_48', gpuUuid };
};

test('a condition that comes and goes, with work beside it and after it, is no violation', () => {
  const story = committed(
    joined,
    reported('raised'),
    allocated('GPU-2'),
    allocated(),
    reported('changed', 'note'),
    allocated('GPU-1'),
    reported('changed'),
    reported('cleared'),
    allocated('GPU-1'),
  );
  expect(judge([truth(), story])).toEqual([]);
});

test.each<[string, string, readonly Fact[]]>([
  ['drains', 'GPU-1, which is drained', [truth(), committed(joined, reported('raised'), allocated('GPU-1'))]],
  [
    'drains',
    'GPU-1, which is drained',
    [truth(), committed(joined, reported('raised', 'note'), reported('changed'), allocated('GPU-1'))],
  ],
  [
    'drains',
    'node-1, which is drained',
    [truth(null), committed(joined, reported('raised', 'drain_node', null), allocated())],
  ],
  ['drains', 'GPU-3, which node-1 does not have now', [committed(joined, allocated('GPU-3'))]],
  [
    'drains',
    'GPU-2, which node-1 does not have now',
    [
      committed(
        joined,
        { kind: 'node.changed' as const, data: { gpus: gpus.slice(0, 1) } },
        allocated('GPU-2'),
      ),
    ],
  ],
  ['G7', 'which never was', [committed(joined, reported('raised'))]],
  ['G5', 'does not follow', [truth(), committed(joined, reported('raised'), reported('raised'))]],
  ['G5', 'does not follow', [truth(), committed(joined, reported('cleared'))]],
  ['G5', 'does not follow', [truth(), committed(joined, reported('changed'))]],
  [
    'G7',
    'was answered as cleared, and holds',
    [{ kind: 'clearAnswered', node: 'node-1', condition: 'xid_48', gpuUuid: null, holds: true }],
  ],
])('%s: %s', (guarantee, text, facts) => {
  expect(judge(facts)).toContainEqual(expect.stringMatching(new RegExp(`^${guarantee}: .*${text}`)));
});

const changed = (...uuids: readonly string[]) => {
  return { kind: 'node.changed' as const, data: { gpus: uuids.map((uuid) => ({ uuid })) } };
};
const heard = (...gpuUuids: readonly string[]): Fact => ({ kind: 'gpusHeard', machine: 'node-1', gpuUuids });
const coordinatorStarted: Fact = { kind: 'process', name: 'coordinator 2', what: 'started' };
/** A node that comes and goes until no more is reported of it; reported last: GPU-2 is gone. */
const restless = committed(
  joined,
  ...Array.from({ length: 8 }, (_, index) => changed('GPU-1', ...(index % 2 === 0 ? ['GPU-2'] : []))),
);

test('of a node that changes without end, what was received counts and not what was reported last', () => {
  expect(judge([restless, heard('GPU-1', 'GPU-2'), committed(allocated('GPU-2'))])).toEqual([]);
  const violation = 'drains: job_1 was given GPU-2, which node-1 does not have now';
  expect(judge([restless, heard('GPU-1'), committed(allocated('GPU-2'))])).toEqual([violation]);
  // What was reported is out of date in the other direction as well.
  const goneAgain = committed(joined, ...Array.from({ length: 8 }, () => changed('GPU-1', 'GPU-2')));
  expect(judge([goneAgain, heard('GPU-1'), committed(allocated('GPU-2'))])).toEqual([violation]);
});

test('what a commit was decided by may be reported otherwise while it is written, and not for long', () => {
  const both = heard('GPU-1', 'GPU-2');
  expect(judge([restless, both, heard('GPU-1'), committed(allocated('GPU-2'))])).toEqual([]);
  const long = Array.from({ length: 6 }, () => heard('GPU-1'));
  expect(judge([restless, both, ...long, committed(allocated('GPU-2'))])).toHaveLength(1);
});

test('a new coordinator tells changes at once', () => {
  const story = [restless, heard('GPU-1', 'GPU-2'), coordinatorStarted, committed(allocated('GPU-2'))];
  expect(judge(story)).toHaveLength(1);
});
