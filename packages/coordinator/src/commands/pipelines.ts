/** Commands about pipelines: of users, who start and stop runs; and of the runner, which starts and ends steps. */
import { MusterError } from '@muster/common/errors';
import { clusterSubject } from '@muster/common/eventKinds';
import { newPipelineId, type RandomBytes } from '@muster/common/ids';
import { hasPipelineEnded, type PipelineState } from '@muster/common/pipelines';
import type { JobSpec } from '@muster/common/spec/types';
import { hasSweepEnded } from '@muster/common/sweeps';
import type { PipelineValues } from '@muster/pipelines/model';
import type { InstanceRef } from '@muster/pipelines/plan';
import { budgetOf, type Caller, traceparentOf, userOf } from '../caller.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import type { Draft } from '../state/state.ts';
import type { StoredPipeline, StoredPipelineStep } from '../store/pipelines.ts';
import type { RequestRecord } from '../store/store.ts';
import { countInBudget, type RunningMs } from './budgets.ts';
import { requireDirectoryToItself } from './directories.ts';
import { inheritedCheckpointsOf, type Predecessor } from './inheritedCheckpoints.ts';
import { sameIntent } from './jobs.ts';
import { addJob, aNewJob } from './newJob.ts';
import { createSweep, type NewSweep, stopSweep } from './sweeps.ts';

/** Of the whole cluster: what each costs in memory is small. */
const activePipelinesMax = 1_000;

/** What a run is made of. */
export interface NewRun {
  readonly name: string;
  readonly project: string;
  /** The pipeline file, checked, as JSON. */
  readonly spec: string;
  readonly params: PipelineValues;
  readonly usesCache: boolean;
  readonly rerunOf: string | null;
  readonly triggers: StoredPipeline['triggers'];
  readonly requestId?: string;
  /** Whose it is. Absent: of the caller. */
  readonly by?: Caller;
  /** Steps that are taken from another run. */
  readonly kept: readonly StoredPipelineStep[];
  /** How many the file has. */
  readonly stepCount: number;
}

export interface NewPipeline extends NewRun {
  readonly requestId: string;
  readonly digest: string;
}

/** The id of the run stands where the record of a request has that of an array. */
export function createPipeline(
  draft: Draft,
  { requestId, digest, ...fields }: NewPipeline,
  random: RandomBytes,
  nowMs: number,
): RequestRecord {
  const repeated = draft.request(requestId);
  if (repeated !== undefined) return sameIntent(repeated, { requestId, digest });
  const { id } = addRun(draft, fields, random, nowMs);
  return draft.putRequest({ requestId, digest, jobIds: [], arrayId: id, createdAtMs: nowMs });
}

/** @throws {MusterError} `resource_exhausted` */
export function addRun(
  draft: Draft,
  { stepCount, kept, by = draft.by, ...fields }: NewRun,
  random: RandomBytes,
  nowMs: number,
): StoredPipeline {
  const active = draft.pipelines.every().filter(({ state }) => !hasPipelineEnded(state)).length;
  if (active >= activePipelinesMax)
    throw new MusterError(
      'resource_exhausted',
      `${active} runs of pipelines have not ended; at most ${activePipelinesMax} at a time: wait for one, or stop one with muster pipeline stop`,
    );
  const run: StoredPipeline = {
    ...fields,
    id: newPipelineId(random),
    user: userOf(by),
    by,
    state: 'running',
    reason: null,
    createdAtMs: nowMs,
    endedAtMs: null,
  };
  draft.pipelines.put(run);
  for (const step of kept) draft.pipelines.putStep({ ...step, run: run.id });
  const data = { ...dataOf(run), steps: stepCount };
  draft.emit({ kind: 'pipeline.created', subject: clusterSubject, data }, nowMs);
  return run;
}

export interface StepStart extends InstanceRef {
  readonly run: string;
  /** From 1. */
  readonly try: number;
  readonly cacheKey: string | null;
  readonly inputs: StoredPipelineStep['inputs'];
}

/** What a step starts. */
interface StepWork {
  /** It stands under `finally`. */
  readonly runsWhenStopped: boolean;
}

