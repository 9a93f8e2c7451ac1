/** One bad end stops the gang, and the first failure is the cause, in whatever order the news of them come. */
import type { TaskFailure } from '@muster/common/gangs';
import type { TaskEnd } from '@muster/common/views';
import { describe, expect, it } from 'vitest';
import { aFailure, anExit, aTask, someMs } from '../modelFixture.ts';
import { aGang, aStory, crash, Story } from '../storyFixture.ts';
import { endedLikeStopped, rootCause } from './causes.ts';

const failed = (failure: Partial<TaskFailure> = {}, fields: Partial<TaskEnd> = {}) =>
  anExit({ exitCode: 1, failure: aFailure(failure), ...fields });
const reset = failed({ message: 'Connection reset by peer', consequence: true });
const terminated = anExit({ exitCode: null, signal: 'SIGTERM' });

describe('the root of several failures', () => {
  const task = (nodeRank: number, failedAtMs: number | null, consequence = false) =>
    aTask(nodeRank, { state: 'ended', exit: failed({ consequence }), failedAtMs });

  it.each([
    ['an end that is no consequence, though it was later', [task(0, 1, true), task(1, 9)], 1],
    ['the earliest', [task(0, 5), task(1, 3), task(2, 4)], 1],
    ['one whose time is known', [task(0, null), task(1, 9)], 1],
    ['the lowest rank of those at the same time', [task(2, 3), task(1, 3)], 1],
    ['the lowest rank of those that nobody can place', [task(2, null), task(1, null)], 1],
    ['the earliest consequence where there is nothing else', [task(0, 5, true), task(1, 3, true)], 1],
  ])('is %s', (_, tasks, root) => {
    expect(rootCause(tasks)?.nodeRank).toBe(root);
    expect(rootCause(tasks.toReversed())?.nodeRank).toBe(root);
  });

  it('is none of none', () => {
    expect(rootCause([])).toBeNull();
  });

  it.each([
    [terminated, true],
    [anExit({ exitCode: null, signal: 'SIGKILL' }), true],
    [anExit({ exitCode: 143 }), true],
    [anExit({ exitCode: 137 }), true],
    [anExit({ exitCode: null, signal: 'SIGKILL', oomKilled: true }), false],
    [anExit({ exitCode: null, signal: 'SIGSEGV' }), false],
    [crash, false],
  ])('an end may look as if it had been ordered (%#)', (exit, looks) => {
    expect(endedLikeStopped(exit)).toBe(looks);
  });
});

