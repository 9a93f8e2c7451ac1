/**
 * Decides how a job recovers from a failed attempt: whether it is retried, when, on which nodes, and with which changes. The
 * table `recoveryActions` maps causes to actions. A job is retried unchanged after any other cause, if its spec asks for that.
 *
 * There are two budgets. Failures of the program count in `failures`, against `retry.max_attempts`; failures of nodes are
 * free. Both count in `failuresInRow`, which drives the backoff and opens the circuit breaker; the breaker allows one trial
 * after each pause. Progress, which is a newer verified checkpoint, resets `failuresInRow`. Both are computed when the attempt
 * fails, so that users see them, and again after its last task has ended, because a checkpoint may be saved during the stop.
 */
import { type Checkpoint, externalCheckpoint } from '@muster/common/checkpoints';
import type { NodeName } from '@muster/common/ids';
import { paramsInPhase } from '@muster/common/phases';
import { backoffMs } from '@muster/common/retry';
import { leastBatch } from '@muster/common/scales';
import { type CauseKind, retriedCauses } from '@muster/common/spec/causes';
import { isDivergence } from '@muster/common/training';
import type { Cause } from '@muster/common/views';
import type { Attempt, FailureRecord, Job } from '../model.ts';
import { withCheckpoints } from './checkpoints.ts';
import { withExcludedNodes } from './excludedNodes.ts';
import { type BadOutcome, couldNotStart, outcomeOfFailedStart } from './failedStart.ts';
import { isGood, resumeCandidates } from './resume.ts';

export interface Recovery {
  readonly outcome: BadOutcome;
  /** The job with what its next attempt needs: suspect checkpoints, excluded nodes, scales of batch and learning rate. */
  readonly job: Job;
}

/** The smallest scale of the batch. A job that needs less memory than that is not retried. */
export const batchScaleMin = 1 / 64;
const recentFailuresMax = 16;

/** The result of a recovery action. */
interface ActionResult {
  /** Its nodes caused the failure: the retry is not counted, and the first one does not wait. */
  readonly isFree: boolean;
  readonly job: Job;
  /** The action explains the failure, so the checkpoint that the attempt began from is not suspected. */
  readonly sparesCheckpoint: boolean;
  /** No further action is left for this cause, so the job fails. */
  readonly isExhausted?: true;
}

/** A failed attempt, as the actions see it. */
interface Failed {
  readonly job: Job;
  readonly attempt: Attempt;
  readonly cause: Cause;
  /** The node of the rank that the evidence names. It is null if the evidence names no rank. */
  readonly faultyNode: NodeName | null;
}

type RecoveryAction = (failed: Failed) => ActionResult;

const retryUnchanged: RecoveryAction = ({ job }) => ({ isFree: false, job, sparesCheckpoint: false });

/** For failures outside the program, which do not follow the job to another node. */
const retryOnOtherNodes: RecoveryAction = (failed) => {
  const { job, cause } = failed;
  // The evidence blames the program: a wrong setting follows it to every node.
  if (cause.blame === 'job') return retryUnchanged(failed);
  const nodes = cause.node === null ? [] : [cause.node as NodeName];
  return { isFree: true, job: withExcludedNodes(job, cause, nodes), sparesCheckpoint: true };
};

/**
 * For outputs that could not be sent. The way to the store may be better from another node. It counts, because more often the store is
 * away for all of them, and a program without checkpoints repeats all of its work.
 */
const sendFromOtherNodes: RecoveryAction = (failed) => ({ ...retryOnOtherNodes(failed), isFree: false });

/** For lost nodes. Such a node is silent, and can be used again once it answers. */
const retryAnywhere: RecoveryAction = ({ job }) => ({ isFree: true, job, sparesCheckpoint: true });

