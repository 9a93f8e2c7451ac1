import { closeSync, openSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { noLogFacts } from './logFields.ts';
import { jsonLogger, logOutput } from './pinoLogger.ts';

test('a line that cannot be written for want of space is no error of what logs it', () => {
  const full = openSync('/dev/full', 'w');
  onTestFinished(() => closeSync(full));
  const log = jsonLogger('agent', 'info', noLogFacts, logOutput(full));
  expect(() => {
    for (let line = 0; line < 1_000; line += 1) log.error({ line }, 'the disk is full'.padEnd(200));
  }).not.toThrow();
});
