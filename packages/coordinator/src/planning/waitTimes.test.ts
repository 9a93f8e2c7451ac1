import { expect, test } from 'vitest';
import type { JobState } from '../model.ts';
import { aJob, anAttempt, queuedState } from '../modelFixture.ts';
import { reserveAfterMs } from '../scheduler/plan.ts';
import { WaitTimes } from './waitTimes.ts';

const queued = (backoffMs: number): JobState => queuedState({ backoffMs });

test('a job waits from when it came into the queue, and counts anew when it comes again', () => {
  const times = new WaitTimes();
  times.follow(aJob(1), 100);
  times.follow(aJob(1), 200);
  expect(times.of(aJob(1), 300)).toEqual({ sinceMs: 100, notBeforeMs: 100 });
  times.follow(aJob(1, { state: { kind: 'starting', attempt: anAttempt(1) } }), 400);
  times.follow(aJob(1, { state: queued(50) }), 500);
  expect(times.of(aJob(1), 600)).toEqual({ sinceMs: 500, notBeforeMs: 550 });
});

test('a job of this very turn is not followed yet, and its backoff counts all the same', () => {
  expect(new WaitTimes().of(aJob(1, { state: queued(50) }), 600)).toEqual({ sinceMs: 600, notBeforeMs: 650 });
});

test('the next moment to look is the next end of a backoff or of a wait for a reservation', () => {
  const times = new WaitTimes();
  expect(times.nextAfter(0)).toBeNull();
  times.follow(aJob(1), 0);
  times.follow(aJob(2, { state: queued(5_000) }), 0);
  expect(times.nextAfter(0)).toBe(5_000);
  expect(times.nextAfter(5_000)).toBe(reserveAfterMs);
  expect(times.nextAfter(reserveAfterMs)).toBeNull();
});

test('a job that leaves the queue is waited for no longer, and one that came at the same moment still is', () => {
  const times = new WaitTimes();
  for (const number of [1, 2]) times.follow(aJob(number), 0);
  times.follow(aJob(3), 10);
  const starting = (number: number) => aJob(number, { state: { kind: 'starting', attempt: anAttempt(1) } });
  times.follow(starting(1), 20);
  expect(times.nextAfter(20)).toBe(reserveAfterMs);
  times.follow(starting(2), 30);
  expect(times.nextAfter(30)).toBe(10 + reserveAfterMs);
  times.follow(starting(3), 10 + reserveAfterMs);
  expect(times.nextAfter(10 + reserveAfterMs)).toBeNull();
});
