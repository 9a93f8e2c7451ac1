/** Commands of the runner about trials that were stopped at a rung, and can be resumed from their checkpoints. */
import { MusterError } from '@muster/common/errors';
import { clusterSubject } from '@muster/common/eventKinds';
import type { RandomBytes } from '@muster/common/ids';
import { resumeCandidates } from '../lifecycle/resume.ts';
import type { Job } from '../model.ts';
import type { Draft } from '../state/state.ts';
import type { StoredSweep, StoredTrial, TrialUse } from '../store/sweeps.ts';
import type { RunningMs } from './budgets.ts';
import { inheritedCheckpointsOf } from './inheritedCheckpoints.ts';
import { addTrialJob, dataOf } from './sweeps.ts';

type TrialKey = Pick<StoredTrial, 'sweep' | 'number'>;

/** Whether a job has left a verified checkpoint. */
export function canBeResumed(job: Pick<Job, 'checkpoints' | 'resumeChoice'>): boolean {
  return resumeCandidates(job).length > 0;
}

/** Once: its job has ended, and has left a checkpoint. */
export function pauseTrial(
  draft: Draft,
  { sweep: id, number }: TrialKey,
  used: TrialUse,
  nowMs: number,
): void {
  const sweep = draft.sweeps.sweep(id);
  const trial = draft.sweeps.trial(id, number);
  if (sweep === undefined || trial?.state !== 'running' || trial.stoppedEarly === undefined) return;
  const { jobId, stoppedEarly } = trial;
  const { value, step } = stoppedEarly;
  draft.sweeps.putTrial({ ...trial, value, step, used, state: 'paused' });
  const data = { ...dataOf(sweep), trial: number, jobId, value, step };
  draft.emit({ kind: 'sweep.trial_paused', subject: clusterSubject, data }, nowMs);
}

export interface ResumedTrial extends TrialKey {
  /** Its newest job, as it is stored. */
  readonly before: Job;
  readonly rung: number;
  /** How long attempts have run by now, for the budget of the user. */
  readonly runningMs: RunningMs;
}

/**
 * Stores the trial and the job that continues it in one commit. It has the spec and the scales of the job before, and begins from its newest
 * verified checkpoint. A trial whose checkpoint is gone, or belongs to another job by now, is pruned.
 * @throws {MusterError} as a submit of its job, but for what concerns its checkpoints
 */
export function resumeTrial(
  draft: Draft,
  { sweep: id, number, before, rung, runningMs }: ResumedTrial,
  random: RandomBytes,
  nowMs: number,
): void {
  const sweep = draft.sweeps.sweep(id);
  const trial = draft.sweeps.trial(id, number);
  if (sweep?.state !== 'running' || trial?.state !== 'paused' || trial.jobId !== before.id) return;
  const { spec, batchScale, lrScale, excludedNodes } = before;
  const inherited = continuedFrom(draft, before);
  if (inherited === null) {
    prune(draft, sweep, trial, nowMs);
    return;
  }
  const kept = { ...inherited, batchScale, lrScale, excludedNodes };
  const jobId = addTrialJob(draft, sweep, { spec, runningMs, inherited: kept }, random, nowMs);
  const { stoppedEarly: _stopped, earlierJobs = [], ...rest } = trial;
  draft.sweeps.putTrial({
    ...rest,
    state: 'running',
    value: null,
    step: null,
    jobId,
    earlierJobs: [...earlierJobs, before.id],
    promotedAt: rung,
  });
  const { step } = inherited.resumedFrom;
  const data = { ...dataOf(sweep), trial: number, jobId, resumedFrom: before.id, step };
  draft.emit({ kind: 'sweep.trial_resumed', subject: clusterSubject, data }, nowMs);
}

/** @returns null: there is no checkpoint that it could continue from */
function continuedFrom(draft: Draft, before: Job) {
  try {
    const inherited = inheritedCheckpointsOf(
      draft,
      before,
      { spec: before.spec, array: null },
      { kind: 'newest' },
    );
    const { resumedFrom } = inherited;
    return resumedFrom == null ? null : { ...inherited, resumedFrom };
  } catch (error) {
    if (error instanceof MusterError && error.code === 'failed_precondition') return null;
    throw error;
  }
}

/** Of those that are still paused: nothing will resume them. */
export function prunePausedTrials(draft: Draft, id: string, numbers: readonly number[], nowMs: number): void {
  const sweep = draft.sweeps.sweep(id);
  for (const number of numbers) {
    const trial = draft.sweeps.trial(id, number);
    if (sweep !== undefined && trial?.state === 'paused') prune(draft, sweep, trial, nowMs);
  }
}

function prune(draft: Draft, sweep: StoredSweep, trial: StoredTrial, nowMs: number): void {
  draft.sweeps.putTrial({ ...trial, state: 'pruned', endedAtMs: nowMs });
  const { number, jobId, value, step, cause } = trial;
  const data = { ...dataOf(sweep), trial: number, jobId, state: 'pruned', value, step, cause, lost: null };
  draft.emit({ kind: 'sweep.trial_ended', subject: clusterSubject, data }, nowMs);
}
