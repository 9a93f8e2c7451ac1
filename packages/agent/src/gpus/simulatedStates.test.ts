import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readSimulatedStates } from './simulatedStates.ts';

function statesOf(text: string | null): Record<string, string> {
  const dataDir = mkdtempSync(join(tmpdir(), 'simulated-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  if (text !== null) writeFileSync(join(dataDir, 'simulated-gpus'), text);
  return Object.fromEntries(readSimulatedStates(dataDir));
}

test('a line is the state of all GPUs, or of one; later lines win', () => {
  expect(statesOf('3 pinned\n0 idle\n')).toEqual({ 0: 'idle', 3: 'pinned' });
  const all = statesOf('pinned\n1 busy\n');
  expect([all[0], all[1], all[63]]).toEqual(['pinned', 'busy', 'pinned']);
});

test('without the file, or with what is not understood, nothing is told', () => {
  expect(statesOf(null)).toEqual({});
  expect(statesOf('hung\n1\n-1 idle\n\u0000')).toEqual({});
});
