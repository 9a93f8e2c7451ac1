/** What became of GPU-seconds. Nodes of these tests have two GPUs each. */
import type { LedgerEntry } from '@muster/common/views';
import { describe, expect, it, test } from 'vitest';
import { transition } from '../lifecycle/transition.ts';
import { aJob, allocation, anExit, someMs } from '../modelFixture.ts';
import { aStory, crash, type Story } from '../storyFixture.ts';
import { bookAttempt, ledgerOf } from './ledger.ts';

const retry = { max_attempts: 9, on: ['exit_code' as const, 'hung' as const, 'nan_loss' as const] };
/** A task of one node with one GPU; a second passes with each event. */
const aWorker = (file: Parameters<typeof aStory>[0] = {}) =>
  aStory({ resources: { gpus: 1 }, retry, ...file });

function sums(entries: readonly LedgerEntry[]): Readonly<Record<string, number>> {
  return Object.fromEntries(
    entries.map(({ kind, cause, gpuSeconds }) => [cause === null ? kind : `${kind} ${cause}`, gpuSeconds]),
  );
}

/** Seconds without events. */
function after(story: Story, seconds: number): Story {
  story.nowMs += seconds * 1_000;
  return story;
}

/** Has waited 1 s, started in 2 s and run for this many seconds. */
const ranFor = (seconds: number, file = {}) => after(aWorker(file).allRunning(), seconds);

describe('an attempt', () => {
  it('that succeeds was of use from its start to its end, whatever it saved', () => {
    const story = ranFor(59).ended(0);
    expect(sums(story.job.ledger)).toEqual({ queued: 1, starting: 2, productive: 60 });
  });

  it('that ended long before that was known held its GPUs until it ended', () => {
    const story = ranFor(59);
    const { nowMs } = story;
    const { job, endedAttempts } = after(story, 300).ended(0, anExit({ finishedAtMs: nowMs }));
    expect(job.state).toEqual({ kind: 'succeeded', endedAtMs: nowMs });
    expect(endedAttempts).toMatchObject([{ endedAtMs: nowMs }]);
    expect(story.data('attempt.ended')).toMatchObject({ endedAtMs: nowMs });
    expect(sums(job.ledger)).toEqual({ queued: 1, starting: 2, productive: 59 });
  });

  it.each([
    ['in the future', 3_600_000, 60],
    ['before it began', -3_600_000, 0],
  ])('%s, as the clock of its node has it, ended within its time all the same', (_, offMs, productive) => {
    const story = ranFor(59);
    story.ended(0, anExit({ finishedAtMs: story.nowMs + offMs }));
    expect(sums(story.job.ledger)).toEqual({
      queued: 1,
      starting: 2,
      ...(productive > 0 ? { productive } : {}),
    });
  });

  it('goes on until the last of its tasks, and until now where nobody saw one of them end', () => {
    const gang = { resources: { nodes: 2, gpus: 1 } };
    const begun = ranFor(59, gang);
    const endMs = begun.nowMs;
    const late = (nodeRank: number, finishedAtMs: number | null) =>
      anExit({ finishedAtMs, exitCode: nodeRank });
    const seen = after(ranFor(59, gang), 300)
      .ended(0, late(0, endMs - 9_000))
      .ended(1, late(1, endMs - 5_000));
    expect(seen.endedAttempts).toMatchObject([{ endedAtMs: endMs - 5_000 }]);
    const unseen = after(ranFor(59, gang), 300)
      .ended(0, late(0, endMs - 9_000))
      .ended(1, late(1, null));
    expect(unseen.endedAttempts).toMatchObject([{ endedAtMs: unseen.nowMs }]);
    // It waits from when that is known.
    expect(unseen.job.state).toMatchObject({ kind: 'queued', sinceMs: unseen.nowMs });
    expect(seen.job.state).toMatchObject({ kind: 'queued', sinceMs: seen.nowMs });
  });

  it('began when its task did, however late that is reported', () => {
    const story = after(aWorker().allocated().prepared(0), 60);
    const startedAtMs = story.nowMs - 50_000;
    story.on({ kind: 'taskRunning', attempt: 1, nodeRank: 0, startedAtMs });
    expect(story.attempt).toMatchObject({ runningAtMs: startedAtMs });
  });

  it('that fails has lost what it did since its last checkpoint', () => {
    const story = after(ranFor(39).saved(10), 19).ended(0, crash);
    expect(sums(story.job.ledger)).toEqual({
      queued: 1,
      starting: 2,
      productive: 39,
      'failure exit_code': 21,
    });
  });

  it('that saved nothing has lost all', () => {
    expect(sums(ranFor(59).ended(0, crash).job.ledger)).toMatchObject({ 'failure exit_code': 60 });
  });

  it('that is stopped has lost it to that', () => {
    expect(sums(ranFor(58).stopped().ended(0).job.ledger)).toMatchObject({ 'failure cancelled': 60 });
  });

  it('that is preempted loses what it did not save on the way out', () => {
    const story = ranFor(57).preempted().saved(99, {}, { afterStop: true }).ended(0, crash);
    // Its newest byte was written a second before we heard of it.
    expect(sums(story.job.ledger)).toEqual({ queued: 1, starting: 2, productive: 58, preemption: 2 });
  });

  it('that hung has lost its standstill', () => {
    const story = after(ranFor(9, { on_hang: { action: 'restart' } }).saved(1), 600)
      .hung()
      .ended(0, crash);
    expect(sums(story.job.ledger)).toMatchObject({ productive: 9, hang: 603 });
  });

  it('that diverged has lost all behind what its job goes back to', () => {
    const story = ranFor(9, { on_divergence: 'stop' });
    after(story.saved(100), 19).saved(120);
    after(story, 9).noticed({ step: 130, lastGoodStep: 110 }).ended(0, crash);
    // 9 s until step 100 was saved; 20 s until step 120 was, which is of no use now; 12 s after that.
    expect(sums(story.job.ledger)).toMatchObject({ productive: 9, rollback: 32 });
  });

  it('that diverged at once has lost all of it', () => {
    const story = ranFor(59, { on_divergence: 'stop' }).noticed().ended(0, crash);
    expect(sums(story.job.ledger)).toEqual({ queued: 1, starting: 2, rollback: 61 });
  });

  it('that never ran was only starting', () => {
    const story = after(aWorker().allocated(), 9).preempted();
    expect(sums(story.job.ledger)).toEqual({ queued: 1, starting: 10 });
  });

  it('without GPUs costs none', () => {
    const job = aJob(1);
    const [placement] = [{ node: job.id as never, gpuUuids: [], cpus: 1, memoryMb: 0 }];
    const next = transition(job, allocation([placement]), someMs + 9_000).job;
    expect(ledgerOf(next, someMs + 60_000)).toEqual([]);
  });

  it('is added to those before it', () => {
    const story = ranFor(59).ended(0, crash);
    after(story, 99).allRunning().ended(0, crash);
    expect(sums(story.job.ledger)).toEqual({ queued: 101, starting: 4, 'failure exit_code': 61 });
  });
});

