import { describe, expect, test } from 'vitest';
import { specBytesMax } from './limits.ts';
import { parseJobSpec } from './parse.ts';
import type { SpecProblem } from './types.ts';

function problemsOf(text: string): readonly SpecProblem[] {
  const result = parseJobSpec(text);
  if (result.ok) throw new Error(`accepted: ${JSON.stringify(result.spec)}`);
  return result.problems;
}

describe('text that is no job file', () => {
  test.each<[text: string, line: number, column: number, message: string]>([
    ['', 1, 1, 'empty'],
    ['# nothing\n', 1, 1, 'empty'],
    ['---\n', 1, 4, 'empty'],
    ['~', 1, 1, 'empty'],
    ['hello', 1, 1, 'not a mapping of settings'],
    ['- a', 1, 1, 'not a mapping of settings'],
    ['#!/bin/bash\n#SBATCH --gpus=2\npython train.py', 1, 1, 'a script'],
    ['3', 1, 1, 'not a mapping of settings'],
    ['command: [a]\n---\ncommand: [b]', 2, 1, 'a second document'],
    ['%YAML 1.1\n---\npreemptible: yes', 1, 1, 'a YAML directive'],
    ['name: x\n\tcommand: y', 2, 1, 'tab used for indentation'],
    ['env:\n  A: 1\n B: 2', 3, 1, 'indented differently from what it belongs to'],
    ['name: a: b', 1, 7, 'a value that contains another "key: value"'],
    ['name: x\n  env: 1', 1, 7, 'a value that contains another "key: value"'],
    ['name: "abc\nfoo: 1\n', 3, 1, 'a quote is not closed'],
    ["name: 'abc", 1, 11, 'a quote is not closed'],
    ['command: [a, b\nname: x\n', 2, 1, 'a list that was opened with "[" is not closed here'],
    ['env: {A: b\nname: x\n', 2, 1, 'a mapping that was opened with "{" is not closed here'],
    ['{"command": ["a"', 1, 17, 'a list that was opened with "[" is not closed here'],
    ['{"name": "a"', 1, 13, 'a mapping that was opened with "{" is never closed'],
    ['name: @x', 1, 7, 'a value that begins with a reserved character'],
    ['name:x\nproject: a', 1, 1, 'not a setting'],
    ['name: x\ncommand', 2, 1, 'not a setting'],
    ['name: "\\q"', 1, 8, 'an unknown escape in double quotes'],
    ['? [a]\n: 1', 1, 3, 'a list or mapping used as a key'],
    ['name: x\n- a', 2, 1, 'not a setting'],
    ['name: a\0b', 1, 8, 'not a text file: a control character or a byte that is not UTF-8'],
    [
      'name: x\nenv: {A: \u001b[31m}',
      2,
      10,
      'not a text file: a control character or a byte that is not UTF-8',
    ],
    ['name: \ufffd', 1, 7, 'not a text file: a control character or a byte that is not UTF-8'],
    ['\x7fELF\x02\x01\x01', 1, 1, 'not a text file: a control character or a byte that is not UTF-8'],
  ])('%j', (text, line, column, message) => {
    const [problem, ...others] = problemsOf(text);
    expect({ problem, others }).toMatchObject({ problem: { path: '', line, column, message }, others: [] });
    expect(problem?.expected).toBeTruthy();
  });

  test('several broken lines are reported together', () => {
    expect(problemsOf('name: @x\nproject: `y\nimage: "\\q"').map(({ line }) => line)).toEqual([1, 2, 3]);
  });
});

/** Small enough to be read, so that only the reader's own bounds protect it; large enough to break one without any. */
const size = specBytesMax / 4;

