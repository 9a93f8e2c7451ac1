/** Commands about sweeps: of users, who create, stop and extend them; and of the runner, which starts and ends trials. */
import { MusterError } from '@muster/common/errors';
import { clusterSubject } from '@muster/common/eventKinds';
import { type JobId, newSweepId, type RandomBytes } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import { hasSweepEnded, type SweepState, type TrialState } from '@muster/common/sweeps';
import { bestTrial, type Objective } from '@muster/experiments/objective';
import { budgetOf, traceparentOf, userOf } from '../caller.ts';
import type { Job } from '../model.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import type { Draft } from '../state/state.ts';
import { openJobsOf, startedSeedRun } from '../state/trialJobs.ts';
import type { RequestRecord } from '../store/store.ts';
import type { StoredSweep, StoredTrial, TrialUse } from '../store/sweeps.ts';
import { countInBudget, type RunningMs, requireBudgetOf } from './budgets.ts';
import { requireDirectoryToItself } from './directories.ts';
import { sameIntent } from './jobs.ts';
import { addJob, aNewJob } from './newJob.ts';

/** Of the whole cluster: what each costs in memory is small. */
const activeSweepsMax = 1_000;

export interface NewSweep {
  readonly name: string;
  readonly project: string;
  /** The sweep file, checked and complete, as JSON. */
  readonly spec: string;
  readonly sampler: string;
  readonly trials: number;
  readonly requestId: string;
  readonly digest: string;
}

/** The id of the sweep stands where the record of a request has that of an array. */
export function createSweep(
  draft: Draft,
  { name, project, spec, sampler, trials, requestId, digest }: NewSweep,
  random: RandomBytes,
  nowMs: number,
): RequestRecord {
  const repeated = draft.request(requestId);
  if (repeated !== undefined) return sameIntent(repeated, { requestId, digest });
  const active = draft.sweeps.every().filter(({ state }) => !hasSweepEnded(state)).length;
  if (active >= activeSweepsMax)
    throw new MusterError(
      'resource_exhausted',
      `${active} sweeps have not ended; at most ${activeSweepsMax} at a time: wait for one, or stop one with muster sweep stop`,
    );
  const { by } = draft;
  const sweep: StoredSweep = {
    id: newSweepId(random),
    name,
    user: userOf(by),
    project,
    by,
    spec,
    state: 'running',
    reason: null,
    trials,
    createdAtMs: nowMs,
    endedAtMs: null,
  };
  draft.sweeps.put(sweep);
  const data = { ...dataOf(sweep), sampler, trials };
  draft.emit({ kind: 'sweep.created', subject: clusterSubject, data }, nowMs);
  return draft.putRequest({ requestId, digest, jobIds: [], arrayId: sweep.id, createdAtMs: nowMs });
}

export interface NewTrial {
  readonly sweep: string;
  readonly number: number;
  readonly point: StoredTrial['point'];
  readonly spec: JobSpec;
  /** Whether it runs once for each of several seeds: then that is the job of the first. */
  readonly hasSeeds: boolean;
  /** How long attempts have run by now, for the budget of the user. */
  readonly runningMs: RunningMs;
}

/**
 * Stores a trial and its job in one commit, so that no kill leaves one without the other. A trial that is there already, or whose sweep
 * no longer runs, is not started.
 * @throws {MusterError} as a submit of its job
 */
export function startTrial(draft: Draft, trial: NewTrial, random: RandomBytes, nowMs: number): void {
  const { sweep: id, number, point, spec, hasSeeds, runningMs } = trial;
  const sweep = draft.sweeps.sweep(id);
  if (sweep?.state !== 'running' || number >= sweep.trials) return;
  if (draft.sweeps.trial(id, number) !== undefined) return;
  if (number > 0 && draft.sweeps.trial(id, number - 1) === undefined) return;
  const jobId = addTrialJob(draft, sweep, { spec, runningMs, inherited: {} }, random, nowMs);
  draft.sweeps.putTrial({
    sweep: id,
    number,
    point,
    jobId,
    ...(hasSeeds ? { seedRuns: [startedSeedRun(0, jobId)] } : {}),
    state: 'running',
    value: null,
    step: null,
    cause: null,
    startedAtMs: nowMs,
    endedAtMs: null,
  });
}

