import { expect, test } from 'vitest';
import { lineOf } from './pinoLogger.ts';

const atMs = new Date(2026, 2, 1, 14, 5, 9).getTime();
const entry = { atMs, name: 'coordinator', level: 'info', message: 'listening', fields: {} } as const;

test('a line has the time, who says it, what, and the facts', () => {
  const fields = { jobs: 0, node: 'gpu-1', http: null, none: undefined, tasks: ['a'] };
  expect(lineOf({ ...entry, fields })).toBe(
    '14:05:09  coordinator  listening  jobs=0  node=gpu-1  tasks=["a"]\n',
  );
  expect(lineOf({ ...entry, level: 'warn' })).toBe('14:05:09  coordinator  WARN  listening\n');
});

test('what comes from elsewhere stays on its line and colours nothing', () => {
  expect(lineOf({ ...entry, fields: { error: 'a\nb\u001b[31m' } })).toBe(
    '14:05:09  coordinator  listening  error=a b [31m\n',
  );
});
