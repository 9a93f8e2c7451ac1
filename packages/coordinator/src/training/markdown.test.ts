import { expect, test } from 'vitest';
import { byteSize, codeSpan, figure, gpuHours, markdownText, roughDuration, stepTime } from './markdown.ts';

test.each([
  [-5, '0 s'],
  [59_999, '59 s'],
  [60_000, '1 min'],
  [3_599_999, '59 min'],
  [3_600_000, '1 h'],
  [7_500_000, '2 h 5 min'],
  [86_400_000, '1 d'],
  [86_400_000 + 7_200_000, '1 d 2 h'],
])('%d ms are %s', (ms, words) => expect(roughDuration(ms)).toBe(words));

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1_023, '1023 B'],
  [1_024, '1.0 KiB'],
  [2_345_678_901, '2.2 GiB'],
  [5e18, '4440.9 PiB'],
])('%d bytes are %s', (bytes, words) => expect(byteSize(bytes)).toBe(words));

test('a step takes milliseconds or seconds', () => {
  expect([0.04963, 2.4135, 0].map(stepTime)).toEqual(['49.6 ms', '2.41 s', '0 s']);
});

test('figures have six digits', () => {
  expect([2.345678901, 3e-4, 1_234_567, 0].map(figure)).toEqual(['2.34568', '0.0003', '1234570', '0']);
  expect(gpuHours(4_500)).toBe('1.25');
});

test('what others have written is one line that means nothing to Markdown', () => {
  expect(markdownText('a\n# b|c `d` <e> *f* [g](h)\\')).toBe(
    'a \\# b\\|c \\`d\\` \\<e\\> \\*f\\* \\[g\\](h)\\\\',
  );
  expect(codeSpan('a`b|c\nd')).toBe("`a'b'c d`");
  expect([markdownText('\u202egnp.exe\u009b2J'), codeSpan('a\u2066b')]).toEqual([' gnp.exe 2J', '`a b`']);
});
