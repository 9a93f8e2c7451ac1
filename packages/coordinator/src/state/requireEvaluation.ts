import type { Checkpoint } from '@muster/common/checkpoints';
import type { JobId } from '@muster/common/ids';
import { withEvaluationOf } from './dueEvaluations.ts';
import type { Draft } from './state.ts';

/** A verdict on the job depends on this checkpoint, which it is evaluated for, whatever `every` and `on` say. */
export function requireEvaluation(draft: Draft, id: JobId, checkpoint: Checkpoint, nowMs: number): void {
  const job = draft.job(id);
  const known = draft.evaluations.of(id);
  if (job === undefined || job.spec.evaluate === null) return;
  const due = withEvaluationOf(id, known, checkpoint, nowMs);
  if (due === known) return;
  draft.evaluations.put(due);
  // What is due is looked at with any change of its job.
  draft.putJob(job);
}
