import type { JobId } from '@muster/common/ids';
import type { TerminalJobState as Outcome } from '@muster/common/states';
import { expect, test } from 'vitest';
import type { Job } from '../model.ts';
import { aJob, aSpec, jobIdOf } from '../modelFixture.ts';
import { forgetOutcomes, learnOutcomes } from './endedJobs.ts';

const memoryOf = (jobs: readonly Job[], ended: number) => ({
  jobs: new Map(jobs.map((job) => [job.id, job])),
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
