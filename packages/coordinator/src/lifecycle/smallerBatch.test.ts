/** How far a batch is made smaller after attempts that ran out of GPU memory, where the command has its size. */
import { causeOf } from '@muster/common/cause';
import { defaultRetryCauses } from '@muster/common/spec/causes';
import { expect, test } from 'vitest';
import { aJob, anAttempt, aSpec } from '../modelFixture.ts';
import { finalCause, recoveryOf } from './recovery.ts';

const oom = causeOf('cuda_oom', 'rank 0 on node-1: CUDA out of memory', { nodeRank: 0, node: 'node-1' });

function aFailing(batchSize: number, retry: object = {}) {
  const params = { batch_size: batchSize };
  return aJob(1, { spec: aSpec({ command: ['train', '--batch={batch_size}'], params, retry }) });
}

test.each([
  ['twice where a third time would be below 1', 4, undefined, [0.5, 0.25]],
  ['not at all with a batch of 1', 1, undefined, []],
  ['down to the least batch of the spec', 32, 8, [0.5, 0.25]],
  ['not below it because of rounding', 31, 8, [0.5]],
])('the batch is made smaller %s', (_name, batchSize, least, scales) => {
  let job = aFailing(batchSize, least === undefined ? {} : { batch_min: least });
  for (const batchScale of scales) {
    const retried = recoveryOf(job, anAttempt(1), oom);
    expect(retried.outcome.next).toBe('queued');
    expect(retried.job.batchScale).toBe(batchScale);
    job = retried.job;
  }
  const last = recoveryOf(job, anAttempt(1), oom);
  expect(last.outcome.next).toBe('failed');
  expect(last.job.batchScale).toBe(scales.at(-1) ?? 1);
  const bound = '; a smaller batch would be below retry.batch_min, which is 8';
  expect(finalCause(last.job, oom).message.endsWith(bound)).toBe(least !== undefined);
});

test('a job that is not retried keeps the batch that it ran with', () => {
  const never = defaultRetryCauses.filter((cause) => cause !== 'cuda_oom');
  for (const retry of [{ on: never }, { max_attempts: 1 }]) {
    const { job, outcome } = recoveryOf(aFailing(32, retry), anAttempt(1), oom);
    expect(outcome.next).toBe('failed');
    expect(job.batchScale).toBe(1);
    expect(finalCause(job, oom).message).toBe(oom.message);
  }
});
