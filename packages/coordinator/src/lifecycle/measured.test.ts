/** The length of an attempt is what its nodes measured, wherever the coordinator's clock has put its moments. */
import { expect, test } from 'vitest';
import { anAttempt, anExit, aTask, someMs } from '../modelFixture.ts';
import { aStory } from '../storyFixture.ts';
import { asMeasured } from './measured.ts';

const hourMs = 3_600_000;

/** Ran for a minute by the coordinator's clock, in tasks that their nodes measured so. */
function ranAMinute(...ranForMs: readonly number[]) {
  const endedAtMs = someMs + 60_000;
  const tasks = ranForMs.map((each, nodeRank) => ({
    ...aTask(nodeRank, { state: 'ended', exit: anExit({ finishedAtMs: endedAtMs }) }),
    startedAtMs: someMs,
    ranForMs: each,
  }));
  const attempt = anAttempt(1, {
    allocatedAtMs: someMs - 2_000,
    runningAtMs: someMs,
    savedAtMs: someMs + 50_000,
    tasks,
  });
  return asMeasured(attempt, endedAtMs);
}

test.each([
  ['more', hourMs],
  ['less', 15_000],
])('an attempt that ran for %s time than the clock counted begins earlier or later', (_, ranForMs) => {
  const byMs = 60_000 - ranForMs;
  expect(ranAMinute(ranForMs)).toMatchObject({
    allocatedAtMs: someMs - 2_000 + byMs,
    runningAtMs: someMs + byMs,
    savedAtMs: Math.min(someMs + 60_000, someMs + 50_000 + byMs),
  });
});

test.each([[[60_000]], [[60_400]], [[hourMs, 60_000]], [[]]])(
  'moments that nodes confirm, or that none has measured, stay: %j',
  (ranForMs) => {
    expect(ranAMinute(...ranForMs)).toMatchObject({ allocatedAtMs: someMs - 2_000, runningAtMs: someMs });
  },
);

test('a job is booked, and shown, for as long as its node says that it ran', () => {
  const story = aStory({ resources: { gpus: 1 } }).allRunning();
  story.nowMs += 4 * hourMs;
  const exit = anExit({ finishedAtMs: story.nowMs });
  story.on({ kind: 'taskEnded', attempt: 1, nodeRank: 0, exit, failedAtMs: null, ranForMs: 13_000 });
  expect(story.job.ledger).toContainEqual({ kind: 'productive', cause: null, gpuSeconds: 13 });
  const [ended] = story.endedAttempts;
  expect((ended?.endedAtMs ?? 0) - (ended?.runningAtMs ?? 0)).toBe(13_000);
});
