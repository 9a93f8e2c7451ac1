/** Phases as stories of one job: what ends a phase, what follows from a verdict, and what a requeue means. */
import type { PhaseVerdict } from '@muster/common/phases';
import { expect, test } from 'vitest';
import { anExit, aSpec } from '../modelFixture.ts';
import { aGang, aStory, crash, type Story } from '../storyFixture.ts';
import { checkpointOfPhase, inheritedPhase } from './phases.ts';

const phases = [
  { name: 'broad', steps: 100 },
  { name: 'curated', steps: 50, success: 'eval_loss < 3', extend: { steps: 20, max: 2 } },
  { name: 'domain', steps: 50, success: 'eval_loss < 3', unmet: 'continue' as const },
  { name: 'cooldown', steps: 10, success: 'eval_loss < 3' },
];

const curriculum = () => aStory({ phases });

/** One attempt that ends well, at this step. */
function ranTo(story: Story, step: number): Story {
  const training = { framework: null, latest: { step }, totalSteps: null, etaMs: null, rows: 1, atMs: 0 };
  return story.allRunning().saved(step).ended(0, anExit({ training }));
}

function judged(story: Story, verdict: PhaseVerdict, attempt = story.job.lastAttempt): Story {
  const values = { eval_loss: verdict === 'unknown' ? null : verdict === 'met' ? 2.5 : 3.5 };
  return story.on({ kind: 'phaseJudged', attempt, verdict, values, notFinite: [] });
}

const phaseOf = ({ job }: Story) => job.phase;
const cooldown = () =>
  judged(judged(ranTo(judged(ranTo(ranTo(curriculum(), 100), 150), 'met'), 200), 'unmet'), 'met');

test('without a criterion the next phase follows at once, and the next attempt is its first', () => {
  const story = ranTo(curriculum(), 100);
  expect(story.job.state).toMatchObject({ kind: 'queued', backoffMs: 0, lastCause: null });
  expect(phaseOf(story)).toMatchObject({ index: 1, start: 100, firstAttempt: null, awaiting: null });
  expect(story.data('phase.ended')).toMatchObject({
    attempt: 1,
    phase: 'broad',
    index: 0,
    verdict: null,
    step: 100,
    checkpoint: { name: 'checkpoint-100', step: 100 },
    next: 'next',
  });
  expect(story.endedAttempts[0]).toMatchObject({ cause: null, state: 'ended' });
  story.allocated({ resume: { name: 'checkpoint-100', step: 100 } });
  expect(phaseOf(story)).toMatchObject({ index: 1, firstAttempt: 2 });
  expect(story.data('phase.started')).toMatchObject({ attempt: 2, phase: 'curated', start: 100, end: 150 });
});

test('a criterion is awaited in the queue, without an attempt, and judged once', () => {
  const story = ranTo(ranTo(curriculum(), 100), 150);
  expect(story.job.state.kind).toBe('queued');
  expect(phaseOf(story)?.awaiting).toEqual({ attempt: 2, step: 150, tokens: null });
  expect(() => story.allocated()).toThrow('awaits the verdict');
  const waiting = story.job;
  expect(judged(story, 'met', 1).job).toBe(waiting);
  judged(story, 'met');
  const next = story.job;
  expect(phaseOf(story)).toMatchObject({ index: 2, start: 150, awaiting: null });
  expect(judged(story, 'unmet').job).toBe(next);
  expect(story.events.filter((kind) => kind === 'phase.ended')).toHaveLength(2);
});

test('what counts as the result of a phase is the newest good checkpoint of its attempts, while it is awaited', () => {
  const story = ranTo(aStory({ phases, retry: { on: ['exit_code'], max_attempts: 3 } }), 100);
  expect(checkpointOfPhase(story.job)).toBeNull();
  story.allRunning().saved(120).ended(0, crash);
  ranTo(story, 150);
  expect(checkpointOfPhase(story.job)).toMatchObject({ step: 150, attempt: 3 });
  const { checkpoints } = story.job;
  const kept = (...steps: number[]) => checkpoints.filter(({ step }) => steps.includes(step ?? 0));
  expect(checkpointOfPhase({ ...story.job, checkpoints: kept(100, 120) })).toMatchObject({ attempt: 2 });
  // That of the phase before.
  expect(checkpointOfPhase({ ...story.job, checkpoints: kept(100) })).toBeNull();
  // Those of a job that this one continues: of its attempts nothing is known but where they saved.
  const earlier = (step: number) => kept(step).map((each) => ({ ...each, attempt: 0 }));
  expect(checkpointOfPhase({ ...story.job, checkpoints: earlier(150) })).toMatchObject({ step: 150 });
  expect(checkpointOfPhase({ ...story.job, checkpoints: earlier(100) })).toBeNull();
  const only = [{ name: 'a', steps: 50, success: 'eval_loss < 3' }];
  const first = ranTo(aStory({ phases: only }), 50).job;
  const inherited = (start: number) => ({
    ...first,
    phase: first.phase && { ...first.phase, start },
    checkpoints: first.checkpoints.map((each) => ({ ...each, attempt: 0 })),
  });
  expect(checkpointOfPhase(inherited(0))).toMatchObject({ step: 50 });
  expect(checkpointOfPhase(inherited(50))).toBeNull();
  expect(checkpointOfPhase(judged(story, 'met').job)).toBeNull();
});

