/** From the allocation of a gang to its release, and every way in which that can go wrong. */

import { causeOf } from '@muster/common/cause';
import { describe, expect, it, test } from 'vitest';
import { aCheckpoint, anEndpoint, anExit, aSpec, nodeNameOf } from '../modelFixture.ts';
import { aGang, aStory, imageMissing, nodeLost, Story } from '../storyFixture.ts';
import { failedStartsMax } from './failedStart.ts';
import { resumeCandidates } from './resume.ts';

const ofThree = { resources: { nodes: 3 } };

describe('an allocation', () => {
  it.each([1, 2, 4])('of an elastic job takes as many nodes as fit: %i of 1 to 4', (count) => {
    const story = aStory({ resources: { nodes: { min: 1, max: 4 } } }).allocated({ count });

    expect(story.states).toEqual(Array.from({ length: count }, () => 'assigned'));
  });

  it('of an elastic job is a gang of its own size: the next may have another', () => {
    const story = aStory({ resources: { nodes: { min: 1, max: 3 } } }).allRunning({ count: 3 });
    story
      .lost(2)
      .ended(0, anExit({ exitCode: 1 }))
      .ended(1, anExit({ exitCode: 1 }));

    expect(story.allRunning({ count: 2 }).job).toMatchObject({ lastAttempt: 2, state: { kind: 'running' } });
    expect(story.ended(0).ended(1).job.state.kind).toBe('succeeded');
  });

  it.each([
    [{}, 60_000],
    [{ lease: '10s' }, 10_000],
    [{ node_loss: 'hold' as const }, null],
    [{ node_loss: 'hold' as const, lease: '10s' }, null],
  ])('has the lease of its job, or the cluster’s, or none: %j', (file, leaseMs) => {
    expect(aStory(file).allocated().attempt?.leaseMs).toBe(leaseMs);
  });

  it.each([
    ['the job does not ask', {}, false, 2, false],
    ['the job asks', { preflight: true }, false, 2, true],
    ['one of its nodes was away', {}, true, 2, true],
    ['it is alone', { preflight: true }, true, 1, false],
  ])('measures paths or not when %s', (_, file, preflight, count, wanted) => {
    const spec = aSpec({ resources: { nodes: { min: 1, max: 2 } }, ...file });
    const story = new Story({}, { spec }).allocated({ count, preflight });

    expect(story.attempt?.preflight).toBe(wanted);
  });
});

test('a checkpoint that is not there to begin from is gone, costs nothing, and is not chosen again', () => {
  const checkpoints = [aCheckpoint(50), aCheckpoint(100)];
  const story = new Story({}, { checkpoints });
  const resume = { name: 'checkpoint-100', step: 100 };
  story.allocated({ resume });
  const startError = causeOf(
    'corrupt_checkpoint',
    'the checkpoint checkpoint-100 is not in /data on this node',
  );
  story.ended(0, anExit({ exitCode: null, startError }));

  expect(story.job).toMatchObject({ failures: 0, excludedNodes: [], state: { kind: 'queued' } });
  expect(story.job.checkpoints.map(({ step, verdict }) => [step, verdict])).toEqual([
    [50, 'verified'],
    [100, 'gone'],
  ]);
  expect(resumeCandidates(story.job).map(({ step }) => step)).toEqual([50]);
  expect(story.events).toContain('checkpoint.gone');
});

