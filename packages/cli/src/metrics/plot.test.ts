import { expect, test } from 'vitest';
import { makeColours } from '../output/colours.ts';
import { textWidth } from '../output/text.ts';
import { acrossOf, curveOf, drawPlot, keyOf } from './plot.ts';
import { ticksOf, tickText } from './ticks.ts';

const plain = { width: 40, height: 10, colours: makeColours(false), unicode: true };
const curve = (...values: readonly (number | null)[]) => ({
  points: values.map((value, step) =>
    value === null ? { atMs: step * 1_000, value, step, notFinite: 1 } : { atMs: step * 1_000, value, step },
  ),
});

test.each([
  [0, 4, 4, [0, 1, 2, 3, 4]],
  [0.31, 4.2, 2, [1, 2, 3, 4]],
  [0, 1, 10, [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]],
  [-1e30, 1e30, 2, [-1e30, 0, 1e30]],
  [0.00003, 0.00005, 2, [0.00003, 0.00004, 0.00005]],
  [7, 7, 4, [7]],
])('ticks from %d to %d are round numbers', (low, high, wanted, ticks) => {
  expect(ticksOf(low, high, wanted)).toEqual(ticks);
});

test('there are two ticks at least, and they are within the range', () => {
  for (let index = 1; index < 2_000; index += 1) {
    const low = Math.sin(index) * 10 ** (index % 12);
    const high = low + Math.abs(Math.cos(index)) * 10 ** ((index % 17) - 5) + 1e-6 * Math.abs(low);
    const ticks = ticksOf(low, high, 2 + (index % 9));
    expect(ticks.length, `${low} to ${high}`).toBeGreaterThanOrEqual(2);
    expect(ticks.length).toBeLessThan(30);
    expect(ticks.toSorted((a, b) => a - b)).toEqual(ticks);
  }
});

test.each([
  [0, '0'],
  [0.1 + 0.2, '0.3'],
  [12_000, '12000'],
  [1_500_000, '1.5M'],
  [3e-5, '0.00003'],
  [2e-9, '2e-9'],
  [1e30, '1e+30'],
])('%d is written %s', (value, text) => {
  expect(tickText(value)).toBe(text);
});

test('nothing is wider or higher than it may be, whatever is drawn', () => {
  const values = [[1], [null], [null, null, 3], [5, 5, 5], [1e30, -1e30], [0, 1e-12], Array(5_000).fill(2)];
  for (const [index, each] of values.entries()) {
    for (const [width, height] of [
      [30, 8],
      [80, 24],
      [200, 5],
    ] as const) {
      const lines = drawPlot([curve(...each), curve(...each)], 'loss', { ...plain, width, height });
      expect(Math.max(...lines.map(textWidth)), `${index} at ${width}`).toBeLessThanOrEqual(width);
      expect(lines).toHaveLength(height);
    }
  }
});

test('an ascending line ascends, in ASCII too', () => {
  const lines = drawPlot([curve(0, 1, 2, 3)], 'loss', { ...plain, width: 14, height: 7, unicode: false });
  expect(lines.map((line) => line.trimEnd())).toEqual([
    '  loss',
    '3 |         **',
    '2 |     ****',
    '1 |  ***',
    '0 |**',
    '  +-----------',
    '   0    step 3',
  ]);
});

test('points without steps are placed by time, and buckets show how far they reach', () => {
  const points = [
    { atMs: 1_000, value: 1 },
    { atMs: 61_000, value: 2, bucket: { rows: 9, firstStep: null, min: 0, max: 4, last: 2 } },
  ];
  expect(acrossOf([{ points }])).toBe('time');
  const lines = drawPlot([{ points }], 'W', plain);
  expect(lines.at(-1)).toMatch(/0 s .*1 min since start/);
  expect(lines.filter((line) => /[⠀-⣿]$/.test(line)).length).toBe(7);
});

test('the axis begins with the first step of the first bucket', () => {
  const point = (firstStep: number) => ({
    atMs: 0,
    value: 1,
    step: firstStep + 9,
    bucket: { rows: 10, firstStep, min: 1, max: 2, last: 1 },
  });
  const lines = drawPlot([{ points: [point(0), point(10), point(20)] }], 'loss', plain);
  expect(lines.at(-1)).toMatch(/^ +0 .*step 29$/);
});

test('of several ranks the lowest is drawn, its attempts one behind the other', () => {
  const series = [
    { attempt: 2, nodeRank: 0, step: 5 },
    { attempt: 1, nodeRank: 1, step: 1 },
    { attempt: 1, nodeRank: 0, step: 3 },
  ].map(({ attempt, nodeRank, step }) => ({
    attempt,
    nodeRank,
    node: 'node-1',
    gpuUuid: '',
    points: [{ atMs: 0, value: 1, step }],
  }));
  expect(curveOf(series).points.map(({ step }) => step)).toEqual([3, 5]);
});

test('several curves are braille where there are colours for them, and letters where there are not', () => {
  const coloured = { ...plain, colours: makeColours(true) };
  const two = [curve(1, 2), curve(2, 1)];
  expect(drawPlot(two, 'loss', coloured).join('')).toMatch(/[⠁-⣿]/);
  expect([keyOf(0, 2, coloured), keyOf(1, 2, coloured)]).toEqual([
    '\x1b[36m━━\x1b[39m',
    '\x1b[33m━━\x1b[39m',
  ]);
  expect(drawPlot(two, 'loss', plain).join('')).toMatch(/A.*B|B.*A/);
  expect([keyOf(0, 2, plain), keyOf(1, 2, plain)]).toEqual(['A ', 'B ']);
  expect(keyOf(6, 7, coloured)).toContain('G');
});