test('a wait is booked when it ends, with the GPUs that were wanted', () => {
  const story = after(aStory({ resources: { gpus: 4, nodes: 2 } }), 9).stopped();
  expect(sums(story.job.ledger)).toEqual({ queued: 80 });
});

test('what a job does now is in it so far, except what is neither kept nor lost yet', () => {
  const story = aWorker();
  expect(sums(ledgerOf(story.job, story.nowMs + 5_000))).toEqual({ queued: 5 });
  story.allocated();
  expect(sums(ledgerOf(story.job, story.nowMs + 5_000))).toEqual({ queued: 1, starting: 5 });
  story.prepared(0).running(0);
  expect(sums(ledgerOf(story.job, story.nowMs + 5_000))).toEqual({ queued: 1, starting: 2 });
  after(story, 20).saved(1);
  expect(sums(ledgerOf(story.job, story.nowMs + 5_000))).toEqual({ queued: 1, starting: 2, productive: 20 });
  story.ended(0);
  expect(ledgerOf(story.job, story.nowMs + 5_000)).toBe(story.job.ledger);
});

test('clocks that jump make nothing negative', () => {
  const moments = [-9e9, 0, 9e9];
  for (const running of moments)
    for (const saved of moments)
      for (const ended of moments) {
        const story = ranFor(10).saved(1);
        if (story.attempt === null) throw new Error('it runs');
        const attempt = {
          ...story.attempt,
          runningAtMs: someMs + running,
          savedAtMs: someMs + saved,
          endedAtMs: someMs + ended,
          cause: null,
        };
        const { ledger } = bookAttempt(aJob(1), attempt);
        expect(ledger.every(({ gpuSeconds }) => gpuSeconds > 0)).toBe(true);
      }
  const back = aWorker();
  back.nowMs -= 1e9;
  expect(
    back
      .allRunning()
      .ended(0, anExit())
      .job.ledger.every(({ gpuSeconds }) => gpuSeconds > 0),
  ).toBe(true);
});
