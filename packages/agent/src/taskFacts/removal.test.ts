import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ownDirectory } from './account.ts';
import { removeOwnDirectory } from './removal.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'removal-'));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

test('what a task has in its own directory goes, and nothing that its links name', async () => {
  const task = join(root, 'task');
  const kept = join(root, 'kept');
  mkdirSync(join(ownDirectory(task), 'below'), { recursive: true });
  mkdirSync(kept);
  writeFileSync(join(kept, 'file'), '');
  writeFileSync(join(task, 'output.log'), '');
  symlinkSync(kept, join(ownDirectory(task), 'below', 'link'));
  await removeOwnDirectory(task);
  expect(existsSync(ownDirectory(task))).toBe(false);
  expect([existsSync(join(kept, 'file')), existsSync(join(task, 'output.log'))]).toEqual([true, true]);
});

test('a directory that is a link itself is not followed, and a task without one is left alone', async () => {
  const task = join(root, 'task');
  mkdirSync(task);
  await removeOwnDirectory(task);
  mkdirSync(join(root, 'kept', 'inside'), { recursive: true });
  symlinkSync(join(root, 'kept'), ownDirectory(task));
  await removeOwnDirectory(task);
  expect([existsSync(ownDirectory(task)), existsSync(join(root, 'kept', 'inside'))]).toEqual([false, true]);
});
