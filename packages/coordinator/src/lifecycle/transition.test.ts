import { causeOf } from '@muster/common/cause';
import { InvariantViolation } from '@muster/common/errors';
import { describe, expect, it } from 'vitest';
import { allocation, anExit, placementsFor, someMs } from '../modelFixture.ts';
import { aGang, aStory, crash, nodeLost } from '../storyFixture.ts';

const commandMissing = anExit({
  exitCode: null,
  startError: causeOf('command_not_found', 'there is no train.py'),
});

describe('a job that goes well', () => {
  it('goes from the queue over starting and running to success', () => {
    const story = aGang();

    expect(story.allocated().job.state.kind).toBe('starting');
    expect(story.prepared(0).prepared(1).attempt?.state).toBe('allocated');
    expect(story.checked(0).checked(1).attempt?.state).toBe('released');
    expect(story.running(0).job.state.kind).toBe('starting');
    expect(story.running(1).job.state.kind).toBe('running');
    expect(story.ended(1).job.state.kind).toBe('running');
    expect(story.ended(0).job.state).toMatchObject({ kind: 'succeeded' });
    expect(story.events).toEqual([
      'attempt.allocated',
      'attempt.checked',
      'attempt.released',
      'attempt.running',
      'task.ended',
      'task.ended',
      'attempt.ended',
      'job.succeeded',
    ]);
  });

  it('leaves a record of its attempt', () => {
    const story = aGang().allRunning().ended(0).ended(1);

    expect(story.endedAttempts).toHaveLength(1);
    expect(story.endedAttempts[0]).toMatchObject({
      number: 1,
      state: 'ended',
      cause: null,
      master: { addr: '10.0.0.1', port: 29_500 },
      allocatedAtMs: someMs + 1_000,
      runningAtMs: someMs + 7_000,
      endedAtMs: someMs + 9_000,
    });
  });

  it('may be over before anyone has seen it run', () => {
    const story = aGang().released().ended(0).ended(1);

    expect(story.job.state.kind).toBe('succeeded');
    expect(story.endedAttempts[0]?.runningAtMs).not.toBeNull();
  });

  it('runs when the last rank does, though the first has ended well already', () => {
    expect(aGang().released().ended(0).running(1).job.state.kind).toBe('running');
  });
});

describe('a task that ends badly', () => {
  it('stops the others, and the job fails when they have ended', () => {
    const story = aGang().allRunning().ended(1, crash);

    expect(story.job.state).toMatchObject({ kind: 'stopping', outcome: { next: 'failed' } });
    expect(story.attempt?.tasks.map((task) => task.state)).toEqual(['running', 'ended']);
    expect(story.ended(0, anExit({ exitCode: null, signal: 'SIGTERM' })).job.state).toMatchObject({
      kind: 'failed',
      cause: {
        kind: 'exit_code',
        message: 'rank 1 on node-2 exited with code 1',
        nodeRank: 1,
        node: 'node-2',
      },
    });
    expect(story.endedAttempts[0]?.cause?.nodeRank).toBe(1);
  });

  it.each([
    [anExit({ exitCode: null, signal: 'SIGSEGV' }), 'exit_code', 'rank 0 on node-1 was ended by SIGSEGV'],
    [anExit({ exitCode: null, signal: 'SIGKILL', oomKilled: true }), 'host_oom', 'killed by the kernel'],
    [anExit({ exitCode: null, statusLost: true }), 'unknown', 'an unknown exit status'],
    [commandMissing, 'command_not_found', 'rank 0 on node-1 did not start: there is no train.py'],
  ])('gives its cause to the job (%#)', (exit, kind, message) => {
    const { state } = aStory({ retry: { max_attempts: 1 } })
      .released()
      .ended(0, exit).job;

    expect(state).toMatchObject({
      kind: 'failed',
      cause: { kind, message: expect.stringContaining(message) },
    });
  });

  it('is tried again as often as the spec says, after a growing wait', () => {
    const retry = { max_attempts: 3, backoff: { initial: '2s', max: '60s' }, on: ['exit_code' as const] };
    const story = aStory({ retry });

    expect(story.allRunning().ended(0, crash).job).toMatchObject({
      failures: 1,
      state: { kind: 'queued', backoffMs: 2_000 },
    });
    expect(story.allRunning().ended(0, crash).job).toMatchObject({
      failures: 2,
      state: { kind: 'queued', backoffMs: 4_000 },
    });
    expect(story.allRunning().ended(0, crash).job).toMatchObject({
      lastAttempt: 3,
      state: { kind: 'failed' },
    });
  });

  it('is not tried again for a cause that the spec does not name', () => {
    const story = aStory({ retry: { max_attempts: 3, on: ['nccl_timeout'] } });

    expect(story.allRunning().ended(0, crash).job.state.kind).toBe('failed');
  });

  it('is tried again when it could not be started, if the spec names that', () => {
    const story = aStory({ retry: { max_attempts: 2, on: ['command_not_found'] } });

    expect(story.released().ended(0, commandMissing).job).toMatchObject({
      failures: 1,
      state: { kind: 'queued' },
    });
    expect(story.released().ended(0, commandMissing).job.state.kind).toBe('failed');
  });
});