describe('the prepared nodes of a gang', () => {
  it('are waited for on every rank, and then the paths are tried', () => {
    const story = aGang().allocated().prepared(1);

    expect(story.attempt).toMatchObject({ state: 'allocated', network: null, master: null });
    expect(story.prepared(0).attempt).toMatchObject({
      state: 'allocated',
      network: { round: 1, addresses: ['10.0.0.1', '10.0.0.2'] },
      master: { addr: '10.0.0.1', port: 29_500 },
    });
    expect(story.states).toEqual(['prepared', 'prepared']);
  });

  it('of one alone are its release, at the address it named', () => {
    const story = aStory().allocated().prepared(0);

    expect(story.attempt).toMatchObject({
      state: 'released',
      network: null,
      master: { addr: '10.9.9.9', port: 29_500 },
    });
    expect(story.states).toEqual(['checked']);
    expect(story.events).toEqual(['attempt.allocated', 'attempt.released']);
  });

  it('take the meeting point from rank 0 only', () => {
    const master = { addr: '10.6.6.6', port: 1 };

    expect(aGang().allocated().prepared(0).prepared(1, { master }).attempt?.master?.port).toBe(29_500);
  });

  it('are the same when they are reported again', () => {
    const story = aGang().allocated().prepared(0);
    const half = story.job;
    expect(story.prepared(0).job).toBe(half);
    const whole = story.prepared(1).job;
    expect(story.prepared(0).prepared(1).job).toBe(whole);
  });

  it.each([
    ['rank 0 with another port', 0, { master: { addr: '10.9.9.9', port: 4_000 }, testPort: 4_000 }],
    ['rank 1 with another port', 1, { testPort: 4_000 }],
    ['rank 1 at another address', 1, { endpoints: [anEndpoint({ address: '10.0.0.77' })] }],
  ])('begin a new round when they come again: %s', (_, nodeRank, fields) => {
    const story = aGang().allocated().allPrepared().checked(0);
    expect(story.states).toEqual(['checked', 'prepared']);

    story.prepared(nodeRank, fields);
    expect(story.states).toEqual(['prepared', 'prepared']);
    expect(story.attempt?.network?.round).toBe(2);
    // What was found about the round before counts for nothing: the port that was tried is no longer there.
    const before = story.job;
    expect(story.checked(1, {}, { round: 1 }).checked(0, {}, { round: 1 }).job).toBe(before);
    expect(story.checked(0).checked(1).attempt?.state).toBe('released');
  });

  it('change nothing after the release', () => {
    const story = aGang().released();
    const before = story.job;

    expect(story.prepared(1, { testPort: 4_000 }).job).toBe(before);
  });

  it.each([
    ['no address', { endpoints: [] }, 'node-1 named no address and port for the other nodes of the gang'],
    ['no port', { testPort: null }, 'node-1 named no address and port'],
    ['no master port', { master: null }, 'node-1 named no address and port'],
  ])('that name %s cannot be met, and end the start', (_, fields, message) => {
    const story = aGang().allocated().prepared(0, fields);

    expect(story.job.state).toMatchObject({
      kind: 'queued',
      lastCause: { kind: 'rendezvous', node: 'node-1', message: expect.stringContaining(message) },
    });
    expect(story.excludedNodes).toEqual(['node-1']);
  });

  it('that name no address in the network the job asks for say so', () => {
    const story = aGang({ network: '10.1.0.0/16' }).allocated().prepared(1, { endpoints: [] });

    expect(story.job.state).toMatchObject({
      lastCause: { message: expect.stringContaining('no address in 10.1.0.0/16') },
    });
  });
});

describe('a task that ends before the release', () => {
  it('ends the others with it, and the next attempt excludes its node', () => {
    const story = aGang().allocated().prepared(0).ended(1, imageMissing);

    expect(story.job).toMatchObject({
      state: {
        kind: 'queued',
        lastCause: {
          kind: 'image_pull',
          nodeRank: 1,
          node: 'node-2',
          message: 'rank 1 on node-2 did not start: there is no image train:2',
        },
      },
      failures: 0,
      failedStarts: 1,
      excludedNodes: [{ node: 'node-2', cause: { kind: 'image_pull' } }],
    });
    expect(story.endedAttempts[0]?.tasks.every((task) => task.state === 'ended')).toBe(true);
  });

  it.each(['image_pull', 'disk_full', 'gpu_fault', 'rendezvous'] as const)(
    'because of its node (%s) is tried again on others, and given up after so many in a row',
    (kind) => {
      const retry = { max_attempts: 1, backoff: { initial: '1s', max: '3s' }, on: ['exit_code' as const] };
      const story = aGang({ retry });
      const startError = causeOf(kind, 'not here');
      const waits: (number | null)[] = [];
      while (story.job.state.kind === 'queued' && waits.length < 20) {
        story.allocated().ended(0, anExit({ exitCode: null, startError }));
        waits.push(story.job.state.kind === 'queued' ? story.job.state.backoffMs : null);
      }

      expect(waits).toHaveLength(failedStartsMax);
      expect(waits).toEqual([1_000, 2_000, 3_000, 3_000, null]);
      expect(story.job.state).toMatchObject({ kind: 'failed', cause: { kind, node: 'node-1' } });
    },
  );

  it.each([
    [['exit_code' as const], 'failed'],
    [['command_not_found' as const], 'queued'],
  ])('for want of its command is tried again only if the spec says so: %j', (on, kind) => {
    const startError = causeOf('command_not_found', 'no train.py');
    const story = aGang({ retry: { max_attempts: 2, on } }).allocated();

    expect(story.ended(1, anExit({ exitCode: null, startError })).job.state.kind).toBe(kind);
    expect(story.excludedNodes).toEqual(['node-2']);
  });

  it('well is not believed', () => {
    const story = aGang().allocated().prepared(0);
    const before = story.job;

    expect(story.running(0).job).toBe(before);
    // Were it believed, the other rank could never complete the gang.
    expect(story.ended(0).job).toMatchObject({
      state: { kind: 'queued', lastCause: { kind: 'unknown' } },
      failures: 0,
      failedStarts: 1,
    });
  });

  it('well is not believed of a single one either', () => {
    expect(aStory().allocated().ended(0).job.state.kind).toBe('queued');
  });
});

