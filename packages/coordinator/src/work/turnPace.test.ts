import { expect, test } from 'vitest';
import { TurnPace } from './turnPace.ts';

/** Notes turns that begin one after the other and take no time. @returns when the next one may begin */
function after(pace: TurnPace, turns: number, commands: number, beginMs = 0): number {
  let nowMs = beginMs;
  for (let turn = 0; turn < turns; turn += 1) {
    pace.took(commands, nowMs, nowMs);
    nowMs += pace.waitMs(nowMs);
  }
  return nowMs;
}

test('the first turns that commands share follow each other at once, and later ones at an interval', () => {
  const pace = new TurnPace();
  expect(after(pace, 10, 2)).toBe(0);
  expect(after(pace, 5, 2)).toBe(20);
});

test('turns with one command, as of a client that waits for each answer, never wait for others', () => {
  expect(after(new TurnPace(), 1_000, 1)).toBe(0);
});

test('after a pause, shared turns follow each other at once again', () => {
  const pace = new TurnPace();
  const busyUntilMs = after(pace, 20, 2);
  expect(after(pace, 10, 2, busyUntilMs + 1_000)).toBe(busyUntilMs + 1_000);
});

test('waiting for the disk takes no more than half of the time, and one that stalls is not waited for twice', () => {
  const pace = new TurnPace();
  pace.took(1, 0, 8);
  expect(pace.waitMs(8)).toBe(8);
  pace.took(1, 100, 5_000);
  expect(pace.waitMs(5_000)).toBe(20);
});