describe('hostile text ends as a problem, not as a crash', () => {
  test('50 MB is refused before it is looked at', () => {
    const before = process.memoryUsage().heapUsed;
    const text = 'a: 1\n'.repeat(10_000_000);
    expect(problemsOf(text)).toMatchObject([{ path: '', line: 1, message: 'larger than 256 KB' }]);
    // The text itself is a rope or a flat 50 MB string; a parse of it would need gigabytes.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(150_000_000);
  });

  test('the limit counts bytes, not characters', () => {
    const withSize = (bytes: number) => `command: [a]\n#${'é'.repeat((bytes - 14) / 2)}`;
    expect(Buffer.byteLength(withSize(specBytesMax))).toBe(specBytesMax);
    expect(parseJobSpec(withSize(specBytesMax)).ok).toBe(true);
    expect(problemsOf(withSize(specBytesMax + 2))[0]?.message).toBe('larger than 256 KB');
  });

  test.each([
    ['brackets', '['.repeat(size)],
    ['braces', '{a: '.repeat(size / 4)],
    ['dashes', '- '.repeat(size / 2)],
    ['question marks', '? '.repeat(size / 2)],
    ['indentation', Array.from({ length: 700 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n')],
    ['brackets of 33 levels', `env: ${'['.repeat(32)}${']'.repeat(32)}`],
  ])('depth: %s', (_what, text) => {
    expect(problemsOf(text)).toMatchObject([{ path: '', message: 'nested too deeply' }]);
  });

  test('32 levels are read', () => {
    expect(problemsOf(`command: [a]\nenv: ${'['.repeat(31)}${']'.repeat(31)}`)).toMatchObject([
      { path: 'env' },
    ]);
  });

  test('an alias bomb is not expanded', () => {
    const levels = Array.from(
      { length: 9 },
      (_, level) =>
        `k${level + 1}: &k${level + 1} [${Array.from({ length: 9 }, () => `*k${level}`).join(', ')}]`,
    );
    const problems = problemsOf(['k0: &k0 lol', ...levels].join('\n'));
    expect(problems.filter(({ message }) => message.startsWith('an alias'))).toHaveLength(81);
    expect(problems.filter(({ message }) => message.startsWith('an anchor'))).toHaveLength(10);
  });

  test.each([
    ['quotes', '"'.repeat(size)],
    ['closing brackets', ']'.repeat(size)],
    ['commas', `[${','.repeat(size)}`],
    ['documents', '---\n'.repeat(size / 4)],
    ['directives', '%a\n'.repeat(size / 3)],
    ['anchors', '&a '.repeat(size / 3)],
    ['tags', '!a '.repeat(size / 3)],
    ['a long tag', `name: !${'a'.repeat(size)} x`],
    ['escapes', `name: "${'\\x'.repeat(size / 2)}"`],
    ['line ends', '\n'.repeat(size)],
    ['one key over and over', 'a: 1\n'.repeat(size / 5)],
    ['different keys', Array.from({ length: 20_000 }, (_, index) => `k${index}: 1`).join('\n')],
    [
      'bad environment names',
      `env: {${Array.from({ length: 20_000 }, (_, index) => `${index}: 1`).join(', ')}}`,
    ],
    ['a long image', `image: ${'a-'.repeat(size / 2)}!`],
    ['a long duration', `max_runtime: ${'1'.repeat(size)}`],
    ['a long key', `? ${'k'.repeat(size)}\n: 1`],
  ])('%s', (_what, text) => {
    const problems = problemsOf(text);
    expect(problems.length).toBeGreaterThan(0);
    expect(problems.length).toBeLessThanOrEqual(101);
    for (const problem of problems) {
      expect(problem.message).not.toBe('');
      // Neither a key nor a value of the file's size is repeated to the user.
      expect(JSON.stringify(problem).length).toBeLessThan(1_500);
    }
  });

  test('a prototype cannot be reached through keys', () => {
    problemsOf(
      '__proto__: {polluted: 1}\nenv: {__proto__: {polluted: 1}}\nresources: {__proto__: {polluted: 1}}',
    );
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});
