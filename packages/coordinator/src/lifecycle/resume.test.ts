import type { Checkpoint } from '@muster/common/checkpoints';
import { describe, expect, it, test } from 'vitest';
import type { Job } from '../model.ts';
import { aCheckpoint, aJob } from '../modelFixture.ts';
import { resumeCandidates } from './resume.ts';

const jobWith = (checkpoints: readonly Checkpoint[], fields: Partial<Job> = {}) =>
  aJob(1, { checkpoints, ...fields });
const names = (job: Job) => resumeCandidates(job).map(({ name }) => name);

describe('candidates', () => {
  const bad = [
    aCheckpoint(300, { verdict: 'unverified' }),
    aCheckpoint(400, { verdict: 'corrupt' }),
    aCheckpoint(500, { suspect: true }),
  ];

  it('are verified and not suspected, the newest first', () => {
    expect(names(jobWith([aCheckpoint(100), aCheckpoint(200), ...bad]))).toEqual([
      'checkpoint-200',
      'checkpoint-100',
    ]);
  });

  it('are in the order in which they were saved: a later attempt may have begun further back', () => {
    const job = jobWith([aCheckpoint(300), aCheckpoint(150, { attempt: 2 })]);
    expect(names(job)).toEqual(['checkpoint-150', 'checkpoint-300']);
  });

  test.each([
    [250, ['checkpoint-200', 'checkpoint-150', 'checkpoint-100']],
    [200, ['checkpoint-200', 'checkpoint-150', 'checkpoint-100']],
    [199, ['checkpoint-150', 'checkpoint-100']],
    [99, []],
  ])('at or before step %i are the furthest of them first, whichever attempt saved them', (step, wanted) => {
    const saved = [aCheckpoint(100), aCheckpoint(200), aCheckpoint(150, { attempt: 2 }), aCheckpoint(null)];
    expect(names(jobWith([...saved, ...bad], { resumeChoice: { kind: 'step', step } }))).toEqual(wanted);
  });

  it('are none for a job that is to begin from nothing', () => {
    expect(names(jobWith([aCheckpoint(100)], { resumeChoice: { kind: 'start' } }))).toEqual([]);
  });
});