describe('a gang of which one task ends badly', () => {
  it('is stopped at once', () => {
    const story = aGang().allRunning().ended(1, crash);

    expect(story.job.state.kind).toBe('stopping');
    expect(story.states).toEqual(['running', 'ended']);
  });

  it('fails with the failure that was first on its node, though its report came last', () => {
    const story = aGang().allRunning();
    story.ended(0, failed({ message: 'watchdog', rank: 0 }), 1, someMs + 900);
    expect(story.job.state).toMatchObject({ outcome: { cause: { nodeRank: 0 } } });

    story.ended(1, failed({ message: 'ValueError: bad batch', rank: 9 }), 1, someMs + 100);
    expect(story.job.state).toMatchObject({
      kind: 'failed',
      cause: {
        kind: 'exit_code',
        message: 'rank 9 on node-2 exited with code 1: ValueError: bad batch',
        nodeRank: 1,
        node: 'node-2',
      },
    });
    expect(story.endedAttempts[0]?.cause?.nodeRank).toBe(1);
  });

  it('of which one was killed for want of a lease goes back to the queue, for nothing of the program is to blame', () => {
    const story = aStory({ retry: { max_attempts: 1 } }).allRunning();
    const message = 'killed because its lease ran out: no contact with the coordinator';
    story.ended(
      0,
      anExit({ exitCode: null, signal: 'SIGKILL', failure: aFailure({ source: 'lease', message }) }),
    );

    expect(story.job).toMatchObject({
      state: {
        kind: 'queued',
        lastCause: { kind: 'node_lost', message: `rank 0 on node-1 was ${message}`, node: 'node-1' },
      },
      failures: 0,
    });
  });

  it('fails with what is no consequence, though that was noticed later', () => {
    const story = aGang()
      .allRunning()
      .ended(0, reset, 1, someMs + 100)
      .ended(1, crash, 1, someMs + 900);

    expect(story.job.state).toMatchObject({ cause: { nodeRank: 1 } });
  });

  it('keeps its cause when the others end by the stop, whatever they say of themselves', () => {
    for (const exit of [terminated, anExit({ exitCode: 143, failure: aFailure() }), anExit(), reset]) {
      const story = aGang()
        .allRunning()
        .ended(0, crash, 1, someMs + 900)
        .ended(1, exit, 1, someMs + 100);

      expect(story.job.state).toMatchObject({ kind: 'failed', cause: { nodeRank: 0 } });
    }
  });

  it('is judged by what a task had printed before the stop ended it, where the first report was a consequence', () => {
    const failure = {
      source: 'log' as const,
      consequence: false,
      message: 'local rank 0: ended by signal 9',
    };
    const story = aGang()
      .allRunning()
      .ended(0, reset, 1, someMs + 100)
      .ended(1, anExit({ signal: 'SIGTERM', exitCode: null, failure: aFailure(failure) }), 1, someMs + 900);

    expect(story.job.state).toMatchObject({ cause: { nodeRank: 1 } });
  });

  it('takes an end of unknown time for one of now: a trainer that saves and exits 1 on SIGTERM comes second', () => {
    const story = aGang().allRunning().ended(1, crash).ended(0, crash);

    expect(story.job.state).toMatchObject({ cause: { nodeRank: 1 } });
  });

  it('is judged by the first failure: retry, budget and wait follow it', () => {
    const retry = { max_attempts: 3, on: ['node_lost' as const], backoff: { initial: '2s', max: '60s' } };
    const lostLater = aGang({ retry })
      .allRunning()
      .ended(0, crash, 1, someMs + 900);
    expect(lostLater.job.state).toMatchObject({ outcome: { next: 'failed' } });
    // Its node had not been heard since before the crash: the crash is what the loss did to the others.
    expect(lostLater.lost(1, someMs + 100).job).toMatchObject({
      state: { kind: 'queued', backoffMs: 0, lastCause: { kind: 'node_lost', node: 'node-2' } },
      failures: 0,
    });

    const crashedFirst = aGang({ retry })
      .allRunning()
      .ended(0, crash, 1, someMs + 100);
    expect(crashedFirst.lost(1, someMs + 900).job.state).toMatchObject({
      kind: 'failed',
      cause: { kind: 'exit_code', nodeRank: 0 },
    });
  });

  it('with a node that is found lost first, is not judged by what that did to the others', () => {
    const story = aGang().allRunning().lost(0).ended(1, crash);

    expect(story.job.state).toMatchObject({
      kind: 'queued',
      lastCause: { kind: 'node_lost', node: 'node-1' },
    });
  });

  it('that its user has stopped meanwhile is not run again, whatever turns out to be the cause', () => {
    const story = aGang()
      .allRunning()
      .ended(0, crash, 1, someMs + 900)
      .stopped('enough');
    expect(story.job.state).toMatchObject({ kind: 'stopping', outcome: { next: 'failed' } });

    expect(story.lost(1, someMs + 100).job.state).toMatchObject({
      kind: 'failed',
      cause: { kind: 'node_lost', node: 'node-2' },
    });
  });

  it.each([
    [
      'a stop',
      (story: Story) => story.stopped('enough'),
      { kind: 'cancelled', cause: { message: 'enough' } },
    ],
    ['a requeue', (story: Story) => story.requeued(), { lastCause: { kind: 'preempted' } }],
    [
      'a time limit',
      (story: Story) => story.on({ kind: 'timeLimit', attempt: 1 }),
      { kind: 'failed', cause: { kind: 'time_limit' } },
    ],
  ])('keeps the reason of %s that came before', (_, begin, wanted) => {
    const story = aGang({ max_runtime: '90s' }).allRunning();
    begin(story);

    expect(story.ended(0, crash, 1, 0).ended(1, crash, 1, 0).job.state).toMatchObject(wanted);
  });
});

describe('a job of mpi-hostfile', () => {
  const mpi = { launcher: 'mpi-hostfile' as const };

  it('is done when rank 0 is: the others are stopped, and that is no failure', () => {
    const story = aGang(mpi).allRunning().ended(0);
    expect(story.job.state).toMatchObject({ kind: 'stopping', outcome: { next: 'succeeded', cause: null } });

    expect(story.ended(1, terminated).job.state.kind).toBe('succeeded');
    expect(story.endedAttempts[0]).toMatchObject({ state: 'ended', cause: null });
    expect(story.events.slice(-5)).toEqual([
      'task.ended',
      'job.stopping',
      'task.ended',
      'attempt.ended',
      'job.succeeded',
    ]);
  });

  it.each([
    ['exits badly', (story: Story) => story.ended(1, crash)],
    ['is lost', (story: Story) => story.lost(1)],
    ['is stopped by a user as well', (story: Story) => story.stopped().ended(1, terminated)],
  ])('is done, too, when another rank then %s', (_, end) => {
    const story = aGang(mpi).allRunning().ended(0);
    end(story);

    expect(story.job.state.kind).toBe('succeeded');
  });

  it('may be done before all of it was seen running', () => {
    const story = aGang(mpi).released().ended(0).ended(1, terminated);

    expect(story.job.state.kind).toBe('succeeded');
    expect(story.endedAttempts[0]?.runningAtMs).not.toBeNull();
  });

  it('fails with rank 0, and with a rank that ends badly before it', () => {
    expect(aGang(mpi).allRunning().ended(0, crash).ended(1, terminated).job.state.kind).toBe('failed');
    expect(aGang(mpi).allRunning().ended(1, crash).ended(0).job.state.kind).toBe('failed');
  });

  it('goes on when another rank ends well', () => {
    expect(aGang(mpi).allRunning().ended(1).job.state.kind).toBe('running');
  });

  it('alone is a job like any other', () => {
    expect(aStory(mpi).allRunning().ended(0).job.state.kind).toBe('succeeded');
  });
});
