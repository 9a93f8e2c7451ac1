import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { noLease } from './heldLease.ts';
import { readLease, writeLease } from './leaseFile.ts';

function aDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'lease-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

test.each([Number.MAX_SAFE_INTEGER, 7, null])(
  'a deadline of %s is read as it was written, over a longer one',
  (deadlineMs) => {
    const directory = aDirectory();
    writeLease(directory, 'boot-1', 1_234_567_890);
    writeLease(directory, 'boot-1', deadlineMs);
    expect(readLease(directory, 'boot-1').deadlineMs).toBe(deadlineMs);
  },
);

test('an answer of the coordinator that is there now counts for more than what was stored', () => {
  const directory = aDirectory();
  writeLease(directory, 'boot-1', 1_000);
  expect(readLease(directory, 'boot-1').askedMs).toBe(noLease.askedMs);
});

test('of another boot it is no lease: that clock has begun anew', () => {
  const directory = aDirectory();
  writeLease(directory, 'boot-1', Number.MAX_SAFE_INTEGER);
  expect(readLease(directory, 'boot-2')).toBe(noLease);
  writeLease(directory, 'boot-1', null);
  expect(readLease(directory, 'boot-2')).toBe(noLease);
});

test('what is not there, or cut anywhere, is no lease', () => {
  const directory = aDirectory();
  expect(readLease(directory, 'boot-1')).toBe(noLease);
  writeLease(directory, 'boot-1', 1_000);
  const path = join(directory, 'lease');
  const { length } = readFileSync(path, 'utf8').trimEnd();
  for (let kept = length - 1; kept >= 0; kept--) {
    truncateSync(path, kept);
    expect(readLease(directory, 'boot-1')).toBe(noLease);
  }
  writeFileSync(path, '{"bootId":"boot-1"}');
  expect(readLease(directory, 'boot-1')).toBe(noLease);
});