/** For hangs. One may be chance; after the second in a row, the node of the rank that the others waited for is too slow. */
const excludeSlowNode: RecoveryAction = ({ job, cause, faultyNode }) => {
  const isSecond = job.recentFailures.at(-1)?.cause === cause.kind;
  const nodes = isSecond && faultyNode !== null ? [faultyNode] : [];
  return { isFree: false, job: withExcludedNodes(job, cause, nodes), sparesCheckpoint: nodes.length > 0 };
};

const reduceBatch: RecoveryAction = (failed) => {
  const { job, cause } = failed;
  // Another program used the memory of that GPU.
  if (cause.blame !== 'job') return retryOnOtherNodes(failed);
  const batchScale = job.batchScale * job.spec.retry.batchScale;
  if (batchScale < batchScaleMin || isBelowLeastBatch(job, batchScale))
    return { isFree: false, job, sparesCheckpoint: true, isExhausted: true };
  return { isFree: false, job: { ...job, batchScale }, sparesCheckpoint: true };
};

/** Only of a batch size that the command names; what other programs make of a scale is not known. */
function isBelowLeastBatch({ spec, phase }: Job, batchScale: number): boolean {
  const params = paramsInPhase(spec, phase?.index ?? null);
  const size = leastBatch({ ...spec, params }, batchScale);
  return size !== null && size < (spec.retry.batchMin ?? 1);
}

const resumeBeforeDivergence: RecoveryAction = ({ job, attempt, cause }) => {
  const lrScale = job.lrScale * job.spec.retry.lrScale;
  return {
    isFree: false,
    job: { ...suspectingDiverged(job, attempt, cause), lrScale },
    sparesCheckpoint: true,
  };
};

const resumeFromEarlierCheckpoint: RecoveryAction = (failed) => {
  const { job, attempt, cause } = failed;
  const { resume, number } = attempt;
  const text = cause.evidence?.text ?? cause.message;
  if (resume === null || namesAnother(text, resume.name)) return retryUnchanged(failed);
  // A checkpoint of that name that the attempt itself has saved is another checkpoint.
  const isMeant = (each: Checkpoint) => each.name === resume.name && each.attempt !== number;
  // A second reading may find the checkpoint intact, and then `suspect` keeps that a program failed on it. An attempt that
  // never ran did not fail on it.
  const change = {
    verdict: 'corrupt',
    problem: text,
    reread: false,
    ...(attempt.runningAtMs !== null && { suspect: true }),
  } as const;
  const marked = withCheckpoints(job, isMeant, change);
  // The user asked to continue from another job, so the job must not start from scratch instead.
  if (externalCheckpoint(resume.name) !== null && resumeCandidates(marked).length === 0)
    return { isFree: false, job: marked, sparesCheckpoint: true, isExhausted: true };
  return { isFree: false, job: marked, sparesCheckpoint: true };
};

const recoveryActions: Readonly<Partial<Record<CauseKind, RecoveryAction>>> = {
  node_lost: retryAnywhere,

  gpu_fault: retryOnOtherNodes,
  gpu_hw_ecc: retryOnOtherNodes,
  gpu_hw_nvlink: retryOnOtherNodes,
  gpu_suspect: retryOnOtherNodes,
  nccl_error: retryOnOtherNodes,
  rendezvous: retryOnOtherNodes,
  rendezvous_timeout: retryOnOtherNodes,
  container_engine: retryOnOtherNodes,

  nccl_timeout: excludeSlowNode,
  hung: excludeSlowNode,

  artifact_store: sendFromOtherNodes,

  cuda_oom: reduceBatch,

  nan_loss: resumeBeforeDivergence,
  loss_divergence: resumeBeforeDivergence,
  loss_scale_exhausted: resumeBeforeDivergence,

  corrupt_checkpoint: resumeFromEarlierCheckpoint,
};

/** More causes that have nothing to do with the checkpoint of the attempt. Two such failures do not make it suspect. */
const unrelatedToCheckpoint: readonly CauseKind[] = [
  'time_limit',
  'disk_full',
  'shm_exhausted',
  'host_oom',
  'stopped_by_signal',
  'import_error',
  'command_not_found',
  'image_pull',
  'artifact_refused',
  'artifact_invalid',
];

