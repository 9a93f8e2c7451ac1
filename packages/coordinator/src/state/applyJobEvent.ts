import type { JobId } from '@muster/common/ids';
import { isTerminal } from '@muster/common/states';
import { type JobEvent, transition } from '../lifecycle/transition.ts';
import { currentAttempt, type Job } from '../model.ts';
import { gpuSecondsOf } from './budgetJobs.ts';
import { withDueEvaluations } from './dueEvaluations.ts';
import type { Draft } from './state.ts';

/**
 * Changes a job, its attempt and the events of a draft as the lifecycle decides. A job that has ended does not change.
 * @param nowMs wall clock
 */
export function applyJobEvent(draft: Draft, jobId: JobId, event: JobEvent, nowMs: number): void {
  const job = draft.job(jobId);
  if (job === undefined) return;
  const next = transition(job, event, nowMs);
  if (next.job === job) return;
  draft.putJob(next.job);
  if (isTerminal(next.job.state.kind)) countEnded(draft, next.job);
  const attempt = next.ended ?? currentAttempt(next.job);
  if (attempt !== null) draft.putAttempt(jobId, attempt);
  for (const each of next.events) draft.emit(each, nowMs);
  const known = draft.evaluations.of(jobId);
  const due = withDueEvaluations(job, next.job, known, nowMs);
  if (due !== undefined && due !== known) draft.evaluations.put(due);
}

/** What a job has used is kept with its budget from its end on, for retention removes jobs. */
function countEnded(draft: Draft, job: Job): void {
  const budget = job.budget === null ? undefined : draft.people.budget(job.budget);
  if (budget === undefined) return;
  draft.people.putBudget({ ...budget, gpuSeconds: budget.gpuSeconds + gpuSecondsOf(job) });
}
