import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { letAccountsPass } from './dataDir.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'data-dir-'));
  chmodSync(root, 0o755);
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

const modeOf = (...names: readonly string[]) => (statSync(join(root, ...names)).mode & 0o777).toString(8);

test('other accounts pass through to tasks and checkpoints, and everything else is closed to them', () => {
  const dataDir = join(root, 'agent');
  mkdirSync(join(dataDir, 'run'), { recursive: true, mode: 0o755 });
  writeFileSync(join(dataDir, 'credential'), 'secret', { mode: 0o644 });
  letAccountsPass(dataDir);
  expect(['', 'tasks', 'checkpoints'].map((name) => modeOf('agent', name))).toEqual(['711', '711', '711']);
  expect(['run', 'credential'].map((name) => modeOf('agent', name))).toEqual(['700', '600']);
});

test('a data directory that other accounts cannot reach is refused, naming the directory that is closed', () => {
  const closed = join(root, 'home');
  mkdirSync(join(closed, 'agent'), { recursive: true });
  chmodSync(closed, 0o700);
  expect(() => letAccountsPass(join(closed, 'agent'))).toThrow(
    `is below ${closed}, which other accounts cannot enter`,
  );
});