/**
 * @param job the job before this failure is counted
 * @param attempt the failed attempt with all that its nodes have reported
 */
export function recoveryOf(job: Job, attempt: Attempt, cause: Cause): Recovery {
  if (couldNotStart(attempt, cause)) {
    const nodes = cause.node === null ? [] : [cause.node as NodeName];
    return { outcome: outcomeOfFailedStart(job, cause), job: withExcludedNodes(job, cause, nodes) };
  }
  const faultyNode = faultyNodeOf(job, attempt, cause);
  const action = recoveryActions[cause.kind] ?? retryUnchanged;
  const result = action({ job, attempt, cause, faultyNode });
  const failure: FailureRecord = {
    cause: cause.kind,
    // An attempt that saved a newer checkpoint did not fail because of this one.
    resume: attempt.savedAtMs === null && !ignoresResume(attempt) ? (attempt.resume?.name ?? null) : null,
    node: faultyNode,
  };
  const suspected =
    result.sparesCheckpoint || unrelatedToCheckpoint.includes(cause.kind) || !failedSoBefore(job, failure)
      ? result.job
      : withCheckpoints(result.job, ({ name }) => name === failure.resume, { suspect: true });
  const failuresInRow = job.failuresInRow + 1;
  const next: Job = {
    ...suspected,
    recentFailures: [...job.recentFailures, failure].slice(-recentFailuresMax),
    failuresInRow,
  };
  const outcome = outcomeOf(next, result, cause);
  if (outcome.next !== 'failed') return { outcome, job: next };
  // The scales of a retry that does not follow were never offered to an attempt.
  const { batchScale, lrScale } = job;
  return { outcome, job: { ...next, batchScale, lrScale } };
}

/** @param job the job with this failure counted in `failuresInRow`, and not yet in `failures` */
function outcomeOf(job: Job, { isFree, isExhausted }: ActionResult, cause: Cause): BadOutcome {
  const { retry } = job.spec;
  const isRetried = isRetriedAfter(job, cause.kind) && isExhausted !== true;
  // A failure that repeats on all nodes is caused by the program after all, except for lost nodes.
  const isCharged = !isFree || (opensBreaker(job) && cause.kind !== 'node_lost');
  if (!isRetried || (isCharged && isLastAttempt(job))) return { next: 'failed', cause };
  // The first retry on another node need not wait.
  const counted = isFree ? job.failuresInRow - 1 : job.failuresInRow;
  const waitMs = counted === 0 ? 0 : backoffMs(retry.backoff, counted);
  const charge = isCharged ? 'failure' : 'node_loss';
  const pauseMs = opensBreaker(job) ? Math.max(waitMs, retry.breaker.pauseMs) : waitMs;
  return { next: 'queued', cause, backoffMs: pauseMs, charge };
}

/** Whether the job asks to be retried after failures of this cause. */
export function isRetriedAfter({ spec }: Job, cause: CauseKind): boolean {
  return (retriedCauses(spec.retry.on) as readonly CauseKind[]).includes(cause);
}

/** Whether the job has no attempt left, by `retry.max_attempts`, once the current failure is charged to it. */
export function isLastAttempt({ failures, spec }: Job): boolean {
  return failures + 1 >= spec.retry.maxAttempts;
}

/** @returns whether so many attempts failed in a row without progress that the job gets one trial after each pause */
export function opensBreaker({ failuresInRow, spec }: Job): boolean {
  return failuresInRow >= spec.retry.breaker.failures;
}

/** @returns whether the job has preemptions left by `retry.max_preemptions`; `preemptible` decides whether it takes part */
export function mayBePreempted({ spec, preemptions }: Job): boolean {
  const { maxPreemptions } = spec.retry;
  return maxPreemptions === null || preemptions < maxPreemptions;
}

