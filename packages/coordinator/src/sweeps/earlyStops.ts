/** Which trials of a sweep are to be stopped now. It remembers the curves of trials that have ended, and reads those that grow again. */
import type { JobId } from '@muster/common/ids';
import type { SweepSpec } from '@muster/experiments/file/sweepFile';
import { lossOf } from '@muster/experiments/objective';
import { type TrialCurve, trialsToStop } from '@muster/experiments/stopping/rules';
import type { RowStore } from '../rows/rowStore.ts';
import type { StoredTrial } from '../store/sweeps.ts';
import { readCurve } from './trialValue.ts';

interface EarlyStop {
  readonly trial: StoredTrial;
  readonly at: NonNullable<StoredTrial['stoppedEarly']>;
}

export class EarlyStops {
  private readonly rows: Pick<RowStore, 'lookAt'>;
  /** Of trials that have ended. */
  private readonly known = new Map<JobId, TrialCurve['points']>();

  constructor(rows: Pick<RowStore, 'lookAt'>) {
    this.rows = rows;
  }

  /** @param trials of one sweep, by number */
  async of(
    { earlyStopping, objective }: Pick<SweepSpec, 'earlyStopping' | 'objective'>,
    trials: readonly StoredTrial[],
  ): Promise<readonly EarlyStop[]> {
    const isOpen = ({ state, stoppedEarly }: StoredTrial) =>
      state === 'running' && stoppedEarly === undefined;
    if (earlyStopping === null || !trials.some(isOpen)) return [];
    const curves: TrialCurve[] = [];
    for (const trial of trials) {
      const { number, jobId, state } = trial;
      const points = this.known.get(jobId) ?? (await readCurve(this.rows, jobId, objective));
      if (state !== 'running') this.known.set(jobId, points);
      curves.push({
        number,
        state: isOpen(trial) ? 'running' : state === 'complete' ? state : 'over',
        points,
      });
    }
    return trialsToStop(earlyStopping, curves).flatMap((number) => {
      const trial = trials[number];
      const last = curves[number]?.points.at(-1);
      if (trial === undefined || last === undefined) return [];
      // Of a goal to maximise the loss is the value with the other sign.
      return [{ trial, at: { value: lossOf(objective, last.loss), step: last.step } }];
    });
  }

  /** Their sweep has ended. */
  forget(trials: readonly StoredTrial[]): void {
    for (const { jobId } of trials) this.known.delete(jobId);
  }
}
