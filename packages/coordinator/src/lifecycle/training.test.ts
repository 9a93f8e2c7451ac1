import { describe, expect, it } from 'vitest';
import { anExit, someMs } from '../modelFixture.ts';
import { aGang, aStory, crash, type Story } from '../storyFixture.ts';
import { resumeCandidates } from './resume.ts';

const terminated = anExit({ exitCode: null, signal: 'SIGTERM' });
const counted = (story: Story, kind: string) => story.events.filter((each) => each === kind).length;

describe('a sign', () => {
  it('is reported with its place', () => {
    const story = aGang().allRunning().noticed({ rank: 3 }, 1);
    expect(story.data('training.nan_loss')).toMatchObject({
      attempt: 1,
      nodeRank: 1,
      node: 'node-2',
      rank: 3,
      step: 120,
      lastGoodStep: 119,
      line: 7,
      text: 'loss nan',
    });
    expect(story.job.state.kind).toBe('running');
  });

  it('is reported once, however often and by whomever it is reported, and anew in the next attempt', () => {
    const retry = { max_attempts: 3, on: ['exit_code' as const] };
    const story = aGang({ retry }).allRunning().noticed();
    const before = story.job;
    expect(story.noticed().noticed({ rank: 1 }, 1).job).toBe(before);
    expect(counted(story, 'training.nan_loss')).toBe(1);
    story.noticed({ step: 121 }).noticed({ kind: 'loss_spike' });
    expect(story.events.slice(-2)).toEqual(['training.nan_loss', 'training.loss_spike']);

    story.ended(0, crash).ended(1, terminated).allRunning().noticed();
    expect(counted(story, 'training.nan_loss')).toBe(3);
  });

  it('of a resume is reported once, of an attempt that was offered a checkpoint, and stops nothing', () => {
    const ignored = { kind: 'resume_ignored', step: 0, lastGoodStep: null } as const;
    const first = aStory({ on_divergence: 'stop' }).allRunning();
    const before = first.job;
    expect(first.noticed(ignored).job).toBe(before);

    const retry = { max_attempts: 3, on: ['exit_code' as const] };
    const story = aStory({ on_divergence: 'stop', retry }).allRunning().saved(100).ended(0, crash);
    story.allRunning({ resume: { name: 'checkpoint-100', step: 100 } }).noticed(ignored);
    expect(story.job.state.kind).toBe('running');
    expect(story.data('training.resume_ignored')).toMatchObject({ attempt: 2, step: 0 });
    const reported = story.job;
    expect(story.noticed({ ...ignored, kind: 'resume_confirmed', step: 101 }).job).toBe(reported);
    expect(story.job.checkpoints).toMatchObject([{ step: 100, suspect: false }]);
    expect(story.job.checkpoints[0]?.diverged).toBeUndefined();
  });

  it('of a divergence in a program that began again says nothing of what earlier attempts have saved', () => {
    const ignored = { kind: 'resume_ignored', step: 0, lastGoodStep: null } as const;
    for (const diverged of [
      { step: 31, lastGoodStep: 30 },
      { step: null, lastGoodStep: null },
    ]) {
      const retry = { max_attempts: 5, on: ['exit_code' as const, 'nan_loss' as const] };
      const story = aStory({ on_divergence: 'stop', retry })
        .allRunning()
        .saved(50)
        .saved(100)
        .ended(0, crash);
      story.allRunning({ resume: { name: 'checkpoint-100', step: 100 } });
      story.noticed(ignored).noticed(diverged).ended(0, terminated);
      expect(story.job).toMatchObject({ state: { kind: 'queued' }, lrScale: 0.1 });
      expect(resumeCandidates(story.job).map(({ step }) => step)).toEqual([100, 50]);
    }
  });

  it('is not reported for ever, and a flood of one kind hides no other', () => {
    const story = aStory().allRunning();
    for (let step = 0; step < 1_000; step += 1) story.noticed({ kind: 'loss_spike', step });
    expect(counted(story, 'training.loss_spike')).toBe(16);
    expect(counted(story.noticed(), 'training.nan_loss')).toBe(1);
  });

  it('of what has not begun, or is another attempt, is none', () => {
    const story = aStory().allocated();
    const before = story.job;
    expect(story.noticed().hung().job).toBe(before);
    expect(story.on({ kind: 'trainingComplete', attempt: 1, nodeRank: 0 }).job).toBe(before);
  });
});

