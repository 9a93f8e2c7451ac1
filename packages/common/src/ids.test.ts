import { expect, test } from 'vitest';
import { isArrayId, isJobId, isNodeName, newArrayId, newJobId, parseTaskKey, taskKey } from './ids.ts';

const bytes = (first: number) => (size: number) =>
  Uint8Array.from({ length: size }, (_, index) => first + index);

test('ids are made of the bytes they are given, in letters that nobody confuses', () => {
  expect(newJobId(bytes(0))).toBe('job_0123456789ab');
  expect(newArrayId(bytes(20))).toBe('arr_mnpqrstvwxyz');
  for (let first = 0; first < 256; first += 1) {
    expect(isJobId(newJobId(bytes(first)))).toBe(true);
    expect(isArrayId(newArrayId(bytes(first)))).toBe(true);
  }
});

test.each([
  '',
  'job_',
  'job_0123456789a',
  'job_0123456789abc',
  'job_0123456789ai',
  'JOB_0123456789ab',
  ' job_0123456789ab',
  'job_0123456789ab\n',
  'arr_0123456789ab',
])('%j is no job id', (text) => {
  expect(isJobId(text)).toBe(false);
});

test.each([
  ['node-1', true],
  ['a', true],
  ['a'.repeat(63), true],
  ['', false],
  ['a'.repeat(64), false],
  ['-a', false],
  ['a-', false],
  ['A', false],
  ['a.b', false],
  ['../a', false],
  ['a\n', false],
])('%j as a node name', (text, valid) => {
  expect(isNodeName(text)).toBe(valid);
});

test('the key of a task names it, and nothing else does', () => {
  const task = { jobId: newJobId(bytes(0)), attempt: 12, nodeRank: 0 };
  expect(taskKey(task)).toBe('job_0123456789ab.12.0');
  expect(parseTaskKey(taskKey(task))).toEqual(task);
  for (const rest of ['', '.0.0', '.01.0', '.1.00', '.1.-1', '.1', '.1.0.0', '.1.0\n', '.1e3.0'])
    expect(parseTaskKey(`job_0123456789ab${rest}`)).toBeNull();
});
