import { causeOf } from '@muster/common/cause';
import { describe, expect, it } from 'vitest';
import { aFailure, anExit } from '../modelFixture.ts';
import { aGang, aStory } from '../storyFixture.ts';
import { failedStartsMax } from './failedStart.ts';

describe('a task that cannot start after the release, because the disk of its node has filled', () => {
  const diskFull = anExit({ exitCode: null, startError: causeOf('disk_full', 'no space left for /data') });
  const terminated = anExit({ exitCode: null, signal: 'SIGTERM' });
  const retry = { max_attempts: 1, backoff: { initial: '1s', max: '3s' }, on: ['exit_code' as const] };

  it('is placed elsewhere, as if its node had failed to prepare it', () => {
    const story = aStory({ retry }).released().ended(0, diskFull);

    expect(story.job).toMatchObject({
      state: { kind: 'queued', lastCause: { kind: 'disk_full', node: 'node-1' }, backoffMs: 1_000 },
      failures: 0,
      failedStarts: 1,
      excludedNodes: [{ node: 'node-1', cause: { kind: 'disk_full' } }],
    });
    expect(story.endedAttempts[0]?.cause).toMatchObject({ kind: 'disk_full' });
    expect(story.allRunning().job).toMatchObject({ failedStarts: 0, excludedNodes: [] });
  });

  it('stops the ranks of its gang that run, whatever they end with', () => {
    const story = aGang({ retry }).released().running(0).ended(1, diskFull);
    expect(story.job.state.kind).toBe('stopping');

    expect(story.ended(0, terminated).job).toMatchObject({
      state: { kind: 'queued', lastCause: { kind: 'disk_full', nodeRank: 1 } },
      failures: 0,
      failedStarts: 1,
    });
    expect(story.excludedNodes).toEqual(['node-2']);

    const both = aGang({ retry }).released().ended(1, diskFull).ended(0, diskFull);
    expect(both.job).toMatchObject({ state: { kind: 'queued' }, failures: 0, failedStarts: 1 });
  });

  it('fails its job after so many in a row', () => {
    const story = aStory({ retry });
    let starts = 0;
    for (; story.job.state.kind === 'queued' && starts < 20; starts += 1) story.released().ended(0, diskFull);

    expect(starts).toBe(failedStartsMax);
    expect(story.job.state).toMatchObject({ kind: 'failed', cause: { kind: 'disk_full', node: 'node-1' } });
  });

  it('is told from a program that fills the disk', () => {
    const exit = anExit({ exitCode: 1, failure: aFailure({ kind: 'disk_full' }) });

    expect(aStory({ retry }).allRunning().ended(0, exit).job).toMatchObject({
      state: { kind: 'failed', cause: { kind: 'disk_full' } },
      excludedNodes: [],
    });
  });
});
