import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Deadlines } from './deadlines.ts';

let nowMs = 0;
let due: string[] = [];
let deadlines = new Deadlines(
  () => nowMs,
  () => {},
);

beforeEach(() => {
  vi.useFakeTimers();
  nowMs = 10_000;
  due = [];
  deadlines = new Deadlines(
    () => nowMs,
    (key) => due.push(key),
  );
});

afterEach(() => {
  deadlines.close();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

/** Timers and the clock of the machine, which need not agree. */
function pass(timersMs: number, clockMs = timersMs): void {
  nowMs += clockMs;
  vi.advanceTimersByTime(timersMs);
}

describe('Deadlines', () => {
  it('tells of each when it has come, the earlier first', () => {
    deadlines.set('late', 11_000);
    deadlines.set('early', 10_100);
    pass(99);
    expect(due).toEqual([]);
    pass(1);
    expect(due).toEqual(['early']);
    for (let step = 0; step < 9; step++) pass(100);
    expect(due).toEqual(['early', 'late']);
  });

  it('looks at the clock again when a timer was early', () => {
    deadlines.set('task', 10_100);
    pass(100, 50);
    expect(due).toEqual([]);
    pass(50);
    expect(due).toEqual(['task']);
  });

  it('is not late by the time the machine slept', () => {
    deadlines.set('task', 10_000 + 3_600_000);
    pass(10, 3_600_000);
    pass(250, 0);
    expect(due).toEqual(['task']);
  });

  it('tells at once, and not from within, of one that has passed', () => {
    deadlines.set('task', 9_000);
    expect(due).toEqual([]);
    pass(1);
    expect(due).toEqual(['task']);
  });

  it('forgets what was moved or taken back', () => {
    deadlines.set('moved', 10_100);
    deadlines.set('moved', 10_900);
    deadlines.set('gone', 10_100);
    deadlines.delete('gone');
    pass(800);
    expect(due).toEqual([]);
    pass(250);
    expect(due).toEqual(['moved']);
  });
});