export interface TrialJob {
  readonly spec: JobSpec;
  readonly runningMs: RunningMs;
  /** What it takes over from the job before it. */
  readonly inherited: Partial<Job>;
}

/** @throws {MusterError} as a submit of it */
export function addTrialJob(
  draft: Draft,
  { user, by }: StoredSweep,
  { spec, runningMs, inherited }: TrialJob,
  random: RandomBytes,
  nowMs: number,
): JobId {
  requireDirectoryToItself(draft, { spec, place: null });
  countInBudget(draft, { spec, place: null, runningMs });
  const job = aNewJob(
    draft,
    {
      spec,
      array: null,
      requeuedFrom: null,
      submittedAtMs: nowMs,
      user,
      budget: budgetOf(by),
      traceparent: traceparentOf(by),
    },
    random,
  );
  addJob(draft, { ...job, ...inherited }, nowMs);
  return job.id;
}

export interface TrialEnd {
  readonly state: Exclude<TrialState, 'running' | 'paused'>;
  readonly value: number | null;
  /** Absent: there is one objective, or it has no value. */
  readonly furtherValues?: readonly number[];
  readonly step: number | null;
  readonly cause: string | null;
  /** Which of its metrics were lost, in words. Absent: none. */
  readonly lost?: string;
  /** By all its jobs. */
  readonly used: TrialUse;
  /** Absent: no failure has scaled its parameters. */
  readonly ran?: NonNullable<StoredTrial['ran']>;
}

/** Once: its job saves and ends. Whether the trial is then paused follows from what it has saved. */
export function stopTrialEarly(
  draft: Draft,
  { sweep, number }: Pick<StoredTrial, 'sweep' | 'number'>,
  at: NonNullable<StoredTrial['stoppedEarly']>,
  nowMs: number,
): void {
  const trial = draft.sweeps.trial(sweep, number);
  if (trial?.state !== 'running' || trial.stoppedEarly !== undefined) return;
  if (draft.job(trial.jobId) === undefined) return;
  draft.sweeps.putTrial({ ...trial, stoppedEarly: at });
  const place = at.step === null ? `epoch ${at.epoch}` : `step ${at.step}`;
  const reason = `trial ${number} was stopped early at ${place}: others are better there`;
  applyJobEvent(draft, trial.jobId, { kind: 'stop', reason }, nowMs);
}

/** Once: of a trial that has ended nothing changes. */
export function endTrial(
  draft: Draft,
  { sweep: id, number }: Pick<StoredTrial, 'sweep' | 'number'>,
  end: TrialEnd,
  nowMs: number,
): void {
  const sweep = draft.sweeps.sweep(id);
  const trial = draft.sweeps.trial(id, number);
  if (sweep === undefined || trial?.state !== 'running') return;
  draft.sweeps.putTrial({ ...trial, ...end, endedAtMs: nowMs });
  const { state, value, step, cause, lost = null } = end;
  const data = { ...dataOf(sweep), trial: number, jobId: trial.jobId, state, value, step, cause, lost };
  draft.emit({ kind: 'sweep.trial_ended', subject: clusterSubject, data }, nowMs);
}

/** Once, and only when none of its trials runs or is paused. */
export function endSweep(
  draft: Draft,
  id: string,
  {
    state,
    reason,
    objective,
  }: {
    readonly state: Exclude<SweepState, 'running' | 'stopping'>;
    readonly reason: string | null;
    readonly objective: Objective;
  },
  nowMs: number,
): void {
  const sweep = draft.sweeps.sweep(id);
  if (sweep === undefined || hasSweepEnded(sweep.state)) return;
  const trials = draft.sweeps.trialsOf(id);
  if (trials.some((trial) => trial.state === 'running' || trial.state === 'paused')) return;
  // More trials may have been asked for meanwhile.
  if (state === 'done' && trials.length < sweep.trials && sweep.isSpent !== true) return;
  draft.sweeps.put({ ...sweep, state, reason, endedAtMs: nowMs });
  const best = bestTrial(objective, trials);
  const data = { ...dataOf(sweep), state, reason, best: best?.number ?? null, value: best?.value ?? null };
  draft.emit({ kind: 'sweep.ended', subject: clusterSubject, data }, nowMs);
}