/** Whether this try of a step may still be started: not twice, and not once the run has ended. */
function mayStart(draft: Draft, { run: id, step, index, try: tryNumber }: StepStart): boolean {
  const run = draft.pipelines.run(id);
  if (run === undefined || hasPipelineEnded(run.state)) return false;
  const before = draft.pipelines.step(id, step, index);
  return before === undefined ? tryNumber === 1 : before.state === 'failed' && before.tries === tryNumber - 1;
}

function started(start: StepStart, nowMs: number): StoredPipelineStep {
  const { try: tries, ...rest } = start;
  return {
    ...rest,
    state: 'running',
    tries,
    jobId: null,
    sweepId: null,
    cachedFrom: null,
    reason: null,
    outputs: [],
    best: null,
    isExpired: false,
    startedAtMs: nowMs,
    endedAtMs: null,
  };
}

/** As `mayStart`, of what runs: a stop of the run may have come after the runner has looked, and would not stop what starts behind it. */
function mayRun(draft: Draft, start: StepStart & StepWork): boolean {
  const isStopping = draft.pipelines.run(start.run)?.state === 'stopping';
  return mayStart(draft, start) && (!isStopping || start.runsWhenStopped);
}

export interface StepJob {
  readonly spec: JobSpec;
  readonly runningMs: RunningMs;
  /** The job of the try before, as it is stored. null: there is none to continue from. */
  readonly before: Predecessor | null;
}

/**
 * Stores a step and its job in one commit, so that no kill leaves one without the other. A step that was started already, or whose run
 * has ended, is not started. A further try continues from the checkpoints of the one before, or in its directory where that has saved none.
 * @throws {MusterError} as a submit of its job
 */
export function startJobStep(
  draft: Draft,
  { spec, runningMs, runsWhenStopped, before, ...start }: StepStart & StepWork & StepJob,
  random: RandomBytes,
  nowMs: number,
): void {
  const run = draft.pipelines.run(start.run);
  if (run === undefined || !mayRun(draft, { ...start, runsWhenStopped })) return;
  requireDirectoryToItself(draft, { spec, place: null });
  countInBudget(draft, { spec, place: null, runningMs });
  const inherited =
    before === null ? {} : inheritedCheckpointsOf(draft, before, { spec, array: null }, { kind: 'newest' });
  const job = aNewJob(
    draft,
    {
      spec,
      array: null,
      requeuedFrom: null,
      submittedAtMs: nowMs,
      user: run.user,
      budget: budgetOf(run.by),
      traceparent: traceparentOf(run.by),
    },
    random,
  );
  addJob(draft, { ...job, ...inherited }, nowMs);
  draft.pipelines.putStep({ ...started(start, nowMs), jobId: job.id });
}

/** As `startJobStep`, of a step that is a sweep. */
export function startSweepStep(
  draft: Draft,
  {
    sweep,
    runsWhenStopped,
    ...start
  }: StepStart & StepWork & { readonly sweep: Omit<NewSweep, 'requestId' | 'digest'> },
  random: RandomBytes,
  nowMs: number,
): void {
  if (!mayRun(draft, { ...start, runsWhenStopped })) return;
  const requestId = `pipeline/${start.run}/${start.step}/${start.index}/${start.try}`;
  const { arrayId } = createSweep(draft, { ...sweep, requestId, digest: requestId }, random, nowMs);
  draft.pipelines.putStep({ ...started(start, nowMs), sweepId: arrayId });
}

/** A step that is not started: it is skipped, blocked, cannot be started, or has its outputs from an earlier run. */
export function settleStep(
  draft: Draft,
  start: StepStart,
  end: Pick<StoredPipelineStep, 'state' | 'reason'> & Partial<StoredPipelineStep>,
  nowMs: number,
): void {
  const run = draft.pipelines.run(start.run);
  if (run === undefined || !mayStart(draft, start)) return;
  const step = { ...started(start, nowMs), ...end, endedAtMs: nowMs };
  draft.pipelines.putStep(step);
  emitStepEnd(draft, run, step, nowMs);
}

export type StepEnd = Pick<StoredPipelineStep, 'state' | 'reason' | 'outputs' | 'best'>;

