/** Commands about jobs: plain functions on a draft. */
import type { ResumeChoice } from '@muster/common/checkpoints';
import { MusterError } from '@muster/common/errors';
import { isArrayId, type JobId, type RandomBytes } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import { budgetOf, traceparentOf, userOf } from '../caller.ts';
import { firstPhase, startAt } from '../lifecycle/phases.ts';
import { endsForGood } from '../lifecycle/requests.ts';
import { isGood } from '../lifecycle/resume.ts';
import type { Job, JobArray } from '../model.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { dependenciesOf } from '../state/dependencies.ts';
import type { Draft } from '../state/state.ts';
import type { RequestRecord } from '../store/store.ts';
import { addArray } from './arrays.ts';
import { countInBudget, type RunningMs, requireBudgetOf } from './budgets.ts';
import { requireDirectoryToItself } from './directories.ts';
import {
  type InheritedCheckpoints,
  inheritedCheckpointsOf,
  type Predecessor,
  requireNewest,
} from './inheritedCheckpoints.ts';
import { addJob, aNewJob } from './newJob.ts';

export interface SubmitCommand {
  readonly spec: JobSpec;
  readonly requestId: string;
  /** Digest of the spec, the job to requeue and what to resume from. */
  readonly digest: string;
  readonly requeuedFrom: JobId | null;
  /** How long attempts have run by now, for the budget of its caller. Absent: only what has ended counts. */
  readonly runningMs?: RunningMs;
  /** Of the job to requeue: the one that runs instead has its index. null: it belongs to no array. */
  readonly place: JobArray | null;
}

/**
 * Stores one job, or an array with its first jobs.
 * @throws {MusterError} `not_found` when it comes after a job that does not exist; those of `requireDirectoryToItself` and
 *   `countInBudget`
 */
export function submit(
  draft: Draft,
  command: SubmitCommand,
  random: RandomBytes,
  nowMs: number,
  inherited: InheritedCheckpoints | null = null,
): RequestRecord {
  const repeated = draft.request(command.requestId);
  if (repeated !== undefined) return sameIntent(repeated, command);
  for (const { on } of dependenciesOf(command)) {
    if (isArrayId(on)) continue;
    if (draft.outcome(on as JobId) === 'removed') {
      throw new MusterError(
        'not_found',
        `after: ${on} has ended and was removed by retention, so it is unknown whether it succeeded`,
      );
    }
    if (!draft.exists(on as JobId)) {
      throw new MusterError('not_found', `after: there is no job ${on}; \`muster jobs --all\` lists them`);
    }
  }
  requireDirectoryToItself(draft, command);
  countInBudget(draft, command);
  draft.base.queued.requireRoom(userOf(draft.by), command.spec);
  const { requestId, digest } = command;
  const { array } = command.spec;
  if (array !== null && command.place === null) {
    const { id: arrayId } = addArray(draft, { spec: command.spec, array }, random, nowMs);
    return draft.putRequest({ requestId, digest, jobIds: [], arrayId, createdAtMs: nowMs });
  }
  const job = aNewJob(
    draft,
    {
      ...command,
      array: command.place,
      submittedAtMs: nowMs,
      user: userOf(draft.by),
      budget: budgetOf(draft.by),
      traceparent: traceparentOf(draft.by),
    },
    random,
  );
  // Where it continues from a path, the step of that is where its first phase begins.
  const from = inherited?.resumedFrom ?? null;
  const phase = firstPhase(command.spec, from === null ? 0 : startAt(command.spec, from));
  addJob(draft, { ...job, phase, ...inherited }, nowMs);
  return draft.putRequest({ requestId, digest, jobIds: [job.id], arrayId: null, createdAtMs: nowMs });
}

/** @throws {MusterError} `already_exists` when the request id was used for something else */
export function sameIntent(
  record: RequestRecord,
  command: Pick<SubmitCommand, 'digest' | 'requestId'>,
): RequestRecord {
  if (record.digest === command.digest) return record;
  const made = record.arrayId ?? record.jobIds[0];
  throw new MusterError(
    'already_exists',
    `request id ${command.requestId} was used for another request${made === undefined ? '' : ` (${made})`}; choose a new one`,
  );
}

/** `requeuedFrom` is the job. */
export type RequeueCommand = SubmitCommand & {
  readonly requeuedFrom: JobId;
  readonly from: ResumeChoice;
  /** Of the job as it was read; what the draft knows of one that has not ended is newer. */
  readonly saved: Omit<Predecessor, 'id'>;
  /** `spec` is another one, which only a new job can have. */
  readonly isEdited: boolean;
  /** The caller knows that a running attempt is stopped. */
  readonly force: boolean;
};

/**
 * Stops the job's attempt and puts the job back into the queue; a queued job stays there. A job that has ended never
 * changes: its spec, or another one, runs again as a job of its own, from the checkpoints that it left.
 *
 * The record is committed with the change. Without it a client that got no answer, and asks again, would stop the attempt
 * that its first call made room for.
 * @throws {MusterError} `failed_precondition` while the job is stopping for good, for a step that has no good checkpoint, for
 *   another spec while it has not ended, while it runs and `force` is not set, and while another job continues from its
 *   checkpoints
 * @throws {EndedMeanwhile}
 */
