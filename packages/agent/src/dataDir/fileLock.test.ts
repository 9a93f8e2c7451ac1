import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { takeFileLock } from './fileLock.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-lock-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const program = `
  import { takeFileLock } from ${JSON.stringify(fileURLToPath(new URL('fileLock.ts', import.meta.url)))};
  process.stdout.write(takeFileLock(process.argv[1]) === null ? 'held by another' : 'taken');
`;

/** What a process of its own finds, if need be in a network of its own. */
function inAnotherProcess(path: string, enter: readonly string[] = []): string {
  const [command, ...args] = [...enter, process.execPath, '--input-type=module', '-e', program, path];
  return execFileSync(command, args, { encoding: 'utf8' });
}

test('a lock is held by one process at a time, by whatever name the directory is reached', () => {
  const path = join(directory, 'agent.lock');
  symlinkSync(directory, `${directory}-link`);
  try {
    const lock = takeFileLock(path);
    expect(inAnotherProcess(path)).toBe('held by another');
    expect(inAnotherProcess(join(`${directory}-link`, 'agent.lock'))).toBe('held by another');
    lock?.close();
    expect(inAnotherProcess(path)).toBe('taken');
  } finally {
    rmSync(`${directory}-link`);
  }
});

test('another network namespace does not lift it', () => {
  const path = join(directory, 'agent.lock');
  const lock = takeFileLock(path);
  expect(inAnotherProcess(path, ['unshare', '--net'])).toBe('held by another');
  lock?.close();
});

test('it ends with its holder, however that ends', () => {
  const path = join(directory, 'agent.lock');
  expect(inAnotherProcess(path)).toBe('taken');
  const lock = takeFileLock(path);
  expect(lock).not.toBeNull();
  lock?.close();
});
