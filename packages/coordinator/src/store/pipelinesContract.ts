/** What every store must do about runs of pipelines. */
import { describe, expect, it } from 'vitest';
import { jobIdOf, someMs } from '../modelFixture.ts';
import type { StoredPipeline, StoredPipelineStep } from './pipelines.ts';
import type { Batch, Store } from './store.ts';
import type { StoredTrigger } from './triggers.ts';

function aStoredPipeline(id: string, fields: Partial<StoredPipeline> = {}): StoredPipeline {
  return {
    id,
    name: 'vision',
    user: 'ann',
    project: 'lab',
    by: { kind: 'admin', id: 'admin', peer: null },
    spec: '{}',
    params: { lr: 0.1, seeds: [1, 'a'] },
    usesCache: true,
    rerunOf: null,
    triggers: [],
    state: 'running',
    reason: null,
    createdAtMs: someMs,
    endedAtMs: null,
    ...fields,
  };
}

function aStoredStep(
  run: string,
  step: string,
  index: number,
  fields: Partial<StoredPipelineStep> = {},
): StoredPipelineStep {
  return {
    run,
    step,
    index,
    state: 'running',
    tries: 1,
    jobId: jobIdOf(index),
    sweepId: null,
    cachedFrom: null,
    cacheKey: null,
    reason: null,
    inputs: { data: [{ name: 'data', type: 'file', path: '/d', bytes: 3, digest: 'sha256:00' }] },
    outputs: [],
    best: null,
    isExpired: false,
    startedAtMs: someMs,
    endedAtMs: null,
    ...fields,
  };
}

function aStoredTrigger(name: string, fields: Partial<StoredTrigger> = {}): StoredTrigger {
  return {
    name,
    user: 'ann',
    project: 'lab',
    by: { kind: 'admin', id: 'admin', peer: null },
    pipeline: 'vision',
    spec: '{}',
    params: { day: '${trigger.time}' },
    usesCache: true,
    source: { kind: 'cron', cron: '0 3 * * *', timeZone: 'UTC', missed: 'run_once' },
    overlap: 'skip',
    isPaused: false,
    nextAtMs: someMs,
    eventSeq: null,
    dataDigest: null,
    waiting: [],
    fires: [],
    createdAtMs: someMs,
    ...fields,
  };
}

/** @param reopened what the store keeps, as it is after a restart */
export function describePipelines(
  commit: (batch: Partial<Batch>) => Promise<void>,
  reopened: () => Promise<Store>,
): void {
  describe('of pipelines keeps', () => {
    it('each run and its steps, as they were last, until it is removed', async () => {
      await commit({
        pipelines: [aStoredPipeline('pln_a'), aStoredPipeline('pln_b')],
        pipelineSteps: [10, 9, 2].map((index) => aStoredStep('pln_a', 'train', index)),
      });
      await commit({ pipelineSteps: [aStoredStep('pln_b', 'train', 0), aStoredStep('pln_a', 'prepare', 0)] });
      const ended = aStoredStep('pln_a', 'train', 9, { state: 'succeeded', tries: 2, endedAtMs: someMs });
      const stopping = aStoredPipeline('pln_a', { state: 'stopping', reason: 'enough' });
      await commit({
        pipelines: [stopping],
        pipelineSteps: [ended],
        removedPipelines: ['pln_b', 'pln_nothing'],
      });
      const store = await reopened();
      expect((await store.load()).pipelines).toEqual({
        runs: [stopping],
        steps: [
          aStoredStep('pln_a', 'prepare', 0),
          aStoredStep('pln_a', 'train', 2),
          ended,
          aStoredStep('pln_a', 'train', 10),
        ],
        triggers: [],
      });
    });

    it('each trigger as it was last, until it is removed', async () => {
      await commit({ triggers: [aStoredTrigger('nightly'), aStoredTrigger('hourly')] });
      const fire = { atMs: someMs, cause: 'now', outcome: 'started', run: 'pln_a', reason: null } as const;
      const fired = aStoredTrigger('nightly', {
        nextAtMs: null,
        waiting: [{ cause: 'now', params: { lr: 0.1 }, after: ['nightly'] }],
        fires: [fire],
      });
      await commit({ triggers: [fired], removedTriggers: ['hourly', 'nothing'] });
      const store = await reopened();
      expect((await store.load()).pipelines.triggers).toEqual([fired]);
    });
  });
}
