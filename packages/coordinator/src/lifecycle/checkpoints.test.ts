import { describe, expect, it } from 'vitest';
import { checkpointsMax } from '../model.ts';
import { aCheckpoint, aJob, anExit, someMs } from '../modelFixture.ts';
import { aGang, aStory, crash, type Story } from '../storyFixture.ts';
import { checkpointReporter } from './checkpoints.ts';
import { resumeCandidates } from './resume.ts';

const unseen = { verdict: 'unverified', depth: null } as const;
const corrupt = { verdict: 'corrupt', problem: 'no central directory' } as const;
const terminated = anExit({ exitCode: null, signal: 'SIGTERM' });
const onceMore = { retry: { max_attempts: 5, on: ['exit_code' as const] } };
const stepsOf = (story: Story) => story.job.checkpoints.map(({ step }) => step);

describe('a checkpoint that is seen', () => {
  it('is kept with its attempt and node, and reported', () => {
    const story = aStory()
      .allRunning()
      .saved(100, { metrics: { train_loss: 2 } });

    const wanted = { name: 'checkpoint-100', step: 100, attempt: 1, node: 'node-1', suspect: false };
    expect(story.job.checkpoints).toMatchObject([wanted]);
    expect(story.data('checkpoint.saved')).toMatchObject({
      name: 'train',
      checkpoint: 'checkpoint-100',
      step: 100,
      attempt: 1,
      node: 'node-1',
      bytes: 1_048_576,
      saveDurationMs: 1_000,
      verdict: 'verified',
      metrics: { train_loss: 2 },
    });
  });

  it('again, is no change', () => {
    const story = aStory().allRunning().saved(100, { savedAtMs: someMs });
    const before = story.job;

    expect(story.saved(100, { savedAtMs: someMs }).job).toBe(before);
  });

  it('is reported once for each verdict, and not before anybody has looked into it', () => {
    const story = aStory().allRunning().saved(100, unseen).saved(100, unseen);
    expect(story.events).not.toContain('checkpoint.seen');
    story.saved(100, { depth: 'quick' }).saved(100, { depth: 'deep', digest: 'sha256:1' });
    story
      .saved(200, { ...unseen, problem: 'an unknown format' })
      .saved(200, { ...unseen, problem: 'the same' });
    story.saved(300, corrupt).saved(300, { ...corrupt, depth: 'deep' });

    expect(story.events.filter((kind) => kind.startsWith('checkpoint.'))).toEqual([
      'checkpoint.saved',
      'checkpoint.seen',
      'checkpoint.corrupt',
    ]);
    expect(story.job.checkpoints[0]).toMatchObject({ depth: 'deep', digest: 'sha256:1' });
  });

  it('was verified once, whatever a restarted agent says that has not looked yet; and corrupt is corrupt', () => {
    const story = aStory().allRunning().saved(100, { depth: 'deep' }).saved(100, unseen);
    expect(story.job.checkpoints).toMatchObject([{ verdict: 'verified', depth: 'deep' }]);
    story.saved(100, corrupt).saved(100, { depth: 'deep' });
    expect(story.job.checkpoints).toMatchObject([corrupt]);
  });

  it('is corrupt once more at a second reading, which is no event', () => {
    const story = aStory()
      .allRunning()
      .saved(100, corrupt)
      .saved(100, { ...corrupt, reread: true });
    expect(story.job.checkpoints).toMatchObject([{ ...corrupt, reread: true }]);
    expect(story.events.filter((kind) => kind === 'checkpoint.corrupt')).toHaveLength(1);
    // Of an agent that has not heard of it.
    expect(story.saved(100, corrupt).job.checkpoints).toMatchObject([{ reread: true }]);
  });

  it('is good again when a second reading, as close as the first, finds it whole', () => {
    const story = aStory()
      .allRunning()
      .saved(100, { ...corrupt, depth: 'deep' });
    const quick = { depth: 'quick', reread: true } as const;
    expect(story.saved(100, quick).job.checkpoints).toMatchObject([corrupt]);
    story.saved(100, { depth: 'deep', reread: true });
    expect(story.job.checkpoints).toMatchObject([{ verdict: 'verified', problem: null, reread: true }]);
    expect(story.events).toContain('checkpoint.saved');
    expect(resumeCandidates(story.job)).toHaveLength(1);
    // What was found first is said again by somebody who has not read it twice.
    expect(story.saved(100, corrupt).job.checkpoints).toMatchObject([{ verdict: 'verified' }]);
  });

  it('under a name with other contents is another one', () => {
    const story = aStory().allRunning().saved(null, corrupt).saved(null, { version: 'v2' });

    expect(story.job.checkpoints).toMatchObject([{ version: 'v2', verdict: 'verified', problem: null }]);
    expect(story.events.filter((kind) => kind === 'checkpoint.saved')).toHaveLength(1);
  });

  it('takes its place in the order of saving', () => {
    const story = aStory(onceMore).allRunning().saved(200).saved(100).saved(300).ended(0, crash);
    story.allRunning({ resume: { name: 'checkpoint-100', step: 100 } }).saved(150);

    expect(stepsOf(story)).toEqual([100, 200, 300, 150]);
    expect(resumeCandidates(story.job)[0]?.step).toBe(150);
  });

  it('without a step is placed by the clock of its node', () => {
    const story = aStory().allRunning().saved(100, { savedAtMs: 9 }).saved(null, { savedAtMs: 5 });
    expect(stepsOf(story)).toEqual([null, 100]);
  });

  it('and was forgotten here, is none of this attempt', () => {
    const story = aStory({}, { checkpoints: [aCheckpoint(500)], lastAttempt: 1, failures: 2 });
    story.allRunning({ resume: { name: 'checkpoint-500', step: 500 } }).saved(400);

    expect(stepsOf(story)).toEqual([400, 500]);
    expect(story.job).toMatchObject({ failures: 2, checkpoints: [{ attempt: 1 }, { attempt: 1 }] });
  });

  it('of a program that began again comes before the one that it was offered, whatever it overwrites', () => {
    const story = aStory(onceMore).allRunning().saved(100).saved(200).saved(300).ended(0, crash);
    story.allRunning({ resume: { name: 'checkpoint-300', step: 300 } });
    story.saved(100, { version: 'v2' }).saved(150);

    expect(stepsOf(story)).toEqual([100, 150, 200, 300]);
    expect(resumeCandidates(story.job)[0]?.step).toBe(300);
    expect(story.saved(301).job.checkpoints.at(-1)).toMatchObject({ step: 301, attempt: 2 });
  });

  it('is one of the newest that are kept, among them always the newest good one', () => {
    const story = aStory().allRunning().saved(1).saved(2);
    for (let step = 3; step <= checkpointsMax + 10; step += 1) story.saved(step, corrupt);

    expect(story.job.checkpoints).toHaveLength(checkpointsMax);
    expect(stepsOf(story).slice(0, 2)).toEqual([2, 12]);
  });

  it('does not displace the one that its user has chosen', () => {
    const known = Array.from({ length: checkpointsMax }, (_, index) => aCheckpoint(index + 1));
    const from = { kind: 'step', step: 1 } as const;
    const story = aStory({}, { checkpoints: known }).allRunning().requeued(from).saved(100).saved(101);

    expect(story.job.checkpoints).toHaveLength(checkpointsMax);
    expect(resumeCandidates(story.job)[0]?.step).toBe(1);
    expect(stepsOf(story).slice(-2)).toEqual([100, 101]);
  });

  it.each<[string, (story: Story) => Story]>([
    ['an earlier attempt', (story) => story.saved(999, {}, { attempt: 1 })],
    ['an attempt that is not', (story) => story.saved(999, {}, { attempt: 3 })],
    ['a rank that is not', (story) => story.saved(999, {}, { nodeRank: 7 })],
  ])('by %s changes nothing (G6)', (_, report) => {
    const story = aStory(onceMore).allRunning().saved(100).ended(0, crash).allRunning();
    const before = story.job;

    expect(report(story).job).toBe(before);
  });
});