/** @returns whether the last failure, apart from failures of infrastructure, was the same from the same checkpoint */
function failedSoBefore({ recentFailures }: Job, { cause, resume }: FailureRecord): boolean {
  const last = recentFailures.findLast((each) => !isInfrastructure(each.cause));
  return resume !== null && last?.cause === cause && last.resume === resume;
}

function isInfrastructure(kind: CauseKind): boolean {
  const action = recoveryActions[kind];
  return action === retryOnOtherNodes || action === retryAnywhere || action === sendFromOtherNodes;
}

/**
 * Ranks are counted node by node, one for each GPU, as launchers do. Without a rank, only a hang names the faulty node: the
 * first node that reports the timeout of a collective is the one that waited for another.
 */
function faultyNodeOf({ spec }: Job, { tasks }: Attempt, { kind, evidence, node }: Cause): NodeName | null {
  const rank = evidence?.rank ?? null;
  if (rank === null) return kind === 'hung' ? (node as NodeName | null) : null;
  return tasks[Math.floor(rank / Math.max(1, spec.resources.gpus))]?.node ?? null;
}

/**
 * Marks the checkpoints that may contain the divergence: those after the last good step, or the newest one if no step is
 * known. If the program ignored its checkpoint and started over, checkpoints of earlier attempts are not affected.
 */
function suspectingDiverged(job: Job, attempt: Attempt, { kind }: Cause): Job {
  const { signs, number } = attempt;
  const sign =
    signs.findLast((each) => each.kind === kind) ?? signs.findLast((each) => isDivergence(each.kind));
  const goodUntil = sign?.lastGoodStep ?? (sign?.step == null ? null : sign.step - 1);
  const isOfRun = (each: Checkpoint) => each.attempt === number || !ignoresResume(attempt);
  const isAfter = (each: Checkpoint) =>
    goodUntil !== null && each.step !== null && each.step > goodUntil && isOfRun(each);
  const marked = withCheckpoints(job, isAfter, { suspect: true });
  const newest = marked.checkpoints.findLast(isGood);
  // A checkpoint of this attempt without a step may be from any moment.
  const isUncertain = goodUntil === null || (newest?.step === null && newest.attempt === number);
  return isUncertain
    ? withCheckpoints(marked, (each) => each === newest && isOfRun(each), { suspect: true })
    : marked;
}

/** @returns whether the output shows that the program did not load the checkpoint that it was offered */
function ignoresResume({ signs }: Attempt): boolean {
  return signs.some(({ kind }) => kind === 'resume_ignored');
}

/** @returns whether the text contains paths and none of them leads to that checkpoint; source files do not count */
function namesAnother(text: string, name: string): boolean {
  const paths = (text.match(/[^\s'"`,;:()[\]]*\/[^\s'"`,;:()[\]]*/g) ?? []).filter(
    (path) => !/\.pyx?$/.test(path),
  );
  return paths.length > 0 && !paths.some((path) => `/${path}/`.includes(`/${name}/`));
}

/** Adds the next step for the user to the cause of a failed job. */
export function finalCause(job: Job, cause: Cause): Cause {
  if (cause.kind === 'time_limit') {
    const [best] = resumeCandidates(job);
    const step = best?.step == null ? '' : ` (step ${best.step})`;
    const hint =
      best === undefined ? 'it has no known checkpoint' : `muster requeue resumes from ${best.name}${step}`;
    return { ...cause, message: `${cause.message}; ${hint}` };
  }
  if (cause.kind === 'cuda_oom' && cause.blame === 'job') {
    const { batchMin, batchScale } = job.spec.retry;
    const offered = job.batchScale < 1 ? `; MUSTER_BATCH_SCALE=${job.batchScale} was offered before` : '';
    const isBounded = batchMin !== null && isBelowLeastBatch(job, job.batchScale * batchScale);
    const bound = isBounded ? `; a smaller batch would be below retry.batch_min, which is ${batchMin}` : '';
    return { ...cause, message: `${cause.message}${offered}${bound}` };
  }
  return cause;
}
