import { expect, test } from 'vitest';
import { someMs } from '../modelFixture.ts';
import { isNewer, latenessMsMax, staleMsMax, takenAtMs } from './telemetryStore.ts';

test.each([
  { what: 'at once', nodeMs: someMs, at: 5_000 },
  { what: 'late', nodeMs: someMs - 3_000, at: 2_000 },
  { what: 'as late as is believed', nodeMs: someMs - latenessMsMax, at: 5_000 - latenessMsMax },
  { what: 'by a clock that is behind', nodeMs: someMs - latenessMsMax - 1, at: 5_000 },
  { what: 'by a clock that is ahead', nodeMs: someMs + 1, at: 5_000 },
  { what: 'by a clock of 1970', nodeMs: 0, at: 5_000 },
  { what: 'by a clock beyond numbers', nodeMs: Number.MAX_VALUE, at: 5_000 },
])('a reading that came $what was taken at $at', ({ nodeMs, at }) => {
  expect(takenAtMs(nodeMs, someMs, 5_000)).toBe(at);
});

test('what was received before is no change; a clock that was set back does not silence a node', () => {
  expect(isNewer(someMs, null)).toBe(true);
  expect(isNewer(someMs + 1, someMs)).toBe(true);
  expect(isNewer(someMs, someMs)).toBe(false);
  expect(isNewer(someMs - staleMsMax, someMs)).toBe(false);
  expect(isNewer(someMs - staleMsMax - 1, someMs)).toBe(true);
});
