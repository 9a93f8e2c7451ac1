import { attemptSpanIdOf, traceIdOf } from '@muster/common/traceContext';
import { expect, test } from 'vitest';
import { aJob } from '../modelFixture.ts';
import { traceparentOfAttempt } from './traceparent.ts';

const [traceId, spanId] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];
const [sampled, notSampled] = [`00-${traceId}-${spanId}-01`, `00-${traceId}-${spanId}-00`];
const job = aJob(1);
const [all, none] = [() => true, () => false];

test('a program goes on below the span of its attempt, and learns whether that is recorded', () => {
  const own = `00-${traceIdOf(job.id, null)}-${attemptSpanIdOf(job.id, 2)}`;
  expect(traceparentOfAttempt(job, 2, all)).toBe(`${own}-01`);
  expect(traceparentOfAttempt(job, 2, none)).toBe(`${own}-00`);
});

test('what the caller of the submit has decided holds, whatever the ratio says', () => {
  const given = `00-${traceId}-${attemptSpanIdOf(job.id, 1)}`;
  expect(traceparentOfAttempt({ ...job, traceparent: sampled }, 1, none)).toBe(`${given}-01`);
  expect(traceparentOfAttempt({ ...job, traceparent: notSampled }, 1, all)).toBe(`${given}-00`);
});

test('a coordinator that records nothing hands on what it was given', () => {
  expect(traceparentOfAttempt({ ...job, traceparent: sampled }, 1, null)).toBe(sampled);
  expect(traceparentOfAttempt(job, 1, null)).toBeNull();
});