describe('a divergence', () => {
  it.each(['nan_loss', 'loss_divergence', 'loss_scale_exhausted'] as const)(
    'of %s stops the attempt if the job says so, and that stays the cause',
    (kind) => {
      const story = aGang({ on_divergence: 'stop' }).allRunning().noticed({ kind, rank: 3 }, 1);
      expect(story.job.state).toMatchObject({
        kind: 'stopping',
        outcome: {
          next: 'queued',
          charge: 'failure',
          cause: { kind, nodeRank: null, node: 'node-2', evidence: { line: 7, text: 'loss nan', rank: 3 } },
        },
      });
      expect(story.ended(1, crash, 1, someMs).ended(0, crash, 1, someMs).job).toMatchObject({
        state: { kind: 'queued', lastCause: { kind } },
        lrScale: 0.1,
      });
      expect(story.data('job.queued')).toMatchObject({ lrScale: 0.1, batchScale: 1 });
    },
  );

  it('says in words what, where and since when', () => {
    const story = aStory({ on_divergence: 'stop', retry: { max_attempts: 1 } }).allRunning();
    expect(story.noticed().ended(0, crash).job.state).toMatchObject({
      kind: 'failed',
      cause: {
        message:
          'the loss is not a number at step 120 (last normal step: 119); rank 0 on node-1 reported it first',
      },
    });
  });

  it('is never a mere jump', () => {
    const story = aStory({ on_divergence: 'stop' }).allRunning().noticed({ kind: 'loss_spike' });
    expect(story.job.state.kind).toBe('running');
  });

  it('of an attempt that is stopped already changes nothing about that', () => {
    const story = aStory({ on_divergence: 'stop' }).allRunning().preempted().noticed();
    expect(story.job.state).toMatchObject({ outcome: { charge: 'preemption' } });
    expect(counted(story, 'training.nan_loss')).toBe(1);
  });
});

describe('a hang', () => {
  it('is reported with who stopped first, once for each standstill', () => {
    const story = aGang().allRunning();
    story.nowMs += 600_000;
    story.hung({ quietForMs: 590_000, rank: 3 }, 1);
    expect(story.data('attempt.hung')).toMatchObject({
      nodeRank: 1,
      node: 'node-2',
      rank: 3,
      quietForMs: 590_000,
      usualMs: 30_000,
      gpus: 'pinned',
    });
    const before = story.job;
    expect(story.hung({ quietForMs: 591_000 }).job).toBe(before);
    // It made progress, and hangs again.
    story.nowMs += 900_000;
    story.hung({ quietForMs: 600_000 });
    expect(counted(story, 'attempt.hung')).toBe(2);
    expect(story.job.state.kind).toBe('running');
  });

  it('ends the attempt if the job says so, as hung and nothing else', () => {
    const story = aGang({ on_hang: { action: 'restart' } })
      .allRunning()
      .hung({ rank: 1 }, 1);
    expect(story.job.state).toMatchObject({
      kind: 'stopping',
      outcome: { next: 'queued', charge: 'failure' },
    });
    expect(story.ended(1, crash, 1, someMs).ended(0, crash, 1, someMs).job.state).toMatchObject({
      kind: 'queued',
      lastCause: {
        kind: 'hung',
        message: 'no progress for 600 s (usually 30 s), GPUs pinned; rank 1 on node-2 stopped first',
        evidence: { line: null, rank: 1 },
      },
    });
  });

  it('is none of a job that does not run yet, or is on its way out', () => {
    const gang = { on_hang: { action: 'restart' as const } };
    for (const story of [aGang(gang).released(), aGang(gang).allRunning().preempted()]) {
      const before = story.job;
      expect(story.hung().job).toBe(before);
    }
  });
});

