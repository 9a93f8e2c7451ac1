import { describe, expect, test } from 'vitest';
import { arrayIndexAt, arraySize, formatArray, parseArray } from './array.ts';
import { memberSpec } from './arrayIndex.ts';
import { parseJobSpec } from './parse.ts';
import { decodeJobSpec, encodeJobSpec } from './serialize.ts';

function indexesOf(written: string | number): readonly (number | undefined)[] {
  const reading = parseArray(written);
  if ('expected' in reading) throw new Error(reading.expected);
  return Array.from({ length: arraySize(reading.array) + 1 }, (_, at) => arrayIndexAt(reading.array, at));
}

describe('an array', () => {
  test.each<[string | number, readonly number[], string]>([
    [3, [0, 1, 2], '0-2'],
    ['3', [0, 1, 2], '0-2'],
    ['1', [0], '0-0'],
    ['4-6', [4, 5, 6], '4-6'],
    ['7, 1, 3', [1, 3, 7], '1,3,7'],
    ['1,3,5-7', [1, 3, 5, 6, 7], '1,3,5-7'],
    ['0-1,2', [0, 1, 2], '0-2'],
    ['5-5', [5], '5-5'],
  ])('of %s has the indexes %j', (written, indexes, text) => {
    const reading = parseArray(written);
    expect(indexesOf(written)).toEqual([...indexes, undefined]);
    expect('array' in reading && formatArray(reading.array)).toBe(text);
    expect(parseArray(text), 'and is the same when it is read again').toEqual(reading);
  });

  test.each([
    ['0-9%4', { ranges: [[0, 9]], atOnce: 4 }],
    ['100%4', { ranges: [[0, 99]], atOnce: 4 }],
  ])('%s bounds how many run at the same time', (written, array) => {
    expect(parseArray(written)).toEqual({ array });
  });

  test.each([
    [0, 'a count from 1 to 100000'],
    ['', 'a count such as 100, or indexes'],
    ['ten', 'a count such as 100, or indexes'],
    [-1, 'a count such as 100, or indexes'],
    [1.5, 'a count such as 100, or indexes'],
    ['0-9%0', 'at least 1 job at the same time'],
    ['9-0', 'the lower index first: 0-9'],
    ['1,3,2-4', 'index 3 only once'],
    ['1,,3', 'a count such as 100, or indexes'],
    ['0-9:2', 'a count such as 100, or indexes'],
    [100_001, 'at most 100000 jobs in one array'],
    ['0-100000', 'at most 100000 jobs in one array'],
    ['0-1000000', 'indexes of at most 999999'],
    [1e300, 'a count such as 100, or indexes'],
  ])('of %s is refused', (written, expected) => {
    expect(parseArray(written)).toEqual({ expected: expect.stringContaining(expected) });
  });
});

describe('in a job file', () => {
  const problemsOf = (text: string) => {
    const result = parseJobSpec(text);
    return result.ok
      ? []
      : result.problems.map(({ path, message, expected }) => `${path}: ${message}; ${expected}`);
  };

  test('a wrong array is reported with everything else that is wrong', () => {
    expect(problemsOf('command: [run]\narray: 9-0\npriority: 101\n')).toEqual([
      'array: got "9-0"; the lower index first: 0-9',
      'priority: got 101; a whole number from 0 to 100',
    ]);
  });

  test('{array_index} in a name or directory asks for an array, and a directory for {array_index}', () => {
    expect(problemsOf('name: a-{array_index}\ncommand: [run]\nworkdir: /w/{array_index}\n')).toEqual([
      'name: has {array_index}, and this is no array; an array, such as array: 10; or another text',
      'workdir: has {array_index}, and this is no array; an array, such as array: 10; or another text',
    ]);
    expect(problemsOf('command: [run]\narray: 2\ncheckpoint: {dir: /c/}\n')).toEqual([
      'checkpoint.dir: the same for all jobs of the array, which would overwrite each other; ' +
        'a directory of each, such as /c/{array_index}',
    ]);
    expect(problemsOf('command: [run]\narray: 1\ncheckpoint: {dir: /c/}\n')).toEqual([]);
    expect(problemsOf(`name: ${'a'.repeat(58)}-{array_index}\ncommand: [run]\narray: 2\n`)).toMatchObject([
      expect.stringContaining('at most 63 characters with its index'),
    ]);
  });

  test('each job has its index in name, command, arguments, environment and directories', () => {
    const result = parseJobSpec(`
name: sweep-{array_index}
image: a/b
command: [run, '--seed={array_index}']
args: ['{array_index}']
env: {SEED: 's{array_index}', OTHER: '{array}'}
workdir: /srv/run-{array_index}
volumes: ['/data/{array_index}:/data']
checkpoint: {dir: '/c/{array_index}'}
array: 5-6
`);
    if (!result.ok) throw new Error(JSON.stringify(result.problems));
    const shared = decodeJobSpec(encodeJobSpec(result.spec));
    expect(shared).toEqual(result.spec);
    expect(memberSpec(shared, 6)).toEqual({
      ...shared,
      name: 'sweep-6',
      command: ['run', '--seed=6'],
      args: ['6'],
      env: { SEED: 's6', OTHER: '{array}' },
      workdir: '/srv/run-6',
      volumes: [{ source: '/data/6', target: '/data', readOnly: false }],
      checkpoint: { ...shared.checkpoint, dir: '/c/6' },
      array: null,
    });
    expect(memberSpec({ ...shared, params: { array_index: 'mine' } }, 6).command).toEqual(shared.command);
  });

  test('a spec without {array_index} is one value for all of them', () => {
    const result = parseJobSpec('command: [run]\narray: 3\n');
    if (!result.ok) throw new Error('refused');
    expect(memberSpec(result.spec, 0)).toBe(memberSpec(result.spec, 2));
  });
});
