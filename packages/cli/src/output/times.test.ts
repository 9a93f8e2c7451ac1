import { expect, test } from 'vitest';
import { agoText, bytesText, durationText, memoryText, validityText } from './times.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

test.each([
  [-5, '0 s'],
  [0, '0 s'],
  [449, '0.4 s'],
  [9_999, '9.9 s'],
  [12_900, '12 s'],
  [3 * minute, '3 min'],
  [3 * minute + 20 * second, '3 min 20 s'],
  [2 * hour + 5 * minute + 59 * second, '2 h 5 min'],
  [3 * day + 4 * hour, '3 d 4 h'],
])('a duration of %i ms reads %s', (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

test.each([
  [-10 * second, 'just now'],
  [second, 'just now'],
  [59 * second, '59 s ago'],
  [minute, '1 min ago'],
  [hour - 1, '59 min ago'],
  [25 * hour, '1 d ago'],
])('%i ms before now reads %s', (ms, text) => {
  expect(agoText(1_000_000_000, 1_000_000_000 + ms)).toBe(text);
});

test('sizes have at most one decimal', () => {
  expect([0, 812, 1_433, 102_400, 5 * 1024 ** 3].map(bytesText)).toEqual([
    '0 B',
    '812 B',
    '1.4 KiB',
    '100 KiB',
    '5 GiB',
  ]);
  expect(memoryText(81_920)).toBe('80 GiB');
});

test('what has just been made is valid for as long as it was made for', () => {
  expect(validityText(900_000, 150)).toBe('15 min');
  expect(validityText(90_000, 0)).toBe('2 min');
});
