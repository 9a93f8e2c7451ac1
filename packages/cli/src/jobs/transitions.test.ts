import type { JobView } from '@muster/common/views';
import { expect, test } from 'vitest';
import { aCause, aJob, anAttempt, aTask, submittedAtMs } from '../testing/fakeCoordinator.ts';
import { allReported, nothingReported, problemsOf, transitions } from './transitions.ts';

const evidence = { line: 13, text: 'CUDA out of memory', rank: 1 };
const oom = { ...aCause('cuda_oom', 'rank 1 on node-1 exited with code 1: CUDA out of memory'), evidence };
const tasks = [aTask(), aTask({ nodeRank: 1, node: 'node-2' })];
const endedMs = submittedAtMs + 9_000;
const failed = (number: number) =>
  anAttempt({ number, tasks, state: 'ended', endedAtMs: endedMs, cause: oom });
const backoff = { kind: 'backoff', message: 'next retry in 2 s', remedy: null, waitMs: 1_900 } as const;
const retry = { max_attempts: 5 };
const job = (fields: Partial<JobView>) =>
  aJob({ spec: { name: 'train', command: ['true'], retry }, ...fields });

/** What is told at each look, one after the other. */
function story(...looks: readonly JobView[]): readonly (readonly string[])[] {
  let reported = nothingReported;
  return looks.map((look) => {
    const { lines, reported: then } = transitions(look, reported);
    reported = then;
    return lines;
  });
}

test('a failure, the retry with what has changed, the pause and the next attempt are reported once each', () => {
  const queued = job({ attempts: [failed(1)], pending: backoff, failures: 1, batchScale: 0.5 });
  const open = { ...backoff, kind: 'circuit_open', message: '3 failures: next retry in 60 s' } as const;
  expect(
    story(
      job({ state: 'running', attempts: [anAttempt({ tasks })] }),
      queued,
      { ...queued, pending: { ...backoff, message: 'next retry in 1 s', waitMs: 800 } },
      { ...queued, pending: open },
      job({
        state: 'running',
        attempts: [failed(1), anAttempt({ number: 2, tasks, resume: { name: 'ckpt-100', step: 100 } })],
      }),
    ),
  ).toEqual([
    ['attempt 1 runs on node-1, node-2'],
    ['attempt 1 failed: CUDA OOM (rank 1). Retry 2/5 in 2 s, MUSTER_BATCH_SCALE=0.5'],
    [],
    ['waiting: 3 failures: next retry in 60 s'],
    ['attempt 2 runs on node-1, node-2; offered ckpt-100 (step 100)'],
  ]);
});

test('a resume is reported once the output shows it, and a program that ignores its checkpoint', () => {
  const resume = { name: 'ckpt-100', step: 100 };
  const at = (kind: 'resume_confirmed' | 'resume_ignored', step: number) =>
    job({
      state: 'running',
      attempts: [anAttempt({ number: 2, tasks, resume, signs: [{ kind, step, lastGoodStep: null }] })],
    });
  const begun = job({ state: 'running', attempts: [anAttempt({ number: 2, tasks, resume })] });
  expect(story(begun, at('resume_confirmed', 101))[1]).toEqual([
    'attempt 2 resumed from ckpt-100 (step 100): its output begins at step 101',
  ]);
  expect(problemsOf(at('resume_confirmed', 101))).toEqual([]);
  expect(problemsOf(at('resume_ignored', 0))).toHaveLength(1);
  expect(story(begun, at('resume_ignored', 0))[1]).toEqual([
    'attempt 2: checkpoint not loaded: the output begins at step 0',
  ]);
});

test('what happened while nobody looked is reported afterwards, in order', () => {
  const late = job({ state: 'running', attempts: [anAttempt({ number: 3, tasks }), failed(2), failed(1)] });
  expect(story(late)[0]).toEqual([
    'attempt 1 runs on node-1, node-2',
    'attempt 1 failed: CUDA OOM (rank 1)',
    'attempt 2 runs on node-1, node-2',
    'attempt 2 failed: CUDA OOM (rank 1)',
    'attempt 3 runs on node-1, node-2',
  ]);
  expect(transitions(late, allReported(late)).lines).toEqual([]);
});

test('a preemption and what it waits for then, signs and a hang are reported; the end itself is not', () => {
  const cause = aCause('preempted', 'preempted by job_b (priority 90 over 10)');
  const preempted = { ...failed(1), cause };
  const pending = {
    kind: 'no_gpus_free',
    message: 'waiting for 2 free GPUs on one node',
    remedy: null,
  } as const;
  const signs = [{ kind: 'nan_loss', step: 80, lastGoodStep: 70 }] as const;
  const second = anAttempt({ number: 2, tasks, signs, hungAtMs: endedMs, hangs: true });
  expect(
    story(
      job({ attempts: [preempted], pending }),
      job({ state: 'running', attempts: [preempted, second] }),
      job({
        state: 'failed',
        endedAtMs: endedMs,
        cause: oom,
        attempts: [preempted, { ...failed(2), signs }],
      }),
    ),
  ).toEqual([
    [
      'attempt 1 runs on node-1, node-2',
      'attempt 1 ended: preempted by job_b (priority 90 over 10)',
      'waiting for 2 free GPUs on one node',
    ],
    [
      'attempt 2 runs on node-1, node-2',
      'attempt 2: loss NaN at step 80 (last normal step: 70)',
      'attempt 2: no progress, it hangs',
    ],
    [],
  ]);
});

test('a job that can never start is reported with what would help', () => {
  const pending = { kind: 'never_fits', message: 'no node has 5 GPUs', remedy: 'ask for at most 2' } as const;
  expect(story(job({ pending }))).toEqual([['waiting: no node has 5 GPUs; ask for at most 2']]);
});
