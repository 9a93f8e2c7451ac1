import { expect, test } from 'vitest';
import type { StoredSweep } from '../store/sweeps.ts';
import { endedSweepsMax, sweepsToRemove } from './endedSweeps.ts';

const dayMs = 24 * 60 * 60_000;
const nowMs = 1_000 * dayMs;

function aSweep(id: string, fields: Partial<StoredSweep> = {}): StoredSweep {
  return {
    id,
    name: 'tune',
    user: 'ann',
    project: 'default',
    by: { kind: 'admin', id: 'admin', peer: null },
    spec: '{}',
    state: 'done',
    reason: null,
    trials: 1,
    createdAtMs: nowMs - 200 * dayMs,
    endedAtMs: nowMs - dayMs,
    ...fields,
  };
}

const removed = (...sweeps: readonly StoredSweep[]) => sweepsToRemove(sweeps, nowMs).map(({ id }) => id);

test('a sweep is kept for 90 days after its end, and while it runs', () => {
  const old = { endedAtMs: nowMs - 91 * dayMs };
  const running = { state: 'running', endedAtMs: null } as const;
  expect(removed(aSweep('a', old), aSweep('b'), aSweep('c', running))).toEqual(['a']);
});

test('of more than are kept the oldest ends go, whatever still runs', () => {
  const many = Array.from({ length: endedSweepsMax }, (_, count) =>
    aSweep(`s${count}`, { endedAtMs: nowMs - count }),
  );
  const running = Array.from({ length: 3 }, (_, count) =>
    aSweep(`r${count}`, { state: 'running', endedAtMs: null }),
  );
  expect(removed(...many, ...running)).toEqual([]);
  const older = ['x', 'y'].map((id, index) => aSweep(id, { endedAtMs: nowMs - dayMs + index }));
  expect(removed(...many, ...running, ...older)).toEqual(['x', 'y']);
});
