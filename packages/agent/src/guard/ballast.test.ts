import { mkdirSync, mkdtempSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { expect, onTestFinished, test } from 'vitest';
import { Ballast } from './ballast.ts';

test('a ballast that cannot be made is tried again after a minute, and logged once', () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-ballast-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, 'ballast');
  let nowMs = 0;
  const logged: object[] = [];
  const log = { ...silentLogger, warn: (fields: object) => void logged.push(fields) };
  const ballast = new Ballast(path, log, () => nowMs);
  mkdirSync(path);
  for (nowMs = 0; nowMs <= 120_000; nowMs += 100) ballast.look();
  expect(logged).toEqual([{ error: expect.stringContaining('EISDIR') }]);
  rmdirSync(path);
  ballast.look();
  expect(statSync(path, { throwIfNoEntry: false }), 'not before the minute is over').toBeUndefined();
  nowMs += 60_000;
  ballast.look();
  expect(statSync(path).size).toBeGreaterThan(0);
});
