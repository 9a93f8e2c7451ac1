import { describe, expect, it } from 'vitest';
import { anExit } from '../modelFixture.ts';
import { aStory, crash, type Story } from '../storyFixture.ts';
import { resumeCandidates } from './resume.ts';

const onceMore = { retry: { max_attempts: 9, on: ['exit_code' as const, 'nan_loss' as const] } };

/** Attempt 1 has reported step 6 when its node was lost. Attempt 2 resumes from `step`, and reports what it finds. */
function afterALostNode(step = 6): Story {
  const story = aStory(onceMore).allRunning().saved(6).ended(0, crash);
  return story.allRunning({ resume: { name: `checkpoint-${step}`, step } });
}

const by = (story: Story, attempt: number) => ({ saver: { job: story.job.id, attempt } });

describe('a checkpoint that a later attempt finds', () => {
  it('counts for the attempt that the index names, and is no progress of the later one', () => {
    const story = afterALostNode();
    story.saved(25, {}, by(story, 1));
    expect(story.job.checkpoints).toMatchObject([
      { step: 6, attempt: 1 },
      { step: 25, attempt: 1, found: true },
    ]);
    expect(story.job.checkpoints[1]).not.toHaveProperty('saverUnknown');
    expect(story.job.failures).toBe(1);
    expect(resumeCandidates(story.job)[0]?.step).toBe(25);
  });

  it('that no index names counts as found on disk, before all that the current attempt saves', () => {
    const story = afterALostNode();
    story.saved(7, {}, by(story, 2)).saved(25, {}, { saver: null });
    expect(
      story.job.checkpoints.map(({ step, attempt, saverUnknown }) => [step, attempt, saverUnknown]),
    ).toEqual([
      [6, 1, undefined],
      [25, 1, true],
      [7, 2, undefined],
    ]);
    expect(resumeCandidates(story.job)[0]?.step).toBe(7);
  });

  it('of a job that it continues is older than all that its attempts save', () => {
    const story = afterALostNode();
    story.saved(25, {}, { saver: { job: 'job_of_before', attempt: 7 } });
    expect(story.job.checkpoints.map(({ step, attempt }) => [step, attempt])).toEqual([
      [25, 0],
      [6, 1],
    ]);
  });

  it.each([0, 1e15])(
    'is told from one of the current attempt without a step, at any time of it (%i)',
    (savedAtMs) => {
      const story = aStory(onceMore).allRunning().saved(null, { savedAtMs: 5 }).ended(0, crash);
      story.allRunning({ resume: { name: 'ckpt.pt', step: null } });
      story.saved(null, { name: 'found.pt', savedAtMs }, by(story, 1));
      expect(story.job.failures).toBe(1);
      story.saved(null, { name: 'own.pt', savedAtMs }, by(story, 2));
      expect(story.job.checkpoints.map(({ name, attempt }) => [name, attempt])).toContainEqual(['own.pt', 2]);
      expect(story.job.checkpoints.at(-1)?.name).toBe('own.pt');
      expect(story.job.failures).toBe(0);
    },
  );

  it('is not progress of a program that began again', () => {
    const story = afterALostNode();
    story.saved(1, { version: 'v2' }, by(story, 2));
    expect(resumeCandidates(story.job)[0]?.step).toBe(6);
  });

  it('of an agent of the release before is told by its step', () => {
    const story = afterALostNode().saved(25);
    expect(story.job.checkpoints.at(-1)).toMatchObject({ step: 25, attempt: 2 });
  });
});

describe('beyond the last sign of the training that saved it', () => {
  /** Attempt 3 resumes from step 25, which was found beside step 20, and its loss is not a number. */
  function diverging(lastGoodStep: number | null): Story {
    const story = afterALostNode();
    story.saved(20, {}, by(story, 1)).saved(25, {}, { saver: null }).ended(0, crash);
    story.allRunning({ resume: { name: 'checkpoint-25', step: 25 } });
    return story.noticed({ step: 30, lastGoodStep });
  }

  it('nothing is known to be sound: without a good step after it, all that was found goes', () => {
    expect(resumeCandidates(diverging(null).job).map(({ step }) => step)).toEqual([6, 25, 20]);
    expect(resumeCandidates(diverging(25).job).map(({ step }) => step)).toEqual([6, 25, 20]);
  });

  it('a good step shows that it was sound', () => {
    expect(resumeCandidates(diverging(26).job)[0]?.step).toBe(25);
  });

  it('a divergence that was noticed marks what is found later, too', () => {
    const story = aStory({ ...onceMore, on_divergence: 'warn' })
      .allRunning()
      .saved(6);
    story.noticed({ step: 9, lastGoodStep: 8 }).saved(10).ended(0, crash);
    story.allRunning({ resume: { name: 'checkpoint-6', step: 6 } });
    story.saved(12, {}, by(story, 1)).saved(8, {}, by(story, 1));
    expect(story.job.checkpoints.filter(({ diverged }) => diverged === true).map(({ step }) => step)).toEqual(
      [10, 12],
    );
  });
});

it('a report after the end of its attempt changes nothing', () => {
  const story = afterALostNode();
  const before = story.job;
  story.saved(25, {}, { attempt: 1, ...by(story, 1) });
  expect(story.job).toBe(before);
  expect(story.ended(0, anExit()).job.checkpoints).toHaveLength(1);
});