test.each(['unmet', 'unknown'] as const)(
  '%s: extended as often as the spec says, then the job fails',
  (verdict) => {
    const story = judged(ranTo(ranTo(curriculum(), 100), 150), verdict);
    expect(story.data('phase.extended')).toMatchObject({
      phase: 'curated',
      extensions: 1,
      extensionsMax: 2,
      end: 170,
    });
    expect(phaseOf(story)).toMatchObject({ index: 1, extensions: 1, firstAttempt: 2, awaiting: null });
    judged(ranTo(story, 170), verdict);
    judged(ranTo(story, 190), verdict);
    const { state } = story.job;
    expect(state).toMatchObject({ kind: 'failed', cause: { kind: 'phase_unmet', blame: 'job' } });
    const value =
      verdict === 'unmet' ? 'eval_loss 3.5' : 'eval_loss unknown, for no output of the phase shows it';
    expect(state.kind === 'failed' && state.cause.message).toBe(
      `phase curated did not meet eval_loss < 3: ${value}`,
    );
    expect(phaseOf(story)?.ended[1]).toMatchObject({
      verdict,
      extensions: 2,
      target: 90,
      firstAttempt: 2,
      lastAttempt: 4,
    });
    expect(story.data('phase.ended')).toMatchObject({ next: 'failed' });
  },
);

test('unmet: continue goes on, stop fails, and the job succeeds after its last phase', () => {
  const story = ranTo(judged(ranTo(judged(ranTo(ranTo(curriculum(), 100), 150), 'met'), 200), 'unmet'), 210);
  expect(phaseOf(story)).toMatchObject({ index: 3, awaiting: { attempt: 4 } });
  expect(judged(story, 'met').job.state.kind).toBe('succeeded');
  expect(phaseOf(story)?.ended.map(({ name, verdict }) => [name, verdict])).toEqual([
    ['broad', null],
    ['curated', 'met'],
    ['domain', 'unmet'],
    ['cooldown', 'met'],
  ]);
  expect(story.data('phase.ended')).toMatchObject({ next: 'succeeded' });
  const only = [{ name: 'a', steps: 1, success: 'loss < 1' }];
  expect(judged(ranTo(aStory({ phases: only }), 1), 'unmet').job.state.kind).toBe('failed');
});

test('what fails or is preempted in a phase is retried in it, and a phase that ends forgives what went wrong', () => {
  const story = ranTo(aStory({ phases, retry: { on: ['exit_code'], max_attempts: 3 } }), 100);
  story.allRunning().ended(0, crash);
  expect(phaseOf(story)).toMatchObject({ index: 1, firstAttempt: 2, awaiting: null });
  story
    .allRunning()
    .preempted()
    .ended(0, anExit({ exitCode: null, signal: 'SIGTERM' }));
  expect(phaseOf(story)).toMatchObject({ index: 1, firstAttempt: 2, awaiting: null });
  expect(story.job).toMatchObject({ failures: 1, preemptions: 1, state: { kind: 'queued' } });
  judged(ranTo(story, 150), 'met');
  expect(story.job).toMatchObject({ failures: 0, failuresInRow: 0, recentFailures: [], preemptions: 1 });
  expect(phaseOf(story)?.ended[1]).toMatchObject({ firstAttempt: 2, lastAttempt: 4 });
});

test('the marker that nothing is left to train ends the phase; a stop cancels the job while a verdict is awaited', () => {
  const story = aGang({ phases }).allRunning().on({ kind: 'trainingComplete', attempt: 1, nodeRank: 0 });
  story.ended(0).ended(1, crash);
  expect(phaseOf(story)).toMatchObject({ index: 1, ended: [{ name: 'broad' }] });
  const awaiting = ranTo(ranTo(curriculum(), 100), 150).stopped();
  expect(awaiting.job.state.kind).toBe('cancelled');
  expect(judged(awaiting, 'met').job.state.kind).toBe('cancelled');
});

/** The marker is there, and the tasks of its gang still run. */
const ending = (file = phases) =>
  aGang({ phases: file }).allRunning().on({ kind: 'trainingComplete', attempt: 1, nodeRank: 0 });

