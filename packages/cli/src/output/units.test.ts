import { expect, test } from 'vitest';
import { fullness, rateText, ratioText, sparkline, valueText } from './units.ts';

test.each([
  [null, 'percent', '-'],
  [0, 'percent', '0 %'],
  [612.4, 'watts', '612 W'],
  [71_680, 'MiB', '70 GiB'],
  [0.437, 'ratio', '0.44'],
  [64, 'celsius', '64 °C'],
  [6_120, 'joules', '6120 J'],
  [61_200, 'joules', '61 kJ'],
  [612_000_000, 'joules', '612 MJ'],
  [3, 'of a later version', '3.0'],
])('%j %s reads %s', (value, unit, text) => {
  expect(valueText(value, unit)).toBe(text);
});

test('ratios are percents where they stand beside percents; rates are per second', () => {
  expect([null, 0, 0.437].map(ratioText)).toEqual(['-', '0 %', '44 %']);
  expect([null, 0, 307_200.4].map(rateText)).toEqual(['-', '0 B/s', '300 KiB/s']);
});

test('bars stay within their scale, and what is unknown is blank', () => {
  expect(sparkline([-1, 0, 12.5, 50, 100, 200, null, 1], 100, true)).toBe('▁▁▁▄██ ▁');
  expect(sparkline([0, 5], 0, true)).toBe('▁▁');
  expect([-1, 0, 0.5, 0.55, 1, 2].map((share) => fullness(share, 4, true))).toEqual([
    '░░░░',
    '░░░░',
    '██░░',
    '██▏░',
    '████',
    '████',
  ]);
  expect(fullness(0.6, 5, false)).toBe('###--');
});