/** Once: of a step that has ended nothing changes, unless it is started again. */
export function endStep(
  draft: Draft,
  { run: id, step, index, tries }: Pick<StoredPipelineStep, 'run' | 'step' | 'index' | 'tries'>,
  end: StepEnd,
  nowMs: number,
): void {
  const run = draft.pipelines.run(id);
  const before = draft.pipelines.step(id, step, index);
  if (run === undefined || before?.state !== 'running' || before.tries !== tries) return;
  const ended = { ...before, ...end, endedAtMs: nowMs };
  draft.pipelines.putStep(ended);
  emitStepEnd(draft, run, ended, nowMs);
}

/** Once: its job or sweep is stopped because its time is up. */
export function expireStep(draft: Draft, run: string, { step, index }: InstanceRef, nowMs: number): void {
  const before = draft.pipelines.step(run, step, index);
  if (before?.state !== 'running' || before.isExpired) return;
  draft.pipelines.putStep({ ...before, isExpired: true });
  stopWork(draft, before, `the timeout of step ${step} is up`, nowMs);
}

function stopWork(draft: Draft, { jobId, sweepId }: StoredPipelineStep, reason: string, nowMs: number): void {
  if (jobId !== null && draft.job(jobId) !== undefined)
    applyJobEvent(draft, jobId, { kind: 'stop', reason }, nowMs);
  const sweep = sweepId === null ? undefined : draft.sweeps.sweep(sweepId);
  if (sweep !== undefined && !hasSweepEnded(sweep.state)) stopSweep(draft, sweep.id, reason, nowMs);
}

/**
 * Steps that run get the time to save that their jobs ask for. Those under `finally` continue, because they run whatever has happened.
 * @throws {MusterError} `failed_precondition`
 */
export function stopPipeline(draft: Draft, id: string, reason: string, nowMs: number): void {
  const run = draft.pipelines.run(id);
  if (run === undefined || hasPipelineEnded(run.state))
    throw new MusterError('failed_precondition', `${id} has ended; muster pipeline show ${id}`);
  if (run.state === 'stopping')
    throw new MusterError(
      'failed_precondition',
      `${id} is stopping already; muster pipeline show ${id} names the jobs that still run`,
    );
  draft.pipelines.put({ ...run, state: 'stopping', reason });
  const data = { ...dataOf(run), reason };
  draft.emit({ kind: 'pipeline.stopped', subject: clusterSubject, data }, nowMs);
  const last = namesOfLastSteps(run);
  for (const step of draft.pipelines.stepsOf(id))
    if (step.state === 'running' && !last.has(step.step))
      stopWork(draft, step, `pipeline ${run.name} was stopped`, nowMs);
}

/** Only the names are read: to check the jobs of the file takes long in a command. */
function namesOfLastSteps({ spec }: StoredPipeline): ReadonlySet<string> {
  const file = JSON.parse(spec) as { readonly finally?: object };
  return new Set(Object.keys(file.finally ?? {}));
}

/** Once, and only when none of its steps runs. */
export function endPipeline(
  draft: Draft,
  id: string,
  {
    state,
    reason,
  }: { readonly state: Exclude<PipelineState, 'running' | 'stopping'>; readonly reason: string | null },
  nowMs: number,
): void {
  const run = draft.pipelines.run(id);
  if (run === undefined || hasPipelineEnded(run.state)) return;
  // It may have been stopped meanwhile.
  if (run.state === 'stopping' && state !== 'stopped') return;
  if (draft.pipelines.stepsOf(id).some((step) => step.state === 'running')) return;
  draft.pipelines.put({ ...run, state, reason, endedAtMs: nowMs });
  draft.emit(
    { kind: 'pipeline.ended', subject: clusterSubject, data: { ...dataOf(run), state, reason } },
    nowMs,
  );
}

function emitStepEnd(draft: Draft, run: StoredPipeline, ended: StoredPipelineStep, nowMs: number): void {
  const { step, index, state, tries, jobId, sweepId, reason } = ended;
  const data = { ...dataOf(run), step, index, state, tries, jobId, sweepId, reason };
  draft.emit({ kind: 'pipeline.step_ended', subject: clusterSubject, data }, nowMs);
}

function dataOf({ id: pipeline, name, user, project }: StoredPipeline) {
  return { pipeline, name, user, project };
}
