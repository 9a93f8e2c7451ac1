/** The paths between the nodes of a gang: tried, measured, and what follows when they are not good. */
import type { PreflightResult } from '@muster/common/gangs';
import { describe, expect, it } from 'vitest';
import { anEndpoint } from '../modelFixture.ts';
import { addressOf, aGang, aStory } from '../storyFixture.ts';

const ofThree = { resources: { nodes: 3 } };
const ofFour = { resources: { nodes: 4 } };

/** Rank n is in the slow network at `10.0.0.n` and in the fast one at `10.1.0.n`. */
function inTwoNetworks(nodeRank: number) {
  const slow = { address: addressOf(nodeRank), network: '10.0.0.0/16', speedMbps: 1_000 };
  const fast = { address: `10.1.0.${nodeRank + 1}`, network: '10.1.0.0/16', speedMbps: 100_000 };
  return [anEndpoint(slow), anEndpoint(fast)];
}

describe('the paths of a gang', () => {
  it('are all good: it is released, and what was found is on record', () => {
    const story = aStory(ofThree).allocated().allPrepared().checked(2).checked(0);
    expect(story.states).toEqual(['checked', 'prepared', 'checked']);
    expect(story.attempt?.state).toBe('allocated');

    story.checked(1);
    expect(story.states).toEqual(['checked', 'checked', 'checked']);
    expect(story.attempt?.state).toBe('released');
    const good = { error: null, roundTripUs: 100 };
    expect(story.data('attempt.checked')).toMatchObject({
      round: 1,
      paths: [
        { from: 'node-1', to: 'node-2', address: '10.0.0.2', ...good },
        { from: 'node-2', to: 'node-1', address: '10.0.0.1', ...good },
        { from: 'node-2', to: 'node-3', address: '10.0.0.3', ...good },
        { from: 'node-3', to: 'node-1', address: '10.0.0.1', ...good },
      ],
    });
    expect(story.data('attempt.released')).toMatchObject({
      masterAddr: '10.0.0.1',
      masterPort: 29_500,
      addresses: ['10.0.0.1', '10.0.0.2', '10.0.0.3'],
    });
  });

  it('are answered for once a round by each rank', () => {
    const story = aGang().allocated().allPrepared().checked(0, { 1: 'refused' });
    const before = story.job;

    expect(story.checked(0).job, 'its second word').toBe(before);
    expect(story.checked(1, {}, { round: 7 }).job, 'a round there never was').toBe(before);
    expect(story.checked(5).job, 'a rank there never was').toBe(before);
  });

  it('without a report were not reached', () => {
    const story = aGang().allocated().allPrepared().checked(0).checked(1, {}, { paths: [] });

    expect(story.job.state).toMatchObject({
      lastCause: { message: 'node-2 does not reach node-1 at 10.0.0.1: it was not tested' },
    });
  });

  it('are reported in the words of the node that names both ends', () => {
    const words = 'node-2 cannot reach node-1 at 10.0.0.1:21000 (eth0): no answer within 5 s';
    const story = aGang().allocated().allPrepared().checked(0).checked(1, { 0: words });

    expect(story.job.state).toMatchObject({ lastCause: { message: words } });
  });

  it('to a node that names loopback alone are explained', () => {
    const endpoint = { interface: 'lo', speedMbps: null, rdma: false };
    const tunnelled = { ...endpoint, address: '127.0.0.1', network: '127.0.0.0/8' };
    const ordinary = { ...endpoint, address: '10.0.0.2', network: '10.0.0.0/24' };
    const story = aGang().allocated();
    story.prepared(0, { endpoints: [tunnelled] }).prepared(1, { endpoints: [ordinary] });
    story.checked(0).checked(1, { 0: 'node-2 cannot reach node-1 at 127.0.0.1:21000: connection refused' });

    expect(story.job.state).toMatchObject({
      lastCause: {
        message: expect.stringMatching(/connection refused; a loopback address leads .* its label network/),
      },
    });
  });

  it('that fail in one network are tried in the next', () => {
    const story = aGang().allocated();
    for (const rank of [0, 1]) story.prepared(rank, { endpoints: inTwoNetworks(rank) });
    expect(story.attempt?.network).toEqual({ round: 1, addresses: ['10.1.0.1', '10.1.0.2'] });

    story.checked(0).checked(1, { 0: 'timed out' });
    expect(story.attempt).toMatchObject({
      state: 'allocated',
      network: { round: 2, addresses: ['10.0.0.1', '10.0.0.2'] },
      master: { addr: '10.0.0.1', port: 29_500 },
    });
    expect(story.states).toEqual(['prepared', 'prepared']);
    expect(story.checked(0).checked(1).attempt?.state).toBe('released');
    expect(story.events.filter((kind) => kind === 'attempt.checked')).toHaveLength(2);
  });

  it('that fail in the last network end the start, with both ends and the error', () => {
    const story = aGang().allocated().allPrepared().checked(1, { 0: 'connection refused' }).checked(0);

    expect(story.job.state).toMatchObject({
      kind: 'queued',
      lastCause: {
        kind: 'rendezvous',
        message: 'node-2 does not reach node-1 at 10.0.0.1: connection refused',
      },
    });
    expect(story.excludedNodes, 'it cannot be told which').toEqual(['node-2', 'node-1']);
    expect(story.job).toMatchObject({ failures: 0, failedStarts: 1 });
  });

  it.each([
    ['nobody reaches rank 0', { 1: { 0: 'x' }, 2: { 0: 'x' }, 3: { 0: 'x' } }, ['node-1']],
    ['rank 2 reaches nobody and is not reached', { 1: { 2: 'x' }, 2: { 0: 'x', 3: 'x' } }, ['node-3']],
    ['only one path fails', { 1: { 2: 'x' } }, ['node-2', 'node-3']],
  ] as const)('leave out the node in most of those that fail: %s', (_, errors, excludedNodes) => {
    const story = aStory(ofFour).allocated().allPrepared();
    for (const rank of [0, 1, 2, 3] as const)
      story.checked(rank, { ...(errors as Record<number, object>)[rank] });

    expect(story.excludedNodes).toEqual(excludedNodes);
  });
});

