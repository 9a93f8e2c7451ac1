/** Which checkpoints evaluations need: those that wait or run, and the best by what they have found out. Pure. */
import type { CheckpointEvaluation, CheckpointVersion, KeptCheckpoints } from '@muster/common/checkpoints';
import type { JobId } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import type { Job } from '../model.ts';
import type { JobEvaluations, StoredEvaluation } from '../store/evaluations.ts';
import { type Evaluations, evaluationOfCheckpoint, isOpen } from './evaluations.ts';

/**
 * What the agent of a job must not delete.
 * @returns null: nothing of it is evaluated, now or later, and its keep rules alone decide
 */
export function keptCheckpointsOf(
  job: Pick<Job, 'id' | 'spec' | 'checkpoints' | 'checkpointJobId' | 'requeuedFrom' | 'resumedFrom'>,
  { byJob }: Pick<Evaluations, 'byJob'>,
): KeptCheckpoints | null {
  // Those that have saved in its directory may still be evaluated.
  const names = [job.id, job.checkpointJobId, job.requeuedFrom, job.resumedFrom?.jobId ?? null];
  const known = [...new Set(names)].flatMap((id) => byJob.get(id as JobId) ?? []);
  const held = known.flatMap((of) => heldOf(of, job.spec.evaluate));
  if (job.spec.evaluate === null && held.length === 0) return null;
  // The newest in the order of the job, not by the clock of a node, which may have been set back.
  const newest = job.checkpoints.findLast(({ verdict }) => verdict === 'verified');
  return { held, decidedSavedAtMs: newest?.savedAtMs ?? 0 };
}

function heldOf(of: JobEvaluations, evaluate: JobSpec['evaluate']): readonly CheckpointVersion[] {
  const best = bestEvaluation(of, evaluate);
  return of.evaluations
    .filter((each) => isOpen(each) || each === best)
    .map(({ checkpoint: name, version }) => ({ name, version }));
}

/** Of equals the first. @returns null: no metric says which one that is, or none has it */
export function bestEvaluation(
  { evaluations }: JobEvaluations,
  evaluate: JobSpec['evaluate'],
): StoredEvaluation | null {
  const metric = evaluate?.metric ?? null;
  if (metric === null) return null;
  const sign = metric.goal === 'min' ? 1 : -1;
  let best: { readonly each: StoredEvaluation; readonly value: number } | null = null;
  for (const each of evaluations) {
    const value = each.state === 'complete' ? each.metrics[metric.name] : undefined;
    if (value !== undefined && (best === null || sign * value < sign * best.value)) best = { each, value };
  }
  return best?.each ?? null;
}

/** The checkpoints of a job with what is known of them by evaluations. */
export function withEvaluations(
  { checkpoints, spec }: Pick<Job, 'checkpoints' | 'spec'>,
  of: JobEvaluations | undefined,
): Job['checkpoints'] {
  if (of === undefined) return checkpoints;
  const best = bestEvaluation(of, spec.evaluate);
  return checkpoints.map((checkpoint) => {
    const found = evaluationOfCheckpoint(of, checkpoint);
    if (found === null) return checkpoint;
    const { state, jobId, metrics, cause, message } = found;
    const evaluation: CheckpointEvaluation = { state, jobId, metrics, cause, message, best: found === best };
    return { ...checkpoint, evaluation };
  });
}
