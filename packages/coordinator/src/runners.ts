/** What brings sweeps, evaluations, phases, pipelines and triggers forward, wired. */
import type { TaskAccounts } from './agents/taskAccounts.ts';
import { EvaluationRunner, type EvaluationRunnerParts } from './evaluations/evaluationRunner.ts';
import { OutputEnds, type OutputEndsParts } from './outputEnds/outputEnds.ts';
import { PhaseRunner, type PhaseRunnerParts } from './phases/phaseRunner.ts';
import { PipelineRunner, type PipelineRunnerParts } from './pipelines/pipelineRunner.ts';
import type { RowKeeping } from './rows/rowKeeping.ts';
import { SweepRunner, type SweepRunnerParts } from './sweeps/sweepRunner.ts';
import { TriggerRunner, type TriggerRunnerParts } from './triggers/triggerRunner.ts';

type RunnerParts = Omit<EvaluationRunnerParts, 'rows' | 'outputEnds'> &
  Omit<PhaseRunnerParts, 'rows' | 'outputEnds'> &
  Omit<PipelineRunnerParts, 'outputEnds'> &
  Omit<SweepRunnerParts, 'rows' | 'outputEnds'> &
  Omit<TriggerRunnerParts, 'pipelines'> &
  Omit<OutputEndsParts, 'rows'> & {
    readonly taskAccounts: TaskAccounts;
    readonly rowKeeping: Pick<RowKeeping, 'rows' | 'onComplete'>;
  };

export type Runners = ReturnType<typeof openRunners>;

export function openRunners(parts: RunnerParts) {
  const { rows } = parts.rowKeeping;
  const outputEnds = new OutputEnds({ ...parts, rows });
  const sweeps = new SweepRunner({ ...parts, rows, outputEnds });
  const evaluations = new EvaluationRunner({ ...parts, rows, outputEnds });
  const phases = new PhaseRunner({ ...parts, rows, outputEnds });
  const pipelines = new PipelineRunner({ ...parts, outputEnds });
  const triggers = new TriggerRunner({ ...parts, pipelines });
  parts.rowKeeping.onComplete = ({ jobId }) => {
    sweeps.rowsComplete(jobId);
    phases.rowsComplete(jobId);
  };
  return { outputEnds, sweeps, evaluations, phases, pipelines, triggers };
}
