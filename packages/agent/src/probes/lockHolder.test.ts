import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
import { takeFileLock } from '../dataDir/fileLock.ts';
import { holderAmong, lockHolder } from './lockHolder.ts';

test('the holder of a lock is found while it holds the lock, and not afterwards', () => {
  const path = join(tempDir('lock').path, 'one.lock');
  expect(lockHolder(path)).toBeNull();
  const lock = takeFileLock(path);
  expect(lockHolder(path)).toBe(process.pid);
  lock?.close();
  expect(lockHolder(path)).toBeNull();
});

test('a waiting request, a read lock, another inode and a hidden pid hold nothing', () => {
  const locks = [
    '1: POSIX  ADVISORY  READ  11 fe:00:7 0 EOF',
    '2: POSIX  ADVISORY  WRITE 12 fe:00:77 0 EOF',
    '2: -> POSIX  ADVISORY  WRITE 13 fe:00:7 0 EOF',
    '3: FLOCK  ADVISORY  WRITE 0 fe:00:7 0 EOF',
    '',
  ].join('\n');
  expect(holderAmong(locks, 7)).toBeNull();
  expect(holderAmong(`${locks}4: POSIX  ADVISORY  WRITE 14 fe:00:7 0 EOF\n`, 7)).toBe(14);
});
