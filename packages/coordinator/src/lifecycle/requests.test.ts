import { describe, expect, it } from 'vitest';
import { aCheckpoint, anExit, jobIdOf } from '../modelFixture.ts';
import { aGang, aStory, crash } from '../storyFixture.ts';

const terminated = anExit({ exitCode: null, signal: 'SIGTERM' });

describe('a job that is preempted', () => {
  it('comes back to the queue with its place, at no cost and without a wait', () => {
    const story = aGang().allRunning().preempted();
    expect(story.job.state).toMatchObject({ kind: 'stopping', outcome: { charge: 'preemption' } });
    expect(story.data('job.preempted')).toMatchObject({
      attempt: 1,
      by: jobIdOf(2),
      message: 'preempted by job_2, which has more priority',
    });
    expect(story.ended(0, terminated).ended(1, crash).job).toMatchObject({
      submitSeq: 1,
      preemptions: 1,
      failures: 0,
      failuresInRow: 0,
      recentFailures: [],
      state: {
        kind: 'queued',
        backoffMs: 0,
        lastCause: { kind: 'preempted', message: 'preempted by job_2, which has more priority' },
      },
    });
  });

  it('does so at once while nothing of it runs', () => {
    expect(aGang().allocated().preempted().job).toMatchObject({ preemptions: 1, state: { kind: 'queued' } });
  });

  it('does so as often as it must', () => {
    const story = aStory({ preemptible: true, retry: { max_attempts: 1, max_preemptions: 2 } });
    for (let times = 1; times <= 20; times += 1) {
      expect(story.allRunning().preempted().ended(0, crash).job).toMatchObject({
        preemptions: times,
        state: { kind: 'queued', breakerOpen: false },
      });
    }
  });

  it('does so once, and not when it is on its way out', () => {
    for (const story of [aGang().allRunning().preempted(), aGang().allRunning().stopped()]) {
      const before = story.job;
      expect(story.preempted().job).toBe(before);
    }
    const requeued = aStory().allRunning().requeued().ended(0).allRunning();
    const before = requeued.job;
    expect(requeued.preempted({ attempt: 1 }).job).toBe(before);
  });
});

describe('a requeue from somewhere', () => {
  const from = { kind: 'step', step: 100 } as const;

  it('stops the attempt, which begins there next', () => {
    const story = aStory({}, { checkpoints: [aCheckpoint(100)] })
      .allRunning()
      .requeued(from);
    expect(story.job).toMatchObject({
      resumeChoice: from,
      state: { outcome: { cause: { message: 'requeued by a user, to resume from step 100' } } },
    });
  });

  it('is noted by a job that waits, or is about to', () => {
    for (const story of [aStory(), aStory().allRunning().preempted()]) {
      expect(story.requeued(from).job.resumeChoice).toEqual(from);
      expect(story.data('job.requeued')).toMatchObject({ from });
      const before = story.job;
      expect(story.requeued(from).job).toBe(before);
      expect(story.requeued().job.resumeChoice).toEqual({ kind: 'newest' });
    }
  });

  it('is too late for one that ends for good', () => {
    const story = aStory().allRunning().stopped();
    const before = story.job;
    expect(story.requeued(from).job).toBe(before);
  });
});

describe('more time', () => {
  it('adds up', () => {
    const story = aStory({ max_runtime: '90s' }).allRunning();
    story.on({ kind: 'extend', byMs: 60_000 }).on({ kind: 'extend', byMs: 1_000 });
    expect(story.job.extraRuntimeMs).toBe(61_000);
    expect(story.data('job.extended')).toMatchObject({ byMs: 1_000, extraRuntimeMs: 61_000 });

    expect(story.on({ kind: 'timeLimit', attempt: 1 }).job.state).toMatchObject({
      outcome: { cause: { message: 'ran for its max_runtime of 90 s, extended by 61 s' } },
    });
  });

  it('is no use to a job that may take all it wants', () => {
    const story = aStory().allRunning();
    const before = story.job;
    expect(story.on({ kind: 'extend', byMs: 1 }).job).toBe(before);
  });
});
