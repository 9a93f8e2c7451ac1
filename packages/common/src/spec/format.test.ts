import { expect, test } from 'vitest';
import { formatProblems } from './format.ts';
import { parseJobSpec } from './parse.ts';
import type { SpecProblem } from './types.ts';

function problem(fields: Partial<SpecProblem>): SpecProblem {
  return {
    path: '',
    line: null,
    column: null,
    flag: null,
    message: 'wrong',
    expected: null,
    suggestion: null,
    ...fields,
  };
}

test('place, path, what is wrong, what was expected, and the line with a caret', () => {
  const text = 'command: [a]\nresources:\n  gpu: 4\npriority: high\n';
  const result = parseJobSpec(text);
  expect(formatProblems(result.ok ? [] : result.problems, { file: 'job.yaml', text })).toBe(
    [
      'job.yaml:3:3  resources.gpu: unknown key; did you mean "gpus"?',
      '    3 |   gpu: 4',
      '      |   ^',
      'job.yaml:4:11  priority: got "high"; expected a whole number from 0 to 100',
      '    4 | priority: high',
      '      |           ^',
    ].join('\n'),
  );
});

test.each<[Partial<SpecProblem>, string]>([
  [{ path: 'a' }, 'job.yaml  a: wrong'],
  [{ path: 'a', flag: '--a' }, '--a  wrong'],
  [{ line: 3, column: null }, 'job.yaml:3:1  wrong'],
  [{ path: 'a', suggestion: '65536' }, 'job.yaml  a: wrong; did you mean 65536?'],
  [{ path: 'a', suggestion: 'true' }, 'job.yaml  a: wrong; did you mean true?'],
  [{ path: 'a', suggestion: '24h' }, 'job.yaml  a: wrong; did you mean "24h"?'],
])('%j', (fields, line) => {
  expect(formatProblems([problem(fields)], { file: 'job.yaml', text: null })).toBe(line);
});

test('without a file there is no place', () => {
  expect(formatProblems([problem({ path: 'a' }), problem({ path: 'b' })], null)).toBe('a: wrong\nb: wrong');
});

test('a line is cut around the caret', () => {
  const text = `${'x'.repeat(500)}!${'y'.repeat(500)}`;
  const [, frame = '', caret = ''] = formatProblems([problem({ line: 1, column: 501 })], {
    file: 'f',
    text,
  }).split('\n');
  expect(frame.length).toBeLessThan(110);
  expect(frame[caret.indexOf('^')]).toBe('!');
});

test('the caret stands under its character after a tab', () => {
  const [, frame = '', caret = ''] = formatProblems([problem({ line: 1, column: 3 })], {
    file: 'f',
    text: '\t\t!',
  }).split('\n');
  expect(frame[caret.indexOf('^')]).toBe('!');
});

test('a file cannot send commands to the terminal', () => {
  const text = 'command: [a]\n"\\e]0;x\\a\u202e": 1\nname: "\\e[2J"';
  const result = parseJobSpec(text);
  const shown = formatProblems(result.ok ? [] : result.problems, {
    file: '\u001b[2J.yaml',
    text: `${text}\u001b`,
  });
  expect(shown.replaceAll('\n', '')).not.toMatch(/\p{Cc}|\p{Bidi_Control}/u);
  expect(shown).toContain('got "\\u001b[2J"');
});

test('nor can problems that came over the network', () => {
  const hostile = '\u001b[2J';
  const shown = formatProblems(
    [problem({ path: hostile, message: hostile, flag: null, suggestion: hostile })],
    null,
  );
  expect(shown).not.toMatch(/\p{Cc}/u);
});

test("colours are the caller's", () => {
  const painted = formatProblems(
    [problem({ line: 1, column: 1 })],
    { file: 'f', text: 'x' },
    (text, part) => `<${part}:${text}>`,
  );
  expect(painted).toBe('<place:f:1:1>  <message:wrong>\n<frame:    1 | x>\n<frame:      | ^>');
});
