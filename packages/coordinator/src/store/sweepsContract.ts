/** What every store must do about sweeps. */
import { describe, expect, it } from 'vitest';
import { jobIdOf, someMs } from '../modelFixture.ts';
import type { Batch, Store } from './store.ts';
import type { StoredSweep, StoredTrial } from './sweeps.ts';

function aStoredSweep(id: string, fields: Partial<StoredSweep> = {}): StoredSweep {
  return {
    id,
    name: 'tune',
    user: 'ann',
    project: 'lab',
    by: { kind: 'admin', id: 'admin', peer: null },
    spec: '{}',
    state: 'running',
    reason: null,
    trials: 12,
    createdAtMs: someMs,
    endedAtMs: null,
    ...fields,
  };
}

function aStoredTrial(sweep: string, number: number, fields: Partial<StoredTrial> = {}): StoredTrial {
  return {
    sweep,
    number,
    point: { lr: 0.1, optimizer: 'sgd', nesterov: true },
    jobId: jobIdOf(number),
    state: 'running',
    value: null,
    step: null,
    cause: null,
    startedAtMs: someMs,
    endedAtMs: null,
    ...fields,
  };
}

/** @param reopened what the store keeps, as it is after a restart */
export function describeSweeps(
  commit: (batch: Partial<Batch>) => Promise<void>,
  reopened: () => Promise<Store>,
): void {
  describe('of sweeps keeps', () => {
    it('each and its trials in the order of their numbers, as they were last, until it is removed', async () => {
      await commit({
        sweeps: [aStoredSweep('swp_a'), aStoredSweep('swp_b')],
        sweepTrials: [10, 9, 2].map((number) => aStoredTrial('swp_a', number)),
      });
      await commit({ sweepTrials: [aStoredTrial('swp_b', 0), aStoredTrial('swp_b', 1)] });
      const ended = aStoredTrial('swp_a', 9, {
        state: 'complete',
        value: 0.25,
        step: 100,
        earlierJobs: [jobIdOf(4)],
        promotedAt: 300,
        endedAtMs: someMs,
      });
      const stopping = aStoredSweep('swp_a', { state: 'stopping', reason: 'enough' });
      await commit({ sweeps: [stopping], sweepTrials: [ended], removedSweeps: ['swp_b', 'swp_nothing'] });
      const store = await reopened();
      expect((await store.load()).sweeps).toEqual({
        sweeps: [stopping],
        trials: [aStoredTrial('swp_a', 2), ended, aStoredTrial('swp_a', 10)],
      });
    });
  });
}