describe('a node that goes away', () => {
  it('before the release sends the job back to the queue, at no cost but the wait', () => {
    const story = aGang({ retry: { max_attempts: 1, backoff: { initial: '1s', max: '3s' } } });
    const waits = [1, 2, 3, 4].map((attempt) => {
      story.allocated().prepared(1).on({ kind: 'startFailed', attempt, cause: nodeLost, excludeNodes: [] });
      return story.job.state.kind === 'queued' ? story.job.state.backoffMs : null;
    });

    expect(waits).toEqual([1_000, 2_000, 3_000, 3_000]);
    expect(story.job).toMatchObject({ lastAttempt: 4, failures: 0, failedStarts: 4 });
    expect(story.allRunning().job.failedStarts).toBe(0);
  });

  it('after the release changes nothing: silent is not dead', () => {
    const story = aGang().released();
    const before = story.job;

    expect(story.on({ kind: 'startFailed', attempt: 1, cause: nodeLost, excludeNodes: [] }).job).toBe(before);
  });

  it('and is lost, ends the attempt with its task, at no cost but the wait', () => {
    const story = aGang({ retry: { max_attempts: 1, backoff: { initial: '1s', max: '3s' } } });
    const pause = 120_000;
    // At once the first time; from the third on nothing is gained, and the breaker waits between trials.
    for (const backoffMs of [0, 1_000, pause, pause, pause, pause, pause]) {
      expect(story.allRunning().lost(0).job.state).toMatchObject({
        kind: 'stopping',
        outcome: { next: 'queued', charge: 'node_loss' },
      });
      expect(story.ended(1, crash).job).toMatchObject({
        state: { kind: 'queued', backoffMs, lastCause: { kind: 'node_lost' } },
        failures: 0,
        failedStarts: 0,
        excludedNodes: [],
      });
    }
  });

  it('and is lost, fails a job that does not ask to be retried for that', () => {
    const story = aStory({ retry: { max_attempts: 3, on: ['exit_code'] } });

    expect(story.allRunning().lost(0).job.state).toMatchObject({
      kind: 'failed',
      cause: { kind: 'node_lost', node: 'node-1' },
    });
  });

  it('before the release, is not waited for even if it is known to be lost', () => {
    expect(aGang().allocated().prepared(1).lost(0).job).toMatchObject({
      state: { kind: 'queued', lastCause: { kind: 'node_lost' } },
      failedStarts: 1,
      excludedNodes: [],
    });
  });
});

