import type { ArrayId, JobId } from '@muster/common/ids';
import type { TerminalJobState as Outcome } from '@muster/common/states';
import { expect, test } from 'vitest';
import type { Job } from '../model.ts';
import { aJob, aSpec, jobIdOf } from '../modelFixture.ts';
import type { JobArrayRecord } from '../store/store.ts';
import { anArray } from '../store/storeFixture.ts';
import { forgetOutcomes, learnOutcomes } from './endedJobs.ts';

const memoryOf = (jobs: readonly Job[], ended: number) => ({
  jobs: new Map(jobs.map((job) => [job.id, job])),
  arrays: new Map<ArrayId, JobArrayRecord>(),
  arrayFailures: new Map<ArrayId, Set<JobId>>(),
  successors: new Map<JobId, JobId>(),
  outcomes: new Map<JobId, Outcome>(Array.from({ length: ended }, (_, index) => [jobIdOf(index), 'failed'])),
});

test('memory does not grow with the jobs that have ended, and keeps what active ones come after', () => {
  const memory = memoryOf([aJob(99_999, { spec: aSpec({ after: [jobIdOf(3)] }) })], 20_001);

  forgetOutcomes(memory);

  expect(memory.outcomes.size).toBe(10_000);
  expect(memory.outcomes.get(jobIdOf(3))).toBe('failed');
  expect(memory.outcomes.has(jobIdOf(20_000))).toBe(true);
  expect(memory.outcomes.has(jobIdOf(4))).toBe(false);
});

test('nor with arrays: it keeps those that jobs come after, stored or still to be stored', () => {
  const idOf = (number: number) => `arr_${String(number).padStart(12, '0')}` as ArrayId;
  const after = (number: number) => aSpec({ after: [idOf(number)] });
  const memory = memoryOf([aJob(99_999, { spec: after(3) })], 1);
  memory.arrays.set(idOf(99_999), { ...anArray(9), spec: after(5) });
  for (let number = 0; number <= 20_000; number += 1) memory.arrayFailures.set(idOf(number), new Set());

  forgetOutcomes(memory);

  expect(memory.arrayFailures.size).toBe(10_000);
  const isKept = (number: number) => memory.arrayFailures.has(idOf(number));
  expect([3, 4, 5, 20_000].map(isKept)).toEqual([true, false, true, true]);
  expect(memory.outcomes.size).toBe(1);
});

test('only what memory does not tell is read', async () => {
  const memory = memoryOf([aJob(10)], 2);
  const asked: (readonly JobId[])[] = [];
  const readOutcomes = async (ids: readonly JobId[]) => {
    asked.push(ids);
    return new Map<JobId, Outcome>([[jobIdOf(7), 'succeeded']]);
  };

  await learnOutcomes(memory, { readOutcomes }, [
    jobIdOf(1),
    jobIdOf(7),
    jobIdOf(8),
    jobIdOf(7),
    jobIdOf(10),
  ]);
  await learnOutcomes(memory, { readOutcomes }, [jobIdOf(1), jobIdOf(7)]);

  expect(asked).toEqual([[jobIdOf(7), jobIdOf(8)]]);
  expect(memory.outcomes.get(jobIdOf(7))).toBe('succeeded');
});
