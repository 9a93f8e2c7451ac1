/** What /dev/kmsg answers when its ring was overwritten: no test can make a real kernel answer it without flooding its log. */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { silentLogger } from '@muster/common/log';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { KernelLog } from './kernelLog.ts';

/** Answers of read(2), in order; then there is nothing more. */
let answers: string[];

beforeEach(() => {
  answers = [];
  vi.spyOn(fs, 'openSync').mockReturnValue(99);
  vi.spyOn(fs, 'closeSync').mockReturnValue();
  const readSync = (_: number, buffer: NodeJS.ArrayBufferView) => {
    const answer = answers.shift() ?? 'EAGAIN';
    if (/^E[A-Z]+$/.test(answer)) throw Object.assign(new Error(answer), { code: answer });
    return (buffer as Buffer).write(answer);
  };
  vi.spyOn(fs, 'readSync').mockImplementation(readSync);
  syncBuiltinESMExports();
});

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

function open(seen: string[], warnings: string[]): KernelLog {
  const log = new KernelLog({
    path: '/dev/kmsg',
    onRecord: ({ text }) => seen.push(text),
    log: { ...silentLogger, warn: (_, message) => warnings.push(message) },
  });
  log.open();
  return log;
}

test('records that were overwritten are noted once, and the next ones are read', () => {
  answers.push('EPIPE', '4,7,1,-;first left\n', 'EINVAL', 'EPIPE', '4,9,1,-;second left\n', 'EAGAIN');
  const seen: string[] = [];
  const warnings: string[] = [];
  const log = open(seen, warnings);
  expect(seen).toEqual(['first left', 'second left']);
  expect(log.state).toEqual({ kind: 'reading', overruns: 2 });
  expect(warnings).toEqual([
    'the kernel log was overwritten before it could be read; Xids may have been missed',
  ]);
  log.close();
});

test('a log that fails for good is given up and reported once', () => {
  answers.push('4,7,1,-;before\n', 'EIO');
  const seen: string[] = [];
  const warnings: string[] = [];
  const log = open(seen, warnings);
  expect(seen).toEqual(['before']);
  expect(log.state).toMatchObject({ kind: 'unavailable' });
  expect(warnings).toHaveLength(1);
});
