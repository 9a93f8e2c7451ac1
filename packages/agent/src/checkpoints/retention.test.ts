import type { CheckpointFacts } from '@muster/common/checkpoints';
import { expect, test } from 'vitest';
import { type KeepRules, neededNames, toDelete } from './retention.ts';

function saved(step: number, changes: Partial<CheckpointFacts> = {}): CheckpointFacts {
  return {
    name: `step_${step}`,
    version: 'v',
    step,
    format: 'torch',
    bytes: 1,
    files: 1,
    digest: null,
    savedAtMs: step * 1_000,
    saveDurationMs: null,
    metrics: {},
    problem: null,
    reread: false,
    verdict: 'verified',
    depth: 'quick',
    ...changes,
  };
}

const none: KeepRules = { keepLast: null, keepEvery: null, keepBest: null };
const steps = (...numbers: number[]) => numbers.map((step) => saved(step));
const given = (checkpoints: readonly CheckpointFacts[], rules: Partial<KeepRules>, kept: string[] = []) =>
  toDelete(checkpoints, { ...none, ...rules }, new Set(kept));

test('without a rule nothing is deleted', () => {
  expect(given(steps(1, 2, 3), {})).toEqual([]);
  expect(given(steps(1, 2, 3), { keepEvery: 2 })).toEqual([]);
});

test('the newest stay, the oldest go first', () => {
  expect(given(steps(3, 1, 4, 2), { keepLast: 2 })).toEqual(['step_1', 'step_2']);
});

test('those of every so many steps stay as well', () => {
  expect(given(steps(100, 150, 200, 250, 300), { keepLast: 1, keepEvery: 100 })).toEqual([
    'step_150',
    'step_250',
  ]);
});

test.each([
  ['min', ['step_1', 'step_3']],
  ['max', ['step_2', 'step_3']],
] as const)('the best by a metric stays as well (%s)', (mode, deleted) => {
  const losses = [3, 1, 2, 2];
  const checkpoints = losses.map((loss, index) => saved(index + 1, { metrics: { eval_loss: loss } }));
  expect(given(checkpoints, { keepLast: 1, keepBest: { metric: 'eval_loss', mode } })).toEqual(deleted);
});

test('what is not verified is neither deleted nor a reason to delete', () => {
  const checkpoints = [
    ...steps(1, 2),
    saved(3, { verdict: 'corrupt' }),
    saved(4, { verdict: 'unverified' }),
    saved(0, { verdict: 'corrupt' }),
  ];
  expect(given(checkpoints, { keepLast: 1 })).toEqual(['step_1']);
});

test('the newest is the one that was saved last: a job that was taken back saves lower steps', () => {
  const diverged = saved(900, { savedAtMs: 10 });
  const after = saved(600, { savedAtMs: 20 });
  expect(given([diverged, after], { keepLast: 1 })).toEqual(['step_900']);
});

test('what its program calls its best or final one stays, and does not count', () => {
  const chosen = ['checkpoint_best.pt', 'final', 'best/step_2', 'model-best-v1.ckpt'];
  const checkpoints = [...steps(1, 3, 4), ...chosen.map((name, index) => saved(10 * index, { name }))];
  expect(given(checkpoints, { keepLast: 1 })).toEqual(['step_1', 'step_3']);
});

test('one that somebody needs stays', () => {
  expect(given(steps(1, 2, 3), { keepLast: 1 }, ['step_1'])).toEqual(['step_2']);
});

test('what evaluations need stays: what is named, in that version, and what nobody has decided about', () => {
  const there = [saved(1, { savedAtMs: 10 }), saved(2, { savedAtMs: 20 }), saved(3, { savedAtMs: 30 })];
  const version = there[0]?.version ?? '';
  const held = [
    { name: 'step_1', version },
    { name: 'step_2', version: 'another' },
  ];
  expect(neededNames(there, { held, decidedSavedAtMs: 20 }, true)).toEqual(['step_1', 'step_3']);
  expect(neededNames(there, { held, decidedSavedAtMs: 20 }, false)).toEqual(['step_1']);
  expect(neededNames(there, null, true)).toEqual(['step_1', 'step_2', 'step_3']);
  expect(neededNames(there, null, false)).toEqual([]);
});

test('whatever the rules say, the newest verified one stays', () => {
  for (let count = 1; count <= 6; count++) {
    const all = Array.from({ length: count }, (_, step) =>
      saved(step, { verdict: step % 3 === 1 ? 'corrupt' : 'verified' }),
    );
    const newest = all.filter(({ verdict }) => verdict === 'verified').at(-1);
    for (const keepLast of [0, 1, 2]) expect(given(all, { keepLast })).not.toContain(newest?.name);
  }
});
