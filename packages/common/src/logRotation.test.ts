import { appendFileSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { tempDir } from '../../../test/support/services.ts';
import { rotateLog, writesTo } from './logRotation.ts';

const line = (number: number) => `line ${number}\n`;

test('a log that grows stays below twice its limit, and its newest lines are all there in order', () => {
  const path = join(tempDir('log').path, 'agent.log');
  const log = openSync(path, 'a', 0o600);
  onTestFinished(() => closeSync(log));
  const most = 1_000;
  for (let number = 0; number < 2_000; number += 1) {
    writeSync(log, line(number));
    rotateLog(path, most);
    expect(readFileSync(path).length).toBeLessThanOrEqual(most);
  }
  const kept = readFileSync(`${path}.1`, 'utf8') + readFileSync(path, 'utf8');
  const numbers = kept
    .split('\n')
    .slice(0, -1)
    .map((each) => Number(each.slice('line '.length)));
  const first = numbers[0] ?? 0;
  expect(numbers).toEqual(Array.from({ length: 2_000 - first }, (_, index) => first + index));
  expect(kept.length).toBeGreaterThanOrEqual(most);
});

test('a log within its limit, or that is not there, stays as it is', () => {
  const path = join(tempDir('log').path, 'up.log');
  expect(rotateLog(path, 10)).toBe(false);
  appendFileSync(path, '0123456789');
  expect(rotateLog(path, 10)).toBe(false);
  expect(existsSync(`${path}.1`)).toBe(false);
});

test('a log that cannot be copied is left whole, and the reason is thrown', () => {
  const path = join(tempDir('log').path, 'up.log');
  appendFileSync(path, '0123456789');
  mkdirSync(`${path}.1`);
  expect(() => rotateLog(path, 5)).toThrow(/EISDIR/);
  expect(readFileSync(path, 'utf8')).toBe('0123456789');
});

test('a descriptor writes to the file that it has open, and to no other of that name', () => {
  const directory = tempDir('log').path;
  const path = join(directory, 'guard.log');
  const log = openSync(path, 'a');
  onTestFinished(() => closeSync(log));
  expect(writesTo(log, path)).toBe(true);
  expect(writesTo(log, join(directory, 'none.log'))).toBe(false);
  expect(writesTo(log, '/dev/null')).toBe(false);
});
