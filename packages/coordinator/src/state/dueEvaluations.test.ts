import { expect, test } from 'vitest';
import type { Job } from '../model.ts';
import { aCheckpoint, aJob, aSpec, someMs } from '../modelFixture.ts';
import type { JobEvaluations } from '../store/evaluations.ts';
import { withDueEvaluations } from './dueEvaluations.ts';

const evaluated = (evaluate: object, checkpoint: object = {}) =>
  aSpec({ command: ['train'], evaluate: { command: ['eval'], ...evaluate }, checkpoint });

/** Saves one after the other. @returns the steps that are evaluated after each */
function dueAfter(
  spec: Job['spec'],
  saves: readonly Parameters<typeof aCheckpoint>[],
  fields: Partial<Job> = {},
): readonly (readonly (number | null)[])[] {
  let job = aJob(1, { spec, ...fields });
  let known: JobEvaluations | undefined;
  return saves.map((save) => {
    const next = { ...job, checkpoints: [...job.checkpoints, aCheckpoint(...save)] };
    known = withDueEvaluations(job, next, known, someMs);
    job = next;
    return known?.evaluations.map(({ step }) => step) ?? [];
  });
}

test('every second verified checkpoint is due, once, whatever lies between them', () => {
  const spec = evaluated({ every: 2 });
  expect(
    dueAfter(spec, [[1], [2], [3, { verdict: 'corrupt' }], [4, { verdict: 'unverified' }], [5], [6]]),
  ).toEqual([[], [2], [2], [2], [2], [2, 6]]);
  const job = aJob(1, { spec, checkpoints: [aCheckpoint(1), aCheckpoint(2)] });
  const once = withDueEvaluations(aJob(1, { spec }), job, undefined, someMs);
  expect(once?.evaluations).toHaveLength(1);
  const repeated = { ...job, checkpoints: job.checkpoints.map((each) => ({ ...each, shared: true })) };
  expect(withDueEvaluations(job, repeated, once, someMs)).toBe(once);
});

test('what a predecessor has saved is not evaluated again', () => {
  expect(dueAfter(evaluated({ every: 1 }), [[1, { attempt: 0 }], [2]])).toEqual([[], [2]]);
});

test('each that is the best so far by the metric of the training is due', () => {
  const spec = evaluated({ on: 'best' }, { keep_last: 2, keep_best: { metric: 'eval_loss' } });
  const at = (step: number, loss: number | null) =>
    [step, { metrics: loss === null ? {} : { eval_loss: loss } }] as const;
  const saves = [at(1, 3), at(2, null), at(3, 4), at(4, 2)].map(([step, fields]) => [step, fields]);
  expect(dueAfter(spec, saves as Parameters<typeof aCheckpoint>[])).toEqual([[1], [1], [1], [1, 4]]);
});

test('the newest good one is due when the job has succeeded, and not when it has failed', () => {
  const spec = evaluated({ on: 'final' });
  const checkpoints = [aCheckpoint(1), aCheckpoint(2), aCheckpoint(3, { verdict: 'corrupt' })];
  const before = aJob(1, { spec, checkpoints });
  const ended = (kind: 'succeeded' | 'cancelled') =>
    ({ ...before, state: { kind, endedAtMs: someMs } }) as Job;
  expect(withDueEvaluations(before, ended('succeeded'), undefined, someMs)?.evaluations).toMatchObject([
    { step: 2, state: 'waiting', jobId: null },
  ]);
  expect(withDueEvaluations(before, ended('cancelled'), undefined, someMs)).toBeUndefined();
});

test('of old ones only those that have ended are forgotten', () => {
  const spec = evaluated({ every: 1 });
  const old = Array.from({ length: 64 }, (_, number) => ({
    number,
    checkpoint: `old-${number}`,
    version: 'v',
    step: number,
    state: number === 0 ? ('running' as const) : ('failed' as const),
    jobId: null,
    metrics: {},
    cause: null,
    message: null,
    dueAtMs: someMs,
    endedAtMs: null,
  }));
  const before = aJob(1, { spec });
  const known = { job: before.id, seen: 64, bestValue: null, next: 64, evaluations: old };
  const after = withDueEvaluations(before, { ...before, checkpoints: [aCheckpoint(99)] }, known, someMs);
  expect(after?.evaluations.map(({ number }) => number)).toEqual([
    0,
    ...old.slice(2).map(({ number }) => number),
    64,
  ]);
});
