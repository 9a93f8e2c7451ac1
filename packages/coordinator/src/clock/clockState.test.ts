import { expect, test } from 'vitest';
import {
  acceptedClock,
  type ClockReading,
  type ClockState,
  type ClockWitnesses,
  firstClock,
  followedMs,
  medianOf,
  readClock,
  resumedClock,
} from './clockState.ts';

const startMs = 1_700_000_000_000;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const nobody: ClockWitnesses = { isSynchronised: null, agentsWallMs: null };
const kernel: ClockWitnesses = { isSynchronised: true, agentsWallMs: null };
const unsynchronised: ClockWitnesses = { isSynchronised: false, agentsWallMs: null };

/** A reading `atMs` after the boot, of a system clock that is off by `byMs`. */
const reading = (atMs: number, byMs = 0, bootId: string | null = 'boot-1'): ClockReading => ({
  bootId,
  boottimeMs: atMs,
  systemWallMs: startMs + atMs + byMs,
});

const confirmed = (): ClockState => readClock(firstClock(reading(0)), reading(1_000), kernel).state;

/** What a clock that is off trusts after a reboot that took `offMs`, by its system clock. */
function rebooted(offMs: number, witnesses: ClockWitnesses) {
  const before = readClock(confirmed(), reading(hourMs), nobody).state;
  const now = { bootId: 'boot-2', boottimeMs: 5_000, systemWallMs: startMs + hourMs + offMs };
  return readClock(resumedClock(before, now), now, witnesses);
}

test.each([1_000, 60_000, 4 * hourMs, 400 * dayMs])(
  'a step by %i ms within one boot moves the trusted time by no more than the clock rate allows',
  (stepMs) => {
    for (const byMs of [stepMs, -stepMs]) {
      let state = confirmed();
      for (let atMs = 2_000; atMs <= 61_000; atMs += 1_000)
        state = readClock(state, reading(atMs, byMs), kernel).state;
      expect(Math.abs(state.trustedWallMs - (startMs + 61_000))).toBeLessThanOrEqual(300);
      expect(state.step !== null).toBe(stepMs > followedMs);
      expect(state.countedMs).toBe(61_000);
    }
  },
);

test('a step ends once the system clock is back, and its time was not lost', () => {
  const stepped = readClock(confirmed(), reading(2_000, dayMs), kernel);
  expect(stepped.state.step).toEqual({ sinceWallMs: startMs + 2_000, firstByMs: dayMs });
  const back = readClock(stepped.state, reading(9_000), kernel);
  expect(back).toMatchObject({ settledBy: 'agreement', setByMs: 0 });
  expect(back.state).toMatchObject({ step: null, trustedWallMs: startMs + 9_000 });
});

test('small corrections of NTP are followed, slowly', () => {
  let state = confirmed();
  for (let atMs = 2_000; atMs <= 3_600_000; atMs += 1_000)
    state = readClock(state, reading(atMs, 2_000), nobody).state;
  expect(state.trustedWallMs).toBe(startMs + 3_600_000 + 2_000);
});

test('a later start in the same boot goes on by BOOTTIME, whatever the system clock shows', () => {
  const before = readClock(confirmed(), reading(hourMs), nobody).state;
  for (const byMs of [-400 * dayMs, 100 * dayMs]) {
    const later = reading(3 * hourMs, byMs);
    const { state } = readClock(resumedClock(before, later), later, kernel);
    expect(state.trustedWallMs).toBe(startMs + 3 * hourMs);
    expect(state.step).not.toBeNull();
  }
});

test('a gap forward over a reboot is believed when the kernel is synchronised, and only then', () => {
  expect(rebooted(21 * dayMs, kernel)).toMatchObject({
    settledBy: 'kernel',
    state: { trustedWallMs: startMs + hourMs + 21 * dayMs, step: null, basis: 'confirmed' },
  });
  for (const witnesses of [nobody, unsynchronised]) {
    const { state, settledBy } = rebooted(21 * dayMs, witnesses);
    expect(settledBy).toBeNull();
    expect(state).toMatchObject({ trustedWallMs: startMs + hourMs, basis: 'crossed' });
    expect(state.step?.firstByMs).toBe(21 * dayMs);
  }
});

test('a kernel that is synchronised some time after a reboot confirms the gap then', () => {
  const { state } = rebooted(21 * dayMs, unsynchronised);
  const now = { bootId: 'boot-2', boottimeMs: 65_000, systemWallMs: startMs + hourMs + 21 * dayMs + 60_000 };
  expect(readClock(state, now, kernel)).toMatchObject({ settledBy: 'kernel', state: { step: null } });
});

test('a clock that went back over a reboot is not believed, even by a synchronised kernel', () => {
  const { state, settledBy } = rebooted(-dayMs, kernel);
  expect(settledBy).toBeNull();
  expect(state.trustedWallMs).toBe(startMs + hourMs);
});

test('agents that stayed up confirm a gap that they saw, and no other', () => {
  const gapMs = 5 * hourMs;
  const saw = (ms: number) => ({ isSynchronised: false, agentsWallMs: startMs + hourMs + ms });
  expect(rebooted(gapMs, saw(gapMs - 3_000))).toMatchObject({ settledBy: 'agents', setByMs: gapMs });
  expect(rebooted(gapMs, saw(hourMs)).settledBy).toBeNull();
  expect(rebooted(400 * dayMs, saw(gapMs)).settledBy).toBeNull();
  expect(rebooted(-gapMs, saw(-gapMs)).settledBy).toBeNull();
});

test('a first clock follows the kernel in both directions until something has confirmed it', () => {
  const first = readClock(firstClock(reading(0)), reading(1_000), unsynchronised).state;
  expect(first.basis).toBe('first');
  for (const byMs of [dayMs, -300 * dayMs]) {
    expect(readClock(first, reading(2_000, byMs), unsynchronised).state.step).not.toBeNull();
    expect(readClock(first, reading(2_000, byMs), kernel)).toMatchObject({
      settledBy: 'kernel',
      setByMs: byMs,
    });
  }
});

test('an admin confirms a step in either direction', () => {
  for (const byMs of [dayMs, -dayMs]) {
    const { state } = readClock(confirmed(), reading(2_000, byMs), nobody);
    expect(acceptedClock(state, reading(3_000, byMs))).toMatchObject({
      settledBy: 'admin',
      setByMs: byMs,
      state: { trustedWallMs: startMs + 3_000 + byMs, step: null, basis: 'confirmed', countedMs: 3_000 },
    });
  }
});

test('boots that cannot be told apart count as different ones, and so does a BOOTTIME that is less than before', () => {
  const before = readClock(confirmed(), reading(hourMs), nobody).state;
  expect(resumedClock({ ...before, bootId: null }, reading(2 * hourMs, 0, null)).basis).toBe('crossed');
  expect(resumedClock(before, reading(5_000)).basis).toBe('crossed');
});

test('the median is that of the middle, and of nothing there is none', () => {
  expect(medianOf([9, 1, 5])).toBe(5);
  expect(medianOf([4, 1])).toBe(1);
  expect(medianOf([])).toBeNull();
});
