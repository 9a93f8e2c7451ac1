import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@muster/common/clock';
import { expect, onTestFinished, test } from 'vitest';
import { tempDir, waitFor } from '../../../../test/support/services.ts';
import { superviseChild } from './child.ts';

test('a daemon begins a new log when the old one is large, and the old one is kept beside it', async () => {
  const logPath = join(tempDir('log').path, 'coordinator.log');
  writeFileSync(logPath, 'the first line\n');
  truncateSync(logPath, 17 * 1024 * 1024);
  const program = "process.stderr.write('started\\n'); setInterval(() => {}, 1_000)";
  const child = superviseChild(
    {
      title: 'the coordinator',
      logPath,
      prepare: async () => ({ argv: [process.execPath, '-e', program], variables: {} }),
    },
    systemClock,
    () => {},
  );
  child.serving.catch(() => {});
  onTestFinished(() => child.stop(10_000));
  await waitFor('the child to print', () => readFileSync(logPath, 'utf8') === 'started\n');
  expect(statSync(`${logPath}.1`).size).toBe(17 * 1024 * 1024);
  expect(readFileSync(`${logPath}.1`, 'utf8').startsWith('the first line\n')).toBe(true);
});
