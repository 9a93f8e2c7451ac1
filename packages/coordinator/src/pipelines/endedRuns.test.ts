import { expect, test } from 'vitest';
import { pipelinesOf } from '../state/pipelines.ts';
import type { StoredPipeline, StoredPipelineStep } from '../store/pipelines.ts';
import { endedRunsMax, runsToRemove } from './endedRuns.ts';

const dayMs = 24 * 60 * 60_000;
const nowMs = 1_000 * dayMs;

function aRun(id: string, fields: Partial<StoredPipeline> = {}): StoredPipeline {
  return {
    id,
    name: 'vision',
    user: 'ann',
    project: 'default',
    by: { kind: 'admin', id: 'admin', peer: null },
    spec: '{}',
    params: {},
    usesCache: true,
    rerunOf: null,
    triggers: [],
    state: 'succeeded',
    reason: null,
    createdAtMs: nowMs - 200 * dayMs,
    endedAtMs: nowMs - 91 * dayMs,
    ...fields,
  };
}

const model = { name: 'model', type: 'file', path: '/shared/model', bytes: 1, digest: 'sha256:a' };

function aStep(run: string, fields: Partial<StoredPipelineStep> = {}): StoredPipelineStep {
  return {
    run,
    step: 'train',
    index: 0,
    state: 'succeeded',
    tries: 1,
    jobId: null,
    sweepId: null,
    cachedFrom: null,
    cacheKey: null,
    reason: null,
    inputs: {},
    outputs: [],
    best: null,
    isExpired: false,
    startedAtMs: 0,
    endedAtMs: 0,
    ...fields,
  };
}

const removed = (runs: readonly StoredPipeline[], steps: readonly StoredPipelineStep[] = []) =>
  runsToRemove(pipelinesOf({ runs, steps, triggers: [] }), nowMs);

test('runs that ended 90 days ago go, and those that have not ended stay', () => {
  const young = aRun('young', { endedAtMs: nowMs - 89 * dayMs });
  const running = aRun('running', { state: 'running', endedAtMs: null });
  expect(removed([aRun('old'), young, running])).toEqual(['old']);
});

test('of more than are kept, those go that ended first', () => {
  const runs = Array.from({ length: endedRunsMax + 2 }, (_, index) =>
    aRun(`pln_${index}`, { endedAtMs: nowMs - index }),
  );
  expect(removed(runs)).toEqual([`pln_${endedRunsMax + 1}`, `pln_${endedRunsMax}`]);
});

test('of one trigger 500 are kept, whatever others have', () => {
  const runs = Array.from({ length: 600 }, (_, index) =>
    aRun(`pln_${index}`, { endedAtMs: nowMs - index, triggers: ['other', index < 599 ? 'often' : 'seldom'] }),
  );
  expect(removed(runs)).toEqual(Array.from({ length: 99 }, (_, index) => `pln_${598 - index}`));
});

test('what a run that stays has read, or taken over, stays with what that was made from', () => {
  const data = { ...model, name: 'data', path: '/shared/data' };
  const steps = [
    aStep('source', { outputs: [data] }),
    aStep('maker', { inputs: { data: [data] }, outputs: [model] }),
    aStep('reader', { inputs: { model: [model] } }),
    aStep('taken', { cacheKey: 'k' }),
    aStep('taker', { state: 'cached', cachedFrom: 'taken' }),
    aStep('unused', { outputs: [{ ...model, digest: 'sha256:b' }] }),
  ];
  const reader = aRun('reader', { endedAtMs: nowMs });
  const taker = aRun('taker', { state: 'running', endedAtMs: null });
  const old = ['source', 'maker', 'taken', 'unused'].map((id) => aRun(id));
  expect(removed([...old, reader, taker], steps)).toEqual(['unused']);
  expect(removed([...old, { ...reader, endedAtMs: 0 }], steps)).toHaveLength(5);
});
