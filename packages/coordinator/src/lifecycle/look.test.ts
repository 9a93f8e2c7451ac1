import type { Checkpoint, CheckpointLook, FoundCheckpoint } from '@muster/common/checkpoints';
import { describe, expect, test } from 'vitest';
import { aCheckpoint, nodeNameOf } from '../modelFixture.ts';
import { aGang, aStory, type Story } from '../storyFixture.ts';
import { lookOrderOf } from './look.ts';

/** A checkpoint as the agent finds it. */
function found(step: number, facts: Partial<Checkpoint> = {}, attempt: number | null = 1): FoundCheckpoint {
  const { attempt: _, node: __, shared: ___, suspect: ____, ...checkpoint } = aCheckpoint(step, facts);
  return { checkpoint, by: attempt === null ? null : aStory().job.id, attempt };
}

const look = (...all: readonly FoundCheckpoint[]): CheckpointLook => ({
  found: all,
  shared: true,
  problem: null,
  tookMs: 3,
});

/** Its first attempt has reported these, and its node was lost; the second one is allocated to resume from the newest of them. */
function secondAttempt(steps: readonly number[], make: () => Story = aStory): Story {
  const story = make().allRunning();
  for (const step of steps) story.saved(step, {}, { shared: true });
  story.lost(0);
  for (const { nodeRank } of story.tasks.slice(1)) story.ended(nodeRank);
  const last = steps.at(-1);
  const resume = last === undefined ? null : { name: `checkpoint-${last}`, step: last };
  return story.allocated({ resume });
}

describe('a look before the start', () => {
  test('offers a newer checkpoint, which is resumed from', () => {
    const story = secondAttempt([6]).prepared(0, { look: look(found(6), found(25), found(24)) });
    const why = 'found on disk; node-1 had reported step 6';
    expect(story.attempt?.resume).toEqual({ name: 'checkpoint-25', step: 25, why });
    expect(story.data('attempt.resume_chosen')).toMatchObject({
      resume: { name: 'checkpoint-25', step: 25 },
      planned: { name: 'checkpoint-6', step: 6 },
      why,
    });
    expect(story.attempt?.state).toBe('released');
    // Each is booked on the attempt that the index names.
    expect(
      story.job.checkpoints.map(({ step, attempt, found: isFound }) => [step, attempt, isFound]),
    ).toEqual([
      [6, 1, undefined],
      [24, 1, true],
      [25, 1, true],
    ]);
  });

  test('that confirms the planned one changes nothing', () => {
    const story = secondAttempt([6]).prepared(0, { look: look(found(6)) });
    expect(story.attempt?.resume).toEqual({ name: 'checkpoint-6', step: 6 });
    expect(story.events).not.toContain('attempt.resume_chosen');
  });

  test('of an older agent does not take place, and the planned one stays', () => {
    const story = secondAttempt([6]).prepared(0);
    expect(story.attempt).toMatchObject({ state: 'released', resume: { name: 'checkpoint-6', step: 6 } });
  });

  test.each([
    ['gone', 'it no longer exists', {}],
    ['corrupt', 'it was cut off', { version: 'another' }],
    ['unverified', 'it was not read in time', { version: 'another' }],
  ] as const)('that finds it %s takes the next best, at no cost', (verdict, problem, changes) => {
    const bad = found(20, { verdict, problem, depth: null, ...changes });
    const story = secondAttempt([10, 20]).prepared(0, { look: look(bad, found(10)) });
    const why = `checkpoint-20 cannot be used: ${problem}`;
    expect(story.attempt).toMatchObject({
      state: 'released',
      resume: { name: 'checkpoint-10', step: 10, why },
    });
    expect(story.job.checkpoints.at(-1)).toMatchObject({ name: 'checkpoint-20', verdict, problem });
    expect(story.job).toMatchObject({ failures: 0, failedStarts: 0, lastAttempt: 2 });
  });

  test('that has read another version again resumes from that one', () => {
    const again = found(20, { version: 'another', depth: 'deep' });
    const story = secondAttempt([10, 20]).prepared(0, { look: look(again) });
    const why = 'read again, for it has changed since it was verified';
    expect(story.attempt?.resume).toEqual({ name: 'checkpoint-20', step: 20, why });
    expect(story.job.checkpoints.at(-1)).toMatchObject({
      version: 'another',
      attempt: 1,
      verdict: 'verified',
    });
  });

  test('that finds nothing intact starts from scratch when nothing else is known', () => {
    const story = secondAttempt([20]).prepared(0, {
      look: look(found(20, { verdict: 'gone', problem: 'no' })),
    });
    expect(story.attempt).toMatchObject({ state: 'released', resume: null });
    expect(story.data('attempt.resume_chosen')).toMatchObject({ resume: null });
  });

  test('that could not read what is known ends the start, and the planner decides again', () => {
    const unread = found(20, { verdict: 'unverified', depth: null, problem: 'it cannot be read' });
    const story = secondAttempt([20]).prepared(0, { look: look(unread) });
    expect(story.job).toMatchObject({ state: { kind: 'queued' }, failures: 0, failedStarts: 1 });
    expect(story.excludedNodes).toEqual(['node-1']);
    expect(story.job.checkpoints).toMatchObject([{ name: 'checkpoint-20', verdict: 'verified' }]);
  });

  test('that sees an empty directory is not believed at once', () => {
    const nothing = {
      ...look(found(20, { verdict: 'gone', problem: 'no' })),
      problem: 'holds no checkpoint',
    };
    const story = secondAttempt([20]).prepared(0, { look: nothing });
    expect(story.job).toMatchObject({ state: { kind: 'queued' }, failures: 0, failedStarts: 1 });
    expect(story.job.checkpoints).toMatchObject([{ verdict: 'verified' }]);
    const resume = { name: 'checkpoint-20', step: 20 };
    story
      .allocated({ resume })
      .prepared(0, { look: nothing })
      .allocated({ resume })
      .prepared(0, { look: nothing });
    expect(story.attempt).toMatchObject({ state: 'released', resume: null });
    expect(story.job.checkpoints).toMatchObject([{ verdict: 'gone' }]);
  });

  test('does not bring back what is suspect, or what a user has chosen to leave out', () => {
    const story = secondAttempt([6, 25]);
    const checkpoints = story.job.checkpoints.map((each) =>
      each.step === 25 ? { ...each, suspect: true } : each,
    );
    story.job = { ...story.job, checkpoints };
    story.prepared(0, { look: look(found(6), found(25)) });
    expect(story.attempt?.resume?.name).toBe('checkpoint-6');
    const chosen = secondAttempt([6]);
    chosen.job = { ...chosen.job, resumeChoice: { kind: 'step', step: 20 } };
    chosen.prepared(0, { look: look(found(6), found(25), found(18)) });
    expect(chosen.attempt?.resume?.step).toBe(18);
  });

  test('is one of rank 0 of the current attempt, and of nobody else', () => {
    const gang = secondAttempt([6], aGang);
    gang.prepared(1, { look: look(found(25)) });
    expect(gang.attempt?.resume).toEqual({ name: 'checkpoint-6', step: 6 });
    gang.on({
      kind: 'prepared',
      attempt: 1,
      nodeRank: 0,
      master: null,
      endpoints: [],
      testPort: null,
      look: look(found(25)),
    });
    expect(gang.job.checkpoints).toHaveLength(1);
    gang.prepared(0, { look: look(found(25), found(6)) });
    expect(gang.attempt?.resume?.step).toBe(25);
    expect(gang.attempt?.network?.round).toBe(1);
  });

  test('that is reported again changes nothing', () => {
    const both = look(found(6), found(25));
    const gang = secondAttempt([6], aGang).prepared(0, { look: both });
    const before = gang.job;
    gang.prepared(0, { look: both });
    expect(gang.job).toBe(before);
  });

  test.each([
    ['another job has saved', { ...found(25, {}, 3), by: 'job_zzzzzzzzzzzz' }, 0],
    ['nobody has noted', found(25, {}, null), 1],
    ['a later attempt than this one has saved', found(25, {}, 9), 1],
  ])('books what %s on an earlier attempt', (_, each, attempt) => {
    const story = secondAttempt([]).prepared(0, { look: look(each) });
    expect(story.job.checkpoints).toMatchObject([{ step: 25, attempt }]);
  });
});

