/** What every store must do about evaluations of checkpoints. */
import { describe, expect, it } from 'vitest';
import { jobIdOf, someMs } from '../modelFixture.ts';
import type { JobEvaluations } from './evaluations.ts';
import type { Batch, Store } from './store.ts';

export function describeEvaluations(
  commit: (batch: Partial<Batch>) => Promise<void>,
  reopened: () => Promise<Store>,
): void {
  describe('of evaluations keeps', () => {
    it('those of each job as they were last, until they are removed', async () => {
      const of = (number: number, fields: Partial<JobEvaluations> = {}): JobEvaluations => {
        return { job: jobIdOf(number), seen: 3, bestValue: null, next: 1, evaluations: [], ...fields };
      };
      const evaluation = {
        number: 0,
        checkpoint: 'step_10.pt',
        version: 'v1',
        step: 10,
        state: 'complete',
        jobId: jobIdOf(7),
        metrics: { eval_loss: 2.5 },
        cause: null,
        message: null,
        dueAtMs: someMs,
        endedAtMs: someMs + 1,
      } as const;
      await commit({ evaluations: [of(2), of(1), of(3)] });
      const changed = of(1, { bestValue: 0.5, next: 2, evaluations: [evaluation] });
      await commit({ evaluations: [changed], removedEvaluations: [jobIdOf(2), jobIdOf(9)] });
      expect((await (await reopened()).load()).evaluations).toEqual([changed, of(3)]);
    });
  });
}
