import { expect, test } from 'vitest';
import { byteSize, code, figure, gpuHours, plain, timeSpan } from './words.ts';

test.each([
  [-5, '0 s'],
  [59_999, '59 s'],
  [60_000, '1 min'],
  [3_599_999, '59 min'],
  [3_600_000, '1 h'],
  [7_500_000, '2 h 5 min'],
  [86_400_000, '1 d'],
  [86_400_000 + 7_200_000, '1 d 2 h'],
])('%d ms are %s', (ms, words) => expect(timeSpan(ms)).toBe(words));

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1_000, '1.0 kB'],
  [2_345_678_901, '2.3 GB'],
  [5e18, '5000.0 PB'],
])('%d bytes are %s', (bytes, words) => expect(byteSize(bytes)).toBe(words));

test('figures have six digits', () => {
  expect([2.345678901, 3e-4, 1_234_567, 0].map(figure)).toEqual(['2.34568', '0.0003', '1234570', '0']);
  expect(gpuHours(4_500)).toBe('1.25');
});

test('what others have written is one line that means nothing to Markdown', () => {
  expect(plain('a\n# b|c `d` <e> *f* [g](h)\\')).toBe('a \\# b\\|c \\`d\\` \\<e\\> \\*f\\* \\[g\\](h)\\\\');
  expect(code('a`b|c\nd')).toBe("`a'b'c d`");
});