describe('the order to look', () => {
  const orderOf = ({ job, attempt }: Story) => (attempt === null ? null : lookOrderOf(job, attempt));

  test('names the candidates with their versions, from the planned one on', () => {
    const story = secondAttempt([10, 20]);
    const [first] = orderOf(story)?.candidates ?? [];
    expect(first).toMatchObject({ name: 'checkpoint-20', version: story.job.checkpoints.at(-1)?.version });
    expect(orderOf(story)?.candidates.map(({ name }) => name)).toEqual(['checkpoint-20', 'checkpoint-10']);
  });

  test('leaves out what lies on the disk of another machine', () => {
    const story = secondAttempt([10, 20]);
    const away = { node: nodeNameOf('node-9'), shared: false };
    const checkpoints = story.job.checkpoints.map((each) => (each.step === 10 ? { ...each, ...away } : each));
    story.job = { ...story.job, checkpoints };
    expect(orderOf(story)?.candidates.map(({ name }) => name)).toEqual(['checkpoint-20']);
  });

  test('is none for the first attempt of a job, and for one that starts from scratch', () => {
    expect(orderOf(aStory().allocated())).toBeNull();
    const story = secondAttempt([10]);
    expect(orderOf(story)).not.toBeNull();
    story.job = { ...story.job, resumeChoice: { kind: 'start' } };
    expect(orderOf(story)).toBeNull();
  });

  test('is one for an attempt that knows of no checkpoint: its predecessor may have saved some', () => {
    expect(orderOf(secondAttempt([]))).toEqual({ candidates: [], stepMax: null });
  });
});
