/**
 * Which trials of a sweep must be stopped now, and which paused ones resumed. It remembers the curves of jobs that have ended,
 * and reads those that grow again.
 */
import type { JobId } from '@muster/common/ids';
import type { SweepSpec } from '@muster/experiments/file/sweepFile';
import { lossOf } from '@muster/experiments/objective';
import { judgeTrials, type Promotion, type TrialCurve } from '@muster/experiments/stopping/rules';
import type { RowStore } from '../rows/rowStore.ts';
import { jobsOfTrial } from '../state/trialJobs.ts';
import type { StoredTrial } from '../store/sweeps.ts';
import { continued, readCurve } from './trialValue.ts';

interface EarlyStop {
  readonly trial: StoredTrial;
  readonly at: NonNullable<StoredTrial['stoppedEarly']>;
}

interface Verdict {
  readonly stops: readonly EarlyStop[];
  readonly promotions: readonly Promotion[];
}

export class EarlyStops {
  private readonly rows: Pick<RowStore, 'lookAt'>;
  /** Of jobs that have ended. */
  private readonly known = new Map<JobId, TrialCurve['points']>();

  constructor(rows: Pick<RowStore, 'lookAt'>) {
    this.rows = rows;
  }

  /** @param trials of one sweep, by number */
  async of(
    { earlyStopping, objective }: Pick<SweepSpec, 'earlyStopping' | 'objective'>,
    trials: readonly StoredTrial[],
  ): Promise<Verdict> {
    const isJudged = (trial: StoredTrial) => stateOf(trial) === 'running' || stateOf(trial) === 'paused';
    if (earlyStopping === null || !trials.some(isJudged)) return { stops: [], promotions: [] };
    const curves: TrialCurve[] = [];
    for (const trial of trials) {
      const parts: TrialCurve['points'][] = [];
      for (const jobId of jobsOfTrial(trial)) {
        const points =
          this.known.get(jobId) ?? (await readCurve(this.rows, jobId, objective, earlyStopping.unit));
        if (jobId !== trial.jobId || trial.state !== 'running') this.known.set(jobId, points);
        parts.push(points);
      }
      const { number, promotedAt = null } = trial;
      curves.push({ number, state: stateOf(trial), points: continued(parts, ({ at }) => at), promotedAt });
    }
    const { stop, promote } = judgeTrials(earlyStopping, curves);
    const stops = stop.flatMap((number) => {
      const trial = trials[number];
      const last = curves[number]?.points.at(-1);
      if (trial === undefined || last === undefined) return [];
      // Of a goal to maximise the loss is the value with the other sign.
      const value = lossOf(objective, last.loss);
      const isByStep = earlyStopping.unit === 'steps';
      const at = isByStep ? { value, step: last.at } : { value, step: null, epoch: last.at };
      return [{ trial, at }];
    });
    return { stops, promotions: promote };
  }

  /** More of the rows of a job has arrived, after its end. */
  refresh(jobId: JobId): void {
    this.known.delete(jobId);
  }

  /** Their sweep has ended. */
  forget(trials: readonly StoredTrial[]): void {
    for (const trial of trials) for (const jobId of jobsOfTrial(trial)) this.known.delete(jobId);
  }
}

function stateOf({ state, stoppedEarly }: StoredTrial): TrialCurve['state'] {
  if (state === 'running') return stoppedEarly === undefined ? 'running' : 'over';
  return state === 'complete' || state === 'paused' ? state : 'over';
}