/** Its points are used up before its number of trials, as those of a grid with constraints. */
export function limitTrials(draft: Draft, id: string, trials: number): void {
  const sweep = draft.sweeps.sweep(id);
  if (sweep !== undefined && trials < sweep.trials) draft.sweeps.put({ ...sweep, trials });
}

/** Why a sweep cannot continue: the trials that run end, and no more are started. @param isSpent it ends well */
export function giveUpSweep(draft: Draft, id: string, reason: string, isSpent = false): void {
  const sweep = draft.sweeps.sweep(id);
  if (sweep?.state === 'running') draft.sweeps.put({ ...sweep, reason, isSpent });
}

/** Its trials get the time to save that their jobs ask for. @throws {MusterError} `failed_precondition` when it has ended */
export function stopSweep(draft: Draft, id: string, reason: string, nowMs: number): void {
  const sweep = draft.sweeps.sweep(id);
  if (sweep === undefined || hasSweepEnded(sweep.state))
    throw new MusterError('failed_precondition', `${id} has ended; muster sweep show ${id}`);
  if (sweep.state === 'stopping') return;
  draft.sweeps.put({ ...sweep, state: 'stopping', reason });
  draft.emit({ kind: 'sweep.stopped', subject: clusterSubject, data: { ...dataOf(sweep), reason } }, nowMs);
  for (const jobId of draft.sweeps.trialsOf(id).flatMap(openJobsOf))
    if (draft.job(jobId) !== undefined)
      applyJobEvent(draft, jobId, { kind: 'stop', reason: `sweep ${sweep.name} was stopped` }, nowMs);
}

/** Long after its end. One that was extended meanwhile stays. */
export function removeEndedSweep(draft: Draft, id: string): void {
  const sweep = draft.sweeps.sweep(id);
  if (sweep !== undefined && hasSweepEnded(sweep.state)) draft.sweeps.remove(id);
}

/**
 * One that has ended continues. Failures of its trials up to now no longer count, or it would end at once for the same reason.
 * @param by how many trials more @throws {MusterError} `failed_precondition`, `invalid`, `permission_denied`
 */
export function extendSweep(
  draft: Draft,
  { id, by, trialsMax, requestId, digest }: ExtendSweep,
  nowMs: number,
): RequestRecord {
  const repeated = draft.request(requestId);
  if (repeated !== undefined) return sameIntent(repeated, { requestId, digest });
  const sweep = draft.sweeps.sweep(id);
  if (sweep === undefined || sweep.state === 'stopping')
    throw new MusterError('failed_precondition', `${id} is stopping; extend it once it has stopped`);
  requireBudgetOf(draft.by, budgetOf(sweep.by), id);
  const trials = sweep.trials + by;
  if (trials > trialsMax)
    throw new MusterError('invalid', `${id} would have ${trials} trials; expected at most ${trialsMax}`);
  const { isSpent: _isSpent, ...rest } = sweep;
  const failuresFrom = draft.sweeps.trialsOf(id).length;
  draft.sweeps.put({ ...rest, trials, failuresFrom, state: 'running', reason: null, endedAtMs: null });
  draft.emit({ kind: 'sweep.extended', subject: clusterSubject, data: { ...dataOf(sweep), trials } }, nowMs);
  return draft.putRequest({ requestId, digest, jobIds: [], arrayId: id, createdAtMs: nowMs });
}

export interface ExtendSweep {
  readonly id: string;
  readonly by: number;
  readonly trialsMax: number;
  readonly requestId: string;
  readonly digest: string;
}

export function dataOf({ id: sweep, name, user, project }: StoredSweep) {
  return { sweep, name, user, project };
}
