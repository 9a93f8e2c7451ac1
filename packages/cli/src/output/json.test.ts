import { expect, test } from 'vitest';
import { jsonText } from './json.ts';

const hostile = {
  'key\u009b2J': [
    '\u001b]52;c;eA==\u0007',
    '\u009d0;owned\u009c',
    '\u007f',
    '\u202egnp.exe\u2066',
    'a\u2028b\u2029c',
  ],
};

test.each([0, 2])(
  'JSON with indent %d has no character that a terminal acts on, and the same value',
  (indent) => {
    const text = jsonText(hostile, indent);
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u);
    expect(JSON.parse(text)).toEqual(hostile);
  },
);

test('other characters beyond ASCII stay as they are', () => {
  expect(jsonText({ text: 'naïve 训练 🙂' })).toBe('{"text":"naïve 训练 🙂"}');
});