describe('while its job waits', () => {
  const waiting = () =>
    aStory(onceMore).allRunning().saved(100).saved(200, unseen).preempted().ended(0, terminated);

  it('more may be found out about one that is known', () => {
    const story = waiting().saved(200);

    expect(story.job.checkpoints.map(({ verdict }) => verdict)).toEqual(['verified', 'verified']);
    expect(resumeCandidates(story.job)[0]?.step).toBe(200);
  });

  it.each<[string, (story: Story) => Story]>([
    ['one that is not known', (story) => story.saved(300)],
    ['other contents', (story) => story.saved(200, { version: 'v2' })],
    ['nothing new', (story) => story.saved(200, unseen)],
    ['an attempt before the last', (story) => story.saved(200, {}, { attempt: 0 })],
  ])('a report of %s changes nothing', (_, report) => {
    const story = waiting();
    const before = story.job;
    expect(report(story).job).toBe(before);
  });

  it('that is progress all the same, and the end after it is the only one that counts', () => {
    const story = aStory(onceMore)
      .allRunning()
      .ended(0, crash)
      .allRunning()
      .saved(50, unseen)
      .ended(0, crash);
    expect(story.job).toMatchObject({ failures: 2, failuresInRow: 2 });

    expect(story.saved(50).job).toMatchObject({ failures: 1, failuresInRow: 1, recentFailures: [] });
  });

  it('only the node that has seen it may say so', () => {
    const { job } = waiting();
    const seen = (step: number) => ({ attempt: 1, nodeRank: 0, checkpoint: aCheckpoint(step) });
    expect(checkpointReporter(job, seen(200))).toBe('node-1');
    expect(checkpointReporter(job, seen(300))).toBeNull();
    expect(checkpointReporter(aJob(1), seen(200))).toBeNull();
    const gang = aGang().allRunning().job;
    expect(checkpointReporter(gang, { ...seen(300), nodeRank: 1 })).toBe('node-2');
    expect(checkpointReporter(gang, { ...seen(300), nodeRank: 2 })).toBeNull();
  });
});

