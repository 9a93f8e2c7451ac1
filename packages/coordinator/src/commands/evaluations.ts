/** Commands about evaluations of checkpoints: the runner starts and ends them. */
import { clusterSubject } from '@muster/common/eventKinds';
import type { JobId, RandomBytes } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import { currentAttempt, type Job } from '../model.ts';
import { isOpen } from '../state/evaluations.ts';
import type { Draft } from '../state/state.ts';
import type { StoredEvaluation } from '../store/evaluations.ts';
import { countInBudget, type RunningMs } from './budgets.ts';
import { seenFromOutside } from './inheritedCheckpoints.ts';
import { addJob, aNewJob } from './newJob.ts';

export interface NewEvaluation {
  /** The job that has saved the checkpoint, as it is now, ended or not. */
  readonly of: Job;
  readonly number: number;
  readonly spec: JobSpec;
  readonly runningMs: RunningMs;
}

/**
 * Stores that an evaluation has begun and its job in one commit, so that no kill leaves one without the other. One that no longer waits
 * is not started.
 * @throws {MusterError} as a submit of its job
 */
export function startEvaluation(
  draft: Draft,
  { of, number, spec, runningMs }: NewEvaluation,
  random: RandomBytes,
  nowMs: number,
): void {
  const evaluation = evaluationOf(draft, of.id, number);
  if (evaluation?.state !== 'waiting') return;
  const checkpoint = of.checkpoints.find(
    (each) => each.name === evaluation.checkpoint && each.version === evaluation.version,
  );
  if (checkpoint === undefined) {
    const message = 'it was replaced or removed before its evaluation began';
    endEvaluation(draft, { of: of.id, number }, { ...withoutMetrics, cause: 'gone', message }, nowMs);
    return;
  }
  const { user, budget, traceparent } = of;
  countInBudget(draft, { spec, place: null, runningMs, budget });
  const fields = { array: null, requeuedFrom: null, submittedAtMs: nowMs, user, budget, traceparent };
  const seen = seenFromOutside(of, checkpoint);
  const job = {
    ...aNewJob(draft, { ...fields, spec }, random),
    checkpoints: [seen],
    resumedFrom: { jobId: of.id, name: seen.name, step: seen.step },
  };
  addJob(draft, job, nowMs);
  change(draft, of.id, { ...evaluation, state: 'running', jobId: job.id });
}

export interface EvaluationEnd {
  readonly state: 'complete' | 'failed';
  readonly metrics: StoredEvaluation['metrics'];
  readonly cause: string | null;
  readonly message: string | null;
}

export const withoutMetrics = { state: 'failed', metrics: {} } as const;

/** Once: of an evaluation that has ended nothing changes. */
export function endEvaluation(
  draft: Draft,
  { of, number }: { readonly of: JobId; readonly number: number },
  end: EvaluationEnd,
  nowMs: number,
): void {
  const evaluation = evaluationOf(draft, of, number);
  if (evaluation === undefined || !isOpen(evaluation)) return;
  change(draft, of, { ...evaluation, ...end, endedAtMs: nowMs });
  const { checkpoint, step, jobId: evaluationJob } = evaluation;
  const { state, metrics, cause } = end;
  const data = { jobId: of, checkpoint, step, evaluationJob, state, metrics, cause };
  draft.emit({ kind: 'checkpoint.evaluated', subject: clusterSubject, data }, nowMs);
}

/** Long after the job and its last evaluation have ended. */
export function removeEvaluations(draft: Draft, job: JobId): void {
  draft.evaluations.remove(job);
}

function evaluationOf(draft: Draft, job: JobId, number: number): StoredEvaluation | undefined {
  return draft.evaluations.of(job)?.evaluations.find((each) => each.number === number);
}

function change(draft: Draft, id: JobId, after: StoredEvaluation): void {
  const of = draft.evaluations.of(id);
  if (of === undefined) return;
  const evaluations = of.evaluations.map((each) => (each.number === after.number ? after : each));
  draft.evaluations.put({ ...of, evaluations });
  // What its agent may delete has changed: it is told so as of any change of the job.
  const job = draft.job(id);
  const attempt = currentAttempt(job);
  if (job === undefined || attempt === null) return;
  draft.putJob(job);
  draft.putAttempt(id, attempt);
}