export function requeueJob(
  draft: Draft,
  command: RequeueCommand,
  random: RandomBytes,
  nowMs: number,
): RequestRecord {
  const { requestId, digest, requeuedFrom: jobId, from, saved } = command;
  const repeated = draft.request(requestId);
  if (repeated !== undefined) return sameIntent(repeated, command);
  requireNewest(draft, { ...saved, id: jobId });
  const job = draft.job(jobId);
  requireResumable(jobId, (job ?? saved).checkpoints, from);
  if (job === undefined) {
    const inherited = inheritedCheckpointsOf(
      draft,
      { ...saved, id: jobId },
      { spec: command.spec, array: command.place },
      from,
    );
    return submit(draft, command, random, nowMs, inherited);
  }
  if (command.isEdited) {
    throw new MusterError(
      'failed_precondition',
      `${jobId} has not ended, and the spec of a job never changes: stop it first (muster stop ${jobId}), then requeue it with ` +
        'the changes; it continues from its newest checkpoint',
    );
  }
  if (job.state.kind === 'stopping' && endsForGood(job)) {
    const why = job.state.outcome.cause?.message ?? 'its work is done';
    throw new MusterError(
      'failed_precondition',
      `${jobId} is stopping (${why}); requeue it once it has ended`,
    );
  }
  if (!command.force && (job.state.kind === 'starting' || job.state.kind === 'running')) {
    throw new MusterError(
      'failed_precondition',
      `${jobId} is ${job.state.kind}; requeueing it stops attempt ${job.lastAttempt}. To confirm: ` +
        `muster requeue ${jobId} --force (in the API: force)`,
    );
  }
  applyJobEvent(draft, jobId, { kind: 'requeue', from }, nowMs);
  return draft.putRequest({ requestId, digest, jobIds: [jobId], arrayId: null, createdAtMs: nowMs });
}

/** Refuses a step that has no good checkpoint: it is unknown which one was meant instead. */
function requireResumable(jobId: JobId, checkpoints: Job['checkpoints'], from: ResumeChoice): void {
  if (from.kind === 'name') requireNamed(jobId, checkpoints, from.name);
  if (from.kind !== 'step') return;
  const steps = new Set(checkpoints.filter(isGood).flatMap(({ step }) => step ?? []));
  if (steps.has(from.step)) return;
  const known = [...steps].sort((a, b) => a - b).join(', ');
  const there = known === '' ? 'none with a known step' : `those of steps ${known}`;
  throw new MusterError(
    'failed_precondition',
    `${jobId} has no good checkpoint of step ${from.step}, only ${there}; \`muster checkpoints ${jobId}\` lists all`,
  );
}

function requireNamed(jobId: JobId, checkpoints: Job['checkpoints'], name: string): void {
  if (checkpoints.some((each) => each.name === name && isGood(each))) return;
  throw new MusterError(
    'failed_precondition',
    `${jobId} has no good checkpoint ${JSON.stringify(name.slice(0, 120))}; \`muster checkpoints ${jobId}\` lists all`,
  );
}

/**
 * More time for each attempt of a job, running or waiting.
 * @param byMs more than 0
 * @throws {MusterError} `failed_precondition` when it has no max_runtime, has ended, or ends for good; those of `requireBudgetOf`
 */
export function extendJob(draft: Draft, jobId: JobId, byMs: number, nowMs: number): void {
  const job = draft.job(jobId);
  if (job === undefined || endsForGood(job)) {
    const what = job === undefined ? 'has ended' : 'is stopping';
    throw new MusterError(
      'failed_precondition',
      `${jobId} ${what}; \`muster requeue ${jobId}\` runs it again`,
    );
  }
  requireBudgetOf(draft.by, job.budget, jobId);
  if (job.spec.maxRuntimeMs === null) {
    throw new MusterError(
      'failed_precondition',
      `${jobId} has no max_runtime, so its runtime is unlimited: there is nothing to extend`,
    );
  }
  applyJobEvent(draft, jobId, { kind: 'extend', byMs }, nowMs);
}

export interface ExtendCommand extends Pick<SubmitCommand, 'requestId' | 'digest'> {
  readonly jobId: JobId;
  readonly byMs: number;
}

/**
 * The record is committed with the change: a client that got no answer, and asks again, adds nothing a second time.
 * @throws {MusterError} as `extendJob` and `sameIntent`
 */
export function extendJobOnce(draft: Draft, command: ExtendCommand, nowMs: number): RequestRecord {
  const { requestId, digest, jobId, byMs } = command;
  const repeated = draft.request(requestId);
  if (repeated !== undefined) return sameIntent(repeated, command);
  extendJob(draft, jobId, byMs, nowMs);
  return draft.putRequest({ requestId, digest, jobIds: [jobId], arrayId: null, createdAtMs: nowMs });
}