test('a stop cancels a job whose phase is ending, unless that leaves nothing to do', () => {
  const story = ending().stopped('enough');
  expect(story.job.state).toMatchObject({ kind: 'stopping', outcome: { next: 'cancelled' } });
  story.ended(0).ended(1, crash);
  expect(story.job.state).toMatchObject({ kind: 'cancelled', cause: { message: 'enough' } });
  expect(phaseOf(story)).toMatchObject({ index: 0, ended: [] });

  const judgedLast = ending([{ name: 'a', steps: 1, success: 'loss < 1' }]).stopped();
  expect(judgedLast.ended(0).ended(1).job.state.kind).toBe('cancelled');
  const sentBack = aGang({ phases: [{ name: 'a', steps: 1 }] })
    .allRunning()
    .requeued({ kind: 'start' })
    .on({ kind: 'trainingComplete', attempt: 1, nodeRank: 0 });
  expect(sentBack.stopped().ended(0).ended(1).job.state.kind).toBe('cancelled');
  const last = ending([{ name: 'a', steps: 1 }]);
  const before = last.job;
  expect(last.stopped().job).toBe(before);
  expect(last.ended(0).ended(1).job.state.kind).toBe('succeeded');
});

test('a job whose phase is ending can be requeued from elsewhere', () => {
  const story = ending().saved(60);
  const before = story.job;
  expect(story.requeued().job).toBe(before);
  story.requeued({ kind: 'start' }).ended(0).ended(1);
  expect(story.job).toMatchObject({ state: { kind: 'queued' }, resumeChoice: { kind: 'start' } });
  expect(phaseOf(story)).toMatchObject({ index: 0, firstAttempt: null, awaiting: null, ended: [] });
});

test('a requeue stays in the phase; from a step it goes back to the phase of that checkpoint, from scratch to the first', () => {
  const story = ranTo(judged(ranTo(ranTo(curriculum(), 100), 150), 'met'), 180);
  const { job } = story;
  expect(story.requeued().job).toBe(job);
  expect(phaseOf(story)).toMatchObject({ index: 2, awaiting: { attempt: 3 } });

  const middle = story.requeued({ kind: 'step', step: 150 });
  expect(phaseOf(middle)).toMatchObject({ index: 2, awaiting: null, firstAttempt: null });
  const back = story.requeued({ kind: 'step', step: 120 });
  expect(phaseOf(back)).toMatchObject({ index: 1, start: 100, awaiting: null, ended: [{ name: 'broad' }] });
  expect(phaseOf(story.requeued({ kind: 'start' }))).toMatchObject({ index: 0, start: 0, ended: [] });
});

test('an attempt that is sent elsewhere ends no phase, whatever it says', () => {
  const story = ranTo(curriculum(), 100).allRunning({ resume: { name: 'checkpoint-100', step: 100 } });
  story.requeued({ kind: 'start' }).on({ kind: 'trainingComplete', attempt: 2, nodeRank: 0 }).ended(0);
  expect(story.job.state.kind).toBe('queued');
  expect(phaseOf(story)).toMatchObject({ index: 0, ended: [], awaiting: null });
  // Asked for a second time, after it has got on without saving anything.
  story.allRunning().ended(0);
  expect(phaseOf(story)).toMatchObject({ index: 1 });
  expect(phaseOf(story.requeued({ kind: 'start' }))).toMatchObject({ index: 0 });
});

test('where a job was sent back to is not undone by what its attempt reports while it ends', () => {
  const from = { kind: 'step', step: 100 } as const;
  const story = ranTo(curriculum(), 100).allRunning({ resume: { name: 'checkpoint-100', step: 100 } });
  story.requeued(from).on({ kind: 'trainingComplete', attempt: 2, nodeRank: 0 }).saved(150).ended(0);
  expect(story.job).toMatchObject({ state: { kind: 'queued' }, resumeChoice: from });
});

test('a job that runs another one again begins in the phase where that one was, if it has the same ones', () => {
  const failed = judged(ranTo(cooldown(), 210), 'unmet').job;
  expect(failed.state.kind).toBe('failed');
  const { spec } = failed;
  expect(inheritedPhase(failed, spec, { kind: 'newest' }, 210)).toMatchObject({
    index: 3,
    start: 200,
    firstAttempt: null,
    awaiting: null,
    ended: [{ lastAttempt: null }, {}, {}],
  });
  expect(inheritedPhase(failed, spec, { kind: 'step', step: 130 }, 130)).toMatchObject({
    index: 1,
    start: 100,
  });
  expect(inheritedPhase(failed, spec, { kind: 'start' }, 0)).toMatchObject({ index: 0, start: 0, ended: [] });
  const other = aSpec({ phases: [{ name: 'tuning', steps: 10 }] });
  expect(inheritedPhase(failed, other, { kind: 'newest' }, 210)).toMatchObject({
    index: 0,
    start: 210,
    ended: [],
  });
  expect(inheritedPhase(failed, aSpec(), { kind: 'newest' }, 0)).toBeNull();
});
