import { mkdtempSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { outputAtMs } from './segments.ts';

test('the newest output of an attempt counts, and what was removed does not', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-output-'));
  const write = (name: string, text: string, atSeconds: number) => {
    writeFileSync(join(directory, name), text);
    utimesSync(join(directory, name), atSeconds, atSeconds);
  };
  write('1.0.log', 'earlier attempt', 900);
  write('2.0.log', 'x', 100);
  write('2.1.log', 'y', 200);
  write('2.2.log', '', 300);
  write('2.3.8.removed.log', 'z', 400);
  write('notes.txt', 'z', 500);
  expect(await outputAtMs(directory, 2)).toBe(200_000);
  expect(await outputAtMs(directory, 3)).toBeNull();
  expect(await outputAtMs(join(directory, 'nowhere'), 1)).toBeNull();
});
