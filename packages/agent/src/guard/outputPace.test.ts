import { expect, test } from 'vitest';
import {
  allowanceOn,
  firstPace,
  nextLookMs,
  nextPace,
  type OutputPace,
  outputDefaults,
  rangeToDrop,
  reserveOf,
} from './outputPace.ts';

const mebibyte = 1024 * 1024;
const gibibyte = 1024 * mebibyte;
const large = { sizeBytes: 1_000 * gibibyte, freeBytes: 500 * gibibyte };

test('what nobody chose follows from the disk', () => {
  const usual = allowanceOn(large, outputDefaults, false);
  expect(usual).toEqual({ capBytes: gibibyte, rateBytes: 32 * mebibyte, burstBytes: 256 * mebibyte });
  expect(reserveOf(outputDefaults, large)).toBe(512 * mebibyte);
  const small = { sizeBytes: 400 * mebibyte, freeBytes: 300 * mebibyte };
  expect(allowanceOn(small, outputDefaults, false)).toMatchObject({
    capBytes: 50 * mebibyte,
    burstBytes: 50 * mebibyte,
  });
  expect(reserveOf(outputDefaults, small)).toBe(20 * mebibyte);
  expect(allowanceOn({ ...small, sizeBytes: 1 }, outputDefaults, false).capBytes).toBe(16 * mebibyte);
});

test('on a disk that is nearly full little may be written, and less is kept', () => {
  const usual = allowanceOn(large, outputDefaults, false);
  const full = allowanceOn({ ...large, freeBytes: 100 * mebibyte }, outputDefaults, false);
  expect(full).toEqual({ capBytes: usual.capBytes / 4, rateBytes: 256 * 1024, burstBytes: 256 * 1024 });
  expect(allowanceOn(large, outputDefaults, true)).toEqual({ ...full, capBytes: usual.capBytes });
});

/** Writes so much in each of so many looks, but not while it is held. @returns bytes written, and how often it was held */
function write(bytesPerLook: number, looks: number, lookMs: number) {
  const allowance = { capBytes: gibibyte, rateBytes: 1_000_000, burstBytes: 5_000_000 };
  let pace: OutputPace = firstPace(0, 0);
  let size = 0;
  let held = 0;
  let heldInRow = 0;
  let heldInRowMax = 0;
  for (let look = 1; look <= looks; look += 1) {
    const isHeld = pace.roomBytes < 0;
    held += isHeld ? 1 : 0;
    heldInRow = isHeld ? heldInRow + 1 : 0;
    heldInRowMax = Math.max(heldInRowMax, heldInRow);
    if (!isHeld) size += bytesPerLook;
    pace = nextPace(pace, size, look * lookMs, allowance);
  }
  return { size, held, heldInRowMax };
}

test('who writes less than the rate is never held, and a burst is forgiven', () => {
  expect(write(9_000, 10_000, 10)).toMatchObject({ held: 0 });
  expect(write(4_000_000, 1, 10)).toMatchObject({ held: 0 });
});

test('who writes more writes at the rate in the long run', () => {
  const { size } = write(100_000, 100_000, 10);
  expect(size).toBeGreaterThan(0.99 * 1_000_000_000);
  expect(size).toBeLessThan(1.02 * 1_000_000_000);
});

test('nobody is held for more than a second at a time, however much it wrote', () => {
  expect(write(1_000_000_000, 10_000, 10).heldInRowMax).toBeLessThanOrEqual(101);
});

test('a file that was cut is a new beginning', () => {
  const allowance = { capBytes: gibibyte, rateBytes: 1_000, burstBytes: 5_000 };
  const pace = nextPace(firstPace(1_000_000, 0), 10, 1, allowance);
  expect(pace).toEqual({ roomBytes: 5_000, seenBytes: 10, atMs: 1 });
});

test('the nearer a limit is, the sooner it is looked again', () => {
  expect([0, 160_000_000, gibibyte, Number.POSITIVE_INFINITY].map(nextLookMs)).toEqual([10, 20, 100, 100]);
});

test('of a file over its cap the middle is dropped, in whole pages', () => {
  expect(rangeToDrop(10 * mebibyte, 8 * mebibyte, 8 * mebibyte)).toBeNull();
  expect(rangeToDrop(100 * mebibyte, 100 * mebibyte, 8 * mebibyte)).toEqual({
    from: 2 * mebibyte,
    to: 96 * mebibyte,
  });
  const { from, to } = rangeToDrop(100_000_001, 100_000_001, 1_000_000) ?? { from: 1, to: 1 };
  expect([from % 65_536, to % 65_536]).toEqual([0, 0]);
});