describe('a stop', () => {
  it('cancels a queued job at once', () => {
    const story = aStory().stopped('not needed');

    expect(story.job.state).toMatchObject({
      kind: 'cancelled',
      cause: { kind: 'cancelled', message: 'not needed' },
    });
    expect(story.endedAttempts).toEqual([]);
    expect(story.events).toEqual(['job.cancelled']);
  });

  it('cancels at once what has not been released', () => {
    const story = aGang().allocated().prepared(0).stopped();

    expect(story.job.state.kind).toBe('cancelled');
    expect(story.endedAttempts[0]?.tasks.map((task) => task.state)).toEqual(['ended', 'ended']);
  });

  it('waits for the tasks of a running job, however they end', () => {
    const story = aGang().allRunning().stopped();

    expect(story.job.state).toMatchObject({ kind: 'stopping', outcome: { next: 'cancelled' } });
    expect(story.ended(0, anExit()).job.state.kind).toBe('stopping');
    expect(story.ended(1, crash).job.state.kind).toBe('cancelled');
  });

  it('outranks a retry that is on its way, and says so', () => {
    const story = aGang().allRunning().requeued().stopped();

    expect(story.events.filter((kind) => kind === 'job.stopping')).toHaveLength(2);
    expect(story.ended(0).ended(1).job.state.kind).toBe('cancelled');
  });

  it('does not hide why a job failed', () => {
    const story = aGang().allRunning().ended(0, crash).stopped();

    expect(story.ended(1).job.state).toMatchObject({ kind: 'failed', cause: { kind: 'exit_code' } });
  });

  it('a second time keeps the first reason', () => {
    const story = aGang().allRunning().stopped('first').stopped('second').ended(0).ended(1);

    expect(story.job.state).toMatchObject({ kind: 'cancelled', cause: { message: 'first' } });
  });
});

describe('a requeue', () => {
  it('stops the attempt and queues the job again, without a wait and at no cost', () => {
    const story = aGang().allRunning().requeued();

    expect(story.job.state.kind).toBe('stopping');
    expect(story.ended(0).ended(1, crash).job).toMatchObject({
      failures: 0,
      failedStarts: 0,
      state: { kind: 'queued', backoffMs: 0, lastCause: { kind: 'preempted' } },
    });
    expect(story.allRunning().job).toMatchObject({ lastAttempt: 2, state: { kind: 'running' } });
  });

  it('leaves a queued job as it is', () => {
    const story = aStory();
    const before = story.job;

    expect(story.requeued().job).toBe(before);
  });
});

describe('a time limit', () => {
  it('fails the job once its tasks have ended', () => {
    const story = aStory({ max_runtime: '90s' }).allRunning().on({ kind: 'timeLimit', attempt: 1 });

    expect(story.job.state.kind).toBe('stopping');
    expect(story.ended(0).job.state).toMatchObject({
      kind: 'failed',
      cause: { kind: 'time_limit', message: expect.stringContaining('90 s') },
    });
  });

  it('is tried again from its last checkpoint, if the spec names that', () => {
    const story = aStory({ max_runtime: '90s', retry: { max_attempts: 2, on: ['time_limit'] } });
    story.allRunning().on({ kind: 'timeLimit', attempt: 1 });

    expect(story.ended(0).job).toMatchObject({ failures: 1, state: { kind: 'queued' } });
  });

  it('of an earlier attempt does not count', () => {
    const story = aStory({ max_runtime: '90s' }).allRunning().requeued().ended(0).allRunning();

    expect(story.on({ kind: 'timeLimit', attempt: 1 }).job.state.kind).toBe('running');
  });
});

describe('a guarantee', () => {
  it('refuses a second attempt beside the first (G2)', () => {
    expect(() => aStory().allocated().allocated()).toThrow(InvariantViolation);
    expect(() => aGang().allRunning().stopped().allocated()).toThrow(InvariantViolation);
  });

  it('refuses an attempt with too few or too many nodes (G3)', () => {
    for (const tasks of [
      [],
      placementsFor(aStory().job),
      placementsFor(aGang().job).concat(placementsFor(aStory().job)),
    ]) {
      expect(() => aGang().on(allocation(tasks))).toThrow(InvariantViolation);
    }
  });

  it('lets no report of an earlier attempt through (G6)', () => {
    const story = aStory().allRunning().requeued().ended(0).allocated();
    const before = story.job;

    expect(story.prepared(0, { attempt: 1 }).running(0, 1).ended(0, crash, 1).job).toBe(before);
    expect(story.on({ kind: 'startFailed', attempt: 1, cause: nodeLost, excludeNodes: [] }).job).toBe(before);
  });
});
