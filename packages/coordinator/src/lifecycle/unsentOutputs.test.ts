/** Outputs that could not be sent to their store: made and sent again by default, though no stored spec contains that. */
import { causeOf } from '@muster/common/cause';
import { defaultRetryCauses } from '@muster/common/spec/causes';
import type { JobSpecFile } from '@muster/common/spec/types';
import { expect, test } from 'vitest';
import { aCheckpoint, aJob, anAttempt, aSpec, aTask, someMs } from '../modelFixture.ts';
import { recoveryOf } from './recovery.ts';

function recover(retry: NonNullable<JobSpecFile['retry']>, failures = 0) {
  const resume = { name: 'checkpoint-100', step: 100 };
  const job = aJob(1, { spec: aSpec({ retry }), checkpoints: [aCheckpoint(100)], lastAttempt: 1, failures });
  const attempt = anAttempt(1, { state: 'running', runningAtMs: someMs, resume, tasks: [aTask(0)] });
  const cause = causeOf('artifact_store', 'the store does not answer', { nodeRank: 0, node: 'node-1' });
  return { spec: job.spec, ...recoveryOf(job, attempt, cause) };
}

test('they are retried on other nodes first, each time at the cost of an attempt', () => {
  const { outcome, job } = recover({ max_attempts: 2 });
  expect(outcome).toMatchObject({ next: 'queued', charge: 'failure' });
  expect(job.excludedNodes.map(({ node }) => node)).toEqual(['node-1']);
  expect(job.checkpoints.some(({ suspect }) => suspect)).toBe(false);
  expect(recover({ max_attempts: 2 }, 1).outcome.next).toBe('failed');
});

test('that changes no stored spec, and nothing where the file names causes', () => {
  expect(recover({}).spec.retry.on).toEqual(defaultRetryCauses);
  expect(recover({ on: [...defaultRetryCauses, 'exit_code'] }).outcome.next).toBe('failed');
  expect(recover({ on: ['node_lost'] }).outcome.next).toBe('failed');
  expect(recover({ on: ['artifact_store'] }).outcome.next).toBe('queued');
});