describe('a preflight', () => {
  const mbps = 125_000;
  const measured = (pairs: Readonly<Record<number, number>>, fields: Partial<PreflightResult> = {}) => ({
    preflight: {
      error: null,
      backend: 'gloo',
      pairs: Object.entries(pairs).map(([nodeRank, rate]) => ({
        nodeRank: Number(nodeRank),
        bytesPerS: rate * mbps,
      })),
      allReduceBytesPerS: 1e9,
      ...fields,
    } as const,
  });
  const asking = { preflight: { min_bandwidth_mbps: 1_000 } };

  it('that is good enough releases the gang, and its pairs are on record', () => {
    const story = aGang(asking).allocated().allPrepared();
    story.checked(0, {}, measured({ 1: 2_000 })).checked(1, {}, measured({ 0: 1_000 }));

    expect(story.attempt?.state).toBe('released');
    expect(story.data('preflight.measured')).toMatchObject({
      backend: 'gloo',
      allReduceBytesPerS: 1e9,
      pairs: [
        { from: 'node-1', to: 'node-2', bytesPerS: 2_000 * mbps },
        { from: 'node-2', to: 'node-1', bytesPerS: 1_000 * mbps },
      ],
    });
  });

  it('with a pair below the floor names it, and leaves both out', () => {
    const story = aGang(asking).allocated().allPrepared();
    story.checked(0, {}, measured({ 1: 2_000 })).checked(1, {}, measured({ 0: 812.6 }));

    expect(story.job.state).toMatchObject({
      kind: 'queued',
      lastCause: {
        kind: 'rendezvous',
        message:
          '812 Mbit/s were measured between node-2 and node-1, and preflight.min_bandwidth_mbps is 1000',
      },
    });
    expect(story.excludedNodes).toEqual(['node-2', 'node-1']);
    expect(story.data('preflight.measured'), 'what was too slow is history too').toBeDefined();
  });

  it('excludes the one node that all slow pairs have in common', () => {
    const story = aStory({ ...ofThree, ...asking })
      .allocated()
      .allPrepared();
    story
      .checked(0, {}, measured({ 1: 5_000, 2: 10 }))
      .checked(1, {}, measured({ 0: 5_000, 2: 20 }))
      .checked(2, {}, measured({ 0: 30, 1: 40 }));

    expect(story.excludedNodes).toEqual(['node-3']);
  });

  it.each([
    [
      'failed',
      measured({}, { error: 'python3 is not there' }),
      'the preflight failed on node-2: python3 is not there',
    ],
    ['was not run', {}, 'the preflight failed on node-2: it was not run'],
  ])('that %s on a node leaves that one out', (_, findings, message) => {
    const story = aGang(asking).allocated().allPrepared();
    story.checked(0, {}, measured({ 1: 2_000 })).checked(1, {}, findings);

    expect(story.job.state).toMatchObject({ lastCause: { kind: 'rendezvous', message } });
    expect(story.excludedNodes).toEqual(['node-2']);
  });

  it('without a floor only measures', () => {
    const story = aGang({ preflight: true }).allocated().allPrepared();
    story.checked(0, {}, measured({ 1: 1 })).checked(1, {}, measured({ 0: 1 }));

    expect(story.attempt?.state).toBe('released');
  });

  it('is not believed where it was not asked for, nor about ranks that are not there', () => {
    const unasked = aGang()
      .allocated()
      .allPrepared()
      .checked(0, {}, measured({ 1: 1 }));
    expect(unasked.tasks[0]?.preflight).toBeNull();
    const asked = aGang(asking)
      .allocated()
      .allPrepared()
      .checked(0, {}, measured({ 1: 2_000, 9: 1 }));
    expect(asked.tasks[0]?.preflight?.pairs).toEqual([{ nodeRank: 1, bytesPerS: 2_000 * mbps }]);
  });
});