describe('the marker of a training that is complete', () => {
  const complete = (story: Story, attempt = 1) =>
    story.on({ kind: 'trainingComplete', attempt, nodeRank: 0 });

  it('ends the job well, however its tasks end', () => {
    const story = complete(aGang().allRunning());
    expect(story.job.state).toMatchObject({ kind: 'stopping', outcome: { next: 'succeeded' } });
    expect(story.ended(0, terminated).ended(1, crash).job.state.kind).toBe('succeeded');
    expect(counted(complete(story), 'training.complete')).toBe(1);
  });

  it.each([
    ['by a preemption', (story: Story) => story.preempted()],
    ['by a requeue', (story: Story) => story.requeued()],
  ])('counts while it is stopped %s: there is nothing to come back for', (_, stop) => {
    const story = aStory().allRunning();
    stop(story);
    expect(complete(story).ended(0, terminated).job.state.kind).toBe('succeeded');
    expect(story.job.preemptions).toBe(0);
  });

  it.each([
    ['to be tried again', { max_attempts: 3, on: ['exit_code' as const] }, 'queued'],
    ['for good', { max_attempts: 1 }, 'failed'],
  ])('counts though the end of another rank was told first, and stopped it %s', (_, retry, next) => {
    const story = aGang({ retry }).allRunning().ended(1, crash);
    expect(story.job.state).toMatchObject({ kind: 'stopping', outcome: { next } });
    expect(complete(story).ended(0, terminated).job.state.kind).toBe('succeeded');
  });

  it('does not count once its user has stopped what was failing', () => {
    const story = aGang({ retry: { max_attempts: 1 } })
      .allRunning()
      .ended(1, crash)
      .stopped();
    expect(complete(story).ended(0, terminated).job.state.kind).toBe('failed');
  });

  it.each([
    ['its user', (story: Story) => story.stopped(), 'cancelled'],
    ['its time limit', (story: Story) => story.on({ kind: 'timeLimit', attempt: 1 }), 'failed'],
  ])('does not count while it is stopped by %s', (_, stop, kind) => {
    const story = aStory({ max_runtime: '90s' }).allRunning();
    stop(story);
    expect(complete(story).ended(0, terminated).job.state.kind).toBe(kind);
  });
});

describe('a checkpoint that has a divergence in it', () => {
  const sign = { kind: 'nan_loss', step: 80, lastGoodStep: 70 } as const;
  const stepsMarked = (story: ReturnType<typeof aStory>) =>
    story.job.checkpoints.filter(({ diverged }) => diverged === true).map(({ step }) => step);

  it('is marked, whether it was saved before or after that was noticed', () => {
    const story = aStory().allRunning().saved(60).saved(75).noticed(sign).saved(90);
    expect(stepsMarked(story)).toEqual([75, 90]);
    expect(resumeCandidates(story.job).map(({ step }) => step)).toEqual([60, 90, 75]);
    expect(story.data('checkpoint.saved')).toMatchObject({ step: 90, diverged: true });
  });

  it('of which no step is known is one that was saved after it was noticed', () => {
    const story = aStory()
      .allRunning()
      .saved(null, { name: 'a.pt' })
      .noticed(sign)
      .saved(null, { name: 'b.pt' });
    expect(resumeCandidates(story.job).map(({ name }) => name)).toEqual(['a.pt', 'b.pt']);
  });

  it('is not one after a jump, which may come back', () => {
    expect(
      stepsMarked(
        aStory()
          .allRunning()
          .noticed({ ...sign, kind: 'loss_spike' })
          .saved(90),
      ),
    ).toEqual([]);
  });

  it('is begun from where there is no other', () => {
    const story = aStory().allRunning().noticed(sign).saved(90);
    expect(resumeCandidates(story.job)).toMatchObject([{ step: 90, diverged: true }]);
  });
});
