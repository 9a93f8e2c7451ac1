import { expect, test } from 'vitest';
import { abandonedMs, isComplete, isWholeAlready, stableMs } from './completeness.ts';
import type { CheckpointCandidate } from './scan.ts';
import { unverifiable, type Verification } from './verification.ts';

function aCandidate(given: Partial<CheckpointCandidate> = {}): CheckpointCandidate {
  return {
    name: 'step-1.pt',
    kind: 'file',
    step: 1,
    format: 'torch',
    bytes: 10,
    files: 1,
    savedAtMs: 0,
    version: 'v1',
    marker: null,
    unfinished: null,
    ...given,
  };
}

test('a marker tells at once, unless something says the contrary', () => {
  const marked = aCandidate({ marker: '.metadata' });
  expect(isComplete(marked, null, 0)).toBe(true);
  expect(isComplete({ ...marked, unfinished: 'a.tmp' }, null, 0)).toBe(false);
});

test('without one, it has to stay as it is for a while', () => {
  const candidate = aCandidate();
  expect(isComplete(candidate, null, stableMs)).toBe(false);
  expect(isComplete(candidate, aCandidate({ version: 'v0' }), stableMs)).toBe(false);
  expect(isComplete(candidate, candidate, stableMs - 1)).toBe(false);
  expect(isComplete(candidate, candidate, stableMs)).toBe(true);
});

test('what is unfinished has to be left behind', () => {
  const candidate = aCandidate({ unfinished: 'it is empty' });
  expect(isComplete(candidate, candidate, abandonedMs - 1)).toBe(false);
  expect(isComplete(candidate, candidate, abandonedMs)).toBe(true);
});

test('only a file of PyTorch shows by itself that it is whole', () => {
  const found: Verification = { ...unverifiable(''), verdict: 'verified', format: 'torch', version: 'v1' };
  expect(isWholeAlready(aCandidate(), found)).toBe(true);
  expect(isWholeAlready(aCandidate(), { ...found, version: 'v0' })).toBe(false);
  expect(isWholeAlready(aCandidate(), { ...found, verdict: 'corrupt' })).toBe(false);
  expect(isWholeAlready(aCandidate(), { ...found, format: 'json' })).toBe(true);
  expect(isWholeAlready(aCandidate(), { ...found, format: 'safetensors' })).toBe(false);
  expect(isWholeAlready(aCandidate({ kind: 'directory' }), found)).toBe(false);
});
