import { describe, expect, it } from 'vitest';
import { aCheckpoint } from '../modelFixture.ts';
import { aStory, crash, type Story } from '../storyFixture.ts';
import { resumeCandidates } from './resume.ts';

const onceMore = { retry: { max_attempts: 9, on: ['exit_code' as const] } };
const namesOf = (story: Story) => story.job.checkpoints.map(({ name }) => name);
const aside = 'checkpoint-7.attempt-1';

/** Attempt 1 has saved steps 6 and 7. Attempt 2 resumes from 6, and its agent has set step 7 aside. */
function afterAside(): Story {
  const story = aStory(onceMore)
    .allRunning()
    .saved(6)
    .saved(7, { metrics: { train_loss: 2 } })
    .ended(0, crash);
  story.allRunning({ resume: { name: 'checkpoint-6', step: 6 } });
  return story.saved(7, { name: aside }, { saver: { job: story.job.id, attempt: 1 } });
}

describe('a checkpoint that was set aside', () => {
  it('keeps its place, its attempt and all that is known of it, and its old name is gone', () => {
    const story = afterAside();
    expect(namesOf(story)).toEqual(['checkpoint-6', aside]);
    expect(story.job.checkpoints[1]).toMatchObject({
      attempt: 1,
      step: 7,
      verdict: 'verified',
      metrics: { train_loss: 2 },
    });
    expect(story.data('checkpoint.gone')).toMatchObject({
      checkpoint: 'checkpoint-7',
      attempt: 1,
      problem: expect.stringContaining(aside),
    });
  });

  it('is no progress, and a repeated report changes nothing', () => {
    const story = afterAside();
    expect(story.job.failures).toBe(1);
    const before = story.job;
    story.saved(7, { name: aside }, { saver: { job: before.id, attempt: 1 } });
    expect(story.job.checkpoints).toEqual(before.checkpoints);
  });

  it('is not resumed from unasked, and what the attempt saves under its old name is another one', () => {
    const story = afterAside();
    expect(resumeCandidates(story.job).map(({ name }) => name)).toEqual(['checkpoint-6']);
    story.saved(7, { version: 'v2' }, { saver: { job: story.job.id, attempt: 2 } });
    expect(namesOf(story)).toEqual(['checkpoint-6', aside, 'checkpoint-7']);
    expect(resumeCandidates(story.job).map(({ name }) => name)).toEqual(['checkpoint-7', 'checkpoint-6']);
  });

  it('that was not known under its old name is found', () => {
    const story = afterAside();
    story.saved(9, { name: 'checkpoint-9.attempt-1' }, { saver: null });
    expect(story.job.checkpoints.find(({ step }) => step === 9)).toMatchObject({ attempt: 1, found: true });
    expect(resumeCandidates(story.job)[0]?.step).toBe(6);
  });
});

describe('a user who wants to resume', () => {
  const checkpoints = [aCheckpoint(6), aCheckpoint(7, { name: aside }), aCheckpoint(8, { attempt: 2 })];
  const wants = (resumeChoice: Parameters<typeof resumeCandidates>[0]['resumeChoice']) =>
    resumeCandidates({ checkpoints, resumeChoice }).map(({ name }) => name);

  it('names it, and gets that one or none', () => {
    expect(wants({ kind: 'name', name: aside })).toEqual([aside]);
    expect(wants({ kind: 'name', name: 'checkpoint-6' })).toEqual(['checkpoint-6']);
    expect(wants({ kind: 'name', name: 'checkpoint-7' })).toEqual([]);
  });

  it('gets it by a step that no other one has', () => {
    expect(wants({ kind: 'step', step: 7 })).toEqual([aside, 'checkpoint-6']);
    expect(wants({ kind: 'step', step: 8 })).toEqual(['checkpoint-8', 'checkpoint-6']);
  });
});
