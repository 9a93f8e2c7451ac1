import { expect, test } from 'vitest';
import type { IndexedCheckpoint } from './indexFile.ts';
import { type KeepRules, latestFirst, neededNames, toDelete } from './retention.ts';

const job = 'job_000000000002';

function saved(step: number, changes: Partial<IndexedCheckpoint> = {}): IndexedCheckpoint {
  return {
    by: job,
    attempt: 1,
    node: 'a',
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
const latest = (checkpoints: readonly IndexedCheckpoint[]) =>
  latestFirst(
    checkpoints.map((facts) => ({ facts })),
    job,
  ).map(({ facts }) => facts);
const given = (checkpoints: readonly IndexedCheckpoint[], rules: Partial<KeepRules>, kept: string[] = []) =>
  toDelete(latest(checkpoints), { ...none, ...rules }, new Set(kept));

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
  const after = saved(600, { savedAtMs: 20, attempt: 2 });
  expect(given([diverged, after], { keepLast: 1 })).toEqual(['step_900']);
});

test('what was saved after the clock had been set back stays, and so do the last by the clock', () => {
  const setBack = [saved(4, { savedAtMs: 400 }), saved(5, { savedAtMs: 500 })];
  expect(given([...steps(1, 2, 3), ...setBack], { keepLast: 1 })).toEqual(['step_1', 'step_2', 'step_4']);
  const nextAttempt = [saved(2, { attempt: 2, savedAtMs: 100 }), saved(3, { attempt: 2, savedAtMs: 200 })];
  expect(given([...steps(8, 9), ...nextAttempt], { keepLast: 1 })).toEqual(['step_8', 'step_2']);
});

test('within an attempt the clock decides where a step is unknown, and both where a program counts twice', () => {
  const unknown = saved(9, { name: 'ckpt', step: null, savedAtMs: 10 });
  expect(given([unknown, ...steps(1, 2)], { keepLast: 1 })).toEqual(['ckpt', 'step_1']);
  const second = [1, 2].map((step) => saved(step, { name: `second/step_${step}`, savedAtMs: 9_000 + step }));
  expect(given([...steps(1, 2, 3), ...second], { keepLast: 1 })).toEqual([
    'step_1',
    'second/step_1',
    'step_2',
  ]);
});

test('what earlier jobs saved is older, whatever they called their attempts and the clock said', () => {
  const earlier = [4, 5].map((step) => saved(step, { by: 'job_000000000001', attempt: 7 }));
  const own = [saved(1, { savedAtMs: 1 }), saved(2, { savedAtMs: 2 })];
  expect(latest([...earlier, ...own]).map(({ name }) => name)).toEqual([
    'step_2',
    'step_1',
    'step_5',
    'step_4',
  ]);
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
  const there = [30, 20, 10].map((savedAtMs) => saved(savedAtMs / 10, { savedAtMs }));
  const version = there[0]?.version ?? '';
  const held = [
    { name: 'step_1', version },
    { name: 'step_2', version: 'another' },
  ];
  expect(neededNames(there, { held, decidedSavedAtMs: 20 }, true)).toEqual(['step_3', 'step_1']);
  expect(neededNames(there, { held, decidedSavedAtMs: 20 }, false)).toEqual(['step_1']);
  expect(neededNames(there, null, true)).toEqual(['step_3', 'step_2', 'step_1']);
  expect(neededNames(there, null, false)).toEqual([]);
});

test('after the clock was set back, nobody has decided about what was saved since', () => {
  const there = latest([...steps(1, 2), saved(3, { savedAtMs: 500 })]);
  expect(neededNames(there, { held: [], decidedSavedAtMs: 2_000 }, true)).toEqual(['step_3']);
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
