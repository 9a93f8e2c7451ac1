import { describe, expect, test } from 'vitest';
import { formatDuration, parseDurationMs, suggestDuration } from './duration.ts';

describe('parseDurationMs', () => {
  test.each([
    ['24h', 86_400_000],
    ['1h30m', 5_400_000],
    ['90s', 90_000],
    ['500ms', 500],
    ['2d', 172_800_000],
    ['1d2h3m4s5ms', 93_784_005],
    ['1.5h', 5_400_000],
    ['1.1m', 66_000],
    ['0s', 0],
    ['0', 0],
    ['90', 90_000],
    [90, 90_000],
    [0.5, 500],
  ])('%j is %i ms', (written, ms) => {
    expect(parseDurationMs(written)).toBe(ms);
  });

  test.each([
    '',
    ' ',
    'h',
    '1',
    '1 h',
    '1m2h',
    '1m2m',
    '-1s',
    '+1s',
    '1e3',
    '0.0001s',
    '1w',
    'ms',
    '.5s',
    '1.s',
  ])('%j is refused, or is a plain number', (written) => {
    expect(parseDurationMs(written)).toBe(written === '1' ? 1_000 : null);
  });

  test.each([-1, Number.NaN, Number.POSITIVE_INFINITY, 1e300, 0.000_1])(
    'the number %d is refused',
    (written) => {
      expect(parseDurationMs(written)).toBeNull();
    },
  );

  test('text of any length is refused without much work', () => {
    expect(parseDurationMs('1'.repeat(1_000_000))).toBeNull();
  });
});

test.each([
  [0, '0s'],
  [1, '1ms'],
  [1_500, '1500ms'],
  [90_000, '90s'],
  [60_000, '1m'],
  [5_400_000, '90m'],
  [86_400_000, '1d'],
])('%i ms is written %j and read back', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
  expect(parseDurationMs(text)).toBe(ms);
});

test.each([
  ['24 hours', '24h'],
  ['1 Day, 2 hrs and 5 min', '1d2h5m'],
  ['10 MIN', '10m'],
  ['30 secs', '30s'],
  ['100 msec', '100ms'],
  ['01:30:00', '90m'],
  ['2-00:00:00', '2d'],
  ['soon', null],
  ['24h', null],
  ['x'.repeat(1_000), null],
])('%j suggests %j', (text, suggestion) => {
  expect(suggestDuration(text)).toBe(suggestion);
});