describe('excluded nodes', () => {
  it('are each named once, with what was wrong last', () => {
    const story = aGang().allocated().ended(1, imageMissing);
    const cause = causeOf('rendezvous', 'later');
    const excludeNodes = [nodeNameOf('node-2'), nodeNameOf('node-9')];
    story.allocated().on({ kind: 'startFailed', attempt: 2, cause, excludeNodes });

    expect(story.job.excludedNodes).toEqual([
      { node: 'node-2', cause },
      { node: 'node-9', cause },
    ]);
  });

  it('are so until an attempt runs', () => {
    const story = aGang().allocated().ended(1, imageMissing).released();
    expect(story.excludedNodes).toEqual(['node-2']);

    expect(story.running(0).running(1).job).toMatchObject({ excludedNodes: [], failedStarts: 0 });
  });
});

describe('the deadline of the preparation', () => {
  const file = { prepare_timeout: '90s' };
  const late = (story: Story, doing: readonly (string | null)[]) =>
    story.on({ kind: 'prepareTimeout', attempt: 1, doing });

  it('names the nodes that are not prepared and what they were doing, and leaves them out', () => {
    const story = late(
      aStory({ ...ofThree, ...file })
        .allocated()
        .prepared(1),
      ['pulls image train:2', 'x', null],
    );

    expect(story.job.state).toMatchObject({
      kind: 'queued',
      lastCause: {
        kind: 'rendezvous_timeout',
        message: 'not ready within the prepare_timeout of 90 s: node-1 (pulls image train:2), node-3',
      },
    });
    expect(story.excludedNodes).toEqual(['node-1', 'node-3']);
    expect(story.job).toMatchObject({ failures: 0, failedStarts: 1 });
  });

  it('names the nodes that have not reported what they found', () => {
    const story = late(aGang(file).allocated().allPrepared().checked(0), [null, 'tries its paths']);

    expect(story.job.state).toMatchObject({
      lastCause: { message: expect.stringMatching(/: node-2 \(tries its paths\)$/) },
    });
    expect(story.excludedNodes).toEqual(['node-2']);
  });

  it('is over with the release, and is of one attempt', () => {
    const story = aGang(file).released();
    const before = story.job;
    expect(late(story, []).job).toBe(before);
    const second = aGang(file)
      .allocated()
      .on({ kind: 'startFailed', attempt: 1, cause: nodeLost, excludeNodes: [] });
    const queued = second.allocated().job;
    expect(late(second, []).job).toBe(queued);
  });
});

describe('the deadline of the rendezvous', () => {
  it('stops the tasks, and names those that do not run', () => {
    const retry = { max_attempts: 2, on: ['rendezvous_timeout' as const] };
    const story = aGang({ rendezvous_timeout: '30s', retry }).released().running(1);
    story.on({ kind: 'rendezvousTimeout', attempt: 1 });

    expect(story.job.state).toMatchObject({
      kind: 'stopping',
      outcome: {
        next: 'queued',
        charge: 'node_loss',
        backoffMs: 0,
        cause: {
          kind: 'rendezvous_timeout',
          message: 'not running within the rendezvous_timeout of 30 s: node-1',
          nodeRank: null,
          node: 'node-1',
        },
      },
    });
    // It was our doing, whatever their ends look like.
    expect(story.ended(0, anExit({ exitCode: 1 })).ended(1).job.state).toMatchObject({
      kind: 'queued',
      lastCause: { kind: 'rendezvous_timeout' },
    });
  });

  it('is over when every task runs, and does not begin before the release', () => {
    for (const story of [aGang().allRunning(), aGang().allocated().allPrepared()]) {
      const before = story.job;
      expect(story.on({ kind: 'rendezvousTimeout', attempt: 1 }).job).toBe(before);
    }
  });
});