describe('progress', () => {
  const struggling = (resumed: number | null = 100) => {
    const fields = { failures: 3, failuresInRow: 3, lastAttempt: 4, checkpoints: [aCheckpoint(100)] };
    const resume = resumed === null ? null : { name: `checkpoint-${resumed}`, step: resumed };
    const failure = { cause: 'exit_code', resume: 'checkpoint-100', node: null } as const;
    return aStory(onceMore, { ...fields, recentFailures: [failure] }).allRunning({ resume });
  };

  it('refills the budget, and closes the breaker', () => {
    const story = struggling().saved(200);
    expect(story.job).toMatchObject({ failures: 0, failuresInRow: 0, recentFailures: [], excludedNodes: [] });
    expect(story.attempt?.savedAtMs).not.toBeNull();
  });

  it.each<[string, (story: Story) => Story]>([
    ['one that is not verified', (story) => story.saved(200, unseen)],
    ['a corrupt one', (story) => story.saved(200, corrupt)],
    ['what it began from, saved again', (story) => story.saved(100, { version: 'v2' })],
    ['an older one', (story) => story.saved(90)],
  ])('is not made by %s', (_, report) => {
    const { job, attempt } = report(struggling());
    expect(job).toMatchObject({ failures: 3, failuresInRow: 3 });
    expect(attempt?.savedAtMs).toBeNull();
  });

  it('is not made by an attempt that has not begun', () => {
    const story = aStory({}, { failures: 3 }).allocated().saved(10);
    expect(story.job.failures).toBe(3);
  });

  it('is made once that is verified which was not', () => {
    expect(struggling().saved(200, unseen).saved(200).job.failures).toBe(0);
  });

  it('is when it was saved, but never before its attempt ran nor after now: clocks differ', () => {
    const story = aStory().allRunning();
    const runningAtMs = story.attempt?.runningAtMs ?? 0;
    expect(story.saved(1, { savedAtMs: 5 }).attempt?.savedAtMs).toBe(runningAtMs);
    story.saved(2, { savedAtMs: someMs * 2 });
    expect(story.attempt?.savedAtMs).toBe(story.nowMs);
  });

  it('ends what its user has chosen to begin from: from now on the newest is good again', () => {
    const story = struggling().ended(0, crash).requeued({ kind: 'step', step: 100 });
    expect(story.job.resumeChoice).toEqual({ kind: 'step', step: 100 });
    story.allRunning({ resume: { name: 'checkpoint-100', step: 100 } });
    expect(story.saved(90).job.resumeChoice.kind).toBe('step');
    expect(story.saved(110).job.resumeChoice).toEqual({ kind: 'newest' });
  });

  it('on the way out does not undo what its user has just chosen', () => {
    const story = struggling().requeued({ kind: 'start' }).saved(300, {}, { afterStop: true });
    expect(story.job.resumeChoice).toEqual({ kind: 'start' });
    const both = struggling().preempted().requeued({ kind: 'start' }).saved(300, {}, { afterStop: true });
    expect(both.job.resumeChoice).toEqual({ kind: 'start' });
    const preempted = struggling().preempted().saved(300, {}, { afterStop: true });
    expect(preempted.job.resumeChoice).toEqual({ kind: 'newest' });
  });

  it('of an attempt whose failure was being stopped does not undo what its user chose then', () => {
    const retry = { max_attempts: 3, on: ['exit_code' as const] };
    const story = aGang({ retry }).allRunning().ended(1, crash).requeued({ kind: 'start' });
    expect(story.job.state).toMatchObject({ kind: 'stopping', outcome: { charge: 'failure' } });
    expect(story.saved(200).ended(0, terminated).job).toMatchObject({
      resumeChoice: { kind: 'start' },
      state: { kind: 'queued' },
    });
    // Begun with that choice already: without a new request it ends with progress, and with one it holds.
    story.allRunning().ended(1, crash);
    expect(story.requeued({ kind: 'start' }).data('job.requeued')).toMatchObject({ from: { kind: 'start' } });
    const before = story.job;
    expect(story.requeued({ kind: 'start' }).job).toBe(before);
    expect(story.saved(300).job.resumeChoice).toEqual({ kind: 'start' });
  });

  it('on the way out saves a job that would have failed', () => {
    const retry = { max_attempts: 2, on: ['exit_code' as const] };
    const story = aGang({ retry }, { failures: 1 }).allRunning().ended(1, crash);
    expect(story.job.state).toMatchObject({ outcome: { next: 'failed' } });

    expect(story.saved(100).ended(0, terminated).job).toMatchObject({
      failures: 1,
      state: { kind: 'queued' },
    });
  });
});

describe('a stop', () => {
  it('is over as soon as what was begun after it is verified', () => {
    const story = aStory().allRunning().preempted();
    expect(story.attempt).toMatchObject({ savedAfterStop: false, stoppingAtMs: story.nowMs });
    expect(story.saved(100, {}, { afterStop: false }).attempt?.savedAfterStop).toBe(false);
    expect(story.saved(200, unseen, { afterStop: true }).attempt?.savedAfterStop).toBe(false);
    expect(story.saved(200, {}, { afterStop: true }).attempt?.savedAfterStop).toBe(true);
  });

  it('is none while it runs', () => {
    expect(aStory().allRunning().saved(100, {}, { afterStop: true }).attempt?.savedAfterStop).toBe(false);
  });
});
