/**
 * What follows from the cause of an attempt that went wrong: whether its job runs again, when, where, and what is different
 * then. The table below is the whole of it; a cause that it does not name is tried again as it was, if the job asks for that.
 *
 * The budgets: what the program did counts in `failures` against `retry.max_attempts`; what its nodes did costs nothing. Both
 * count in `failuresInRow`, which progress (a newer verified checkpoint) sets back: it drives the backoff, and opens the
 * breaker, which lets one trial through after each pause. Both are decided when the attempt goes wrong, to be seen, and again
 * when the last of its tasks has ended: a checkpoint that was saved on the way out is progress.
 */
import { type Checkpoint, elsewhere as nameElsewhere } from '@muster/common/checkpoints';
import type { NodeName } from '@muster/common/ids';
import { backoffMs } from '@muster/common/retry';
import type { CauseKind } from '@muster/common/spec/causes';
import { isDivergence } from '@muster/common/training';
import type { Cause } from '@muster/common/views';
import type { Attempt, Death, Job, Outcome } from '../model.ts';
import { withCheckpoints } from './checkpoints.ts';
import { leavingOut } from './leftOut.ts';
import { isGood, resumeCandidates } from './resume.ts';

/** An outcome that has a cause and was not asked for. */
export type BadOutcome = Extract<Outcome, { next: 'failed' | 'queued' }>;

export interface Recovery {
  readonly outcome: BadOutcome;
  /** What its next attempt has to know: which checkpoints are none, which nodes to do without, at which scales. */
  readonly job: Job;
}

/** Below that a smaller batch is no remedy any more. */
export const batchScaleMin = 1 / 64;
const deathsMax = 16;

interface Remedy {
  /** The nodes are to blame: it costs nothing, and the first time it is not waited for. */
  readonly isFree: boolean;
  readonly job: Job;
  /** What was done about it is all that is to be done: the checkpoint it began from is not suspected as well. */
  readonly isTreated: boolean;
  /** Nothing is left to be tried. */
  readonly isHopeless?: true;
}

interface Failed {
  readonly job: Job;
  readonly attempt: Attempt;
  readonly cause: Cause;
  /** Of the rank that the evidence names. null: it names none. */
  readonly culprit: NodeName | null;
}

type Treatment = (failed: Failed) => Remedy;

const again: Treatment = ({ job }) => ({ isFree: false, job, isTreated: false });

/** What lies outside the program, and does not follow a job to another node. */
const elsewhere: Treatment = (failed) => {
  const { job, cause } = failed;
  // The evidence knows better: a wrong setting of the program's follows it everywhere.
  if (cause.blame === 'job') return again(failed);
  const nodes = cause.node === null ? [] : [cause.node as NodeName];
  return { isFree: true, job: leavingOut(job, cause, nodes), isTreated: true };
};

/** A node that was lost is silent: once it is back, nothing speaks against it. */
const anywhere: Treatment = ({ job }) => ({ isFree: true, job, isTreated: true });

/** Once may be chance. The second time in a row the rank that the others waited for is on a node that is too slow. */
const withoutTheSlowNode: Treatment = ({ job, cause, culprit }) => {
  const isSecond = job.deaths.at(-1)?.cause === cause.kind;
  const nodes = isSecond && culprit !== null ? [culprit] : [];
  return { isFree: false, job: leavingOut(job, cause, nodes), isTreated: nodes.length > 0 };
};

const smallerBatch: Treatment = (failed) => {
  const { job, cause } = failed;
  // Another program held the memory of that GPU.
  if (cause.blame !== 'job') return elsewhere(failed);
  const batchScale = job.batchScale * job.spec.retry.batchScale;
  if (batchScale < batchScaleMin) return { isFree: false, job, isTreated: true, isHopeless: true };
  return { isFree: false, job: { ...job, batchScale }, isTreated: true };
};

const beforeTheDivergence: Treatment = ({ job, attempt, cause }) => {
  const lrScale = job.lrScale * job.spec.retry.lrScale;
  return { isFree: false, job: { ...suspectingDiverged(job, attempt, cause), lrScale }, isTreated: true };
};

const theCheckpointBefore: Treatment = (failed) => {
  const { job, attempt, cause } = failed;
  const { resume, number } = attempt;
  const text = cause.evidence?.text ?? cause.message;
  if (resume === null || namesAnother(text, resume.name)) return again(failed);
  // What the attempt itself has saved under that name since is another one.
  const isMeant = (each: Checkpoint) => each.name === resume.name && each.attempt !== number;
  // A second reading may find it whole: that its program died of it stays. Of one that was only not there nobody has died.
  const change = {
    verdict: 'corrupt',
    problem: text,
    reread: false,
    ...(attempt.runningAtMs !== null && { suspect: true }),
  } as const;
  const marked = withCheckpoints(job, isMeant, change);
  // Its user has asked for a checkpoint of another job: without that it is not to begin from nothing instead.
  if (nameElsewhere(resume.name) !== null && resumeCandidates(marked).length === 0)
    return { isFree: false, job: marked, isTreated: true, isHopeless: true };
  return { isFree: false, job: marked, isTreated: true };
};

const treatments: Readonly<Partial<Record<CauseKind, Treatment>>> = {
  node_lost: anywhere,

  gpu_fault: elsewhere,
  gpu_hw_ecc: elsewhere,
  gpu_hw_nvlink: elsewhere,
  gpu_suspect: elsewhere,
  nccl_error: elsewhere,
  rendezvous: elsewhere,
  rendezvous_timeout: elsewhere,

  nccl_timeout: withoutTheSlowNode,
  hung: withoutTheSlowNode,

  cuda_oom: smallerBatch,

  nan_loss: beforeTheDivergence,
  loss_divergence: beforeTheDivergence,
  loss_scale_exhausted: beforeTheDivergence,

  corrupt_checkpoint: theCheckpointBefore,
};

/** Other causes that lie outside the checkpoint that an attempt began from: dying of them twice says nothing about it. */
const notOfTheCheckpoint: readonly CauseKind[] = [
  'time_limit',
  'disk_full',
  'shm_exhausted',
  'host_oom',
  'stopped_by_signal',
  'import_error',
  'command_not_found',
  'image_pull',
];

/**
 * @param job before this end is counted
 * @param attempt with what is known of it
 */
export function recoveryOf(job: Job, attempt: Attempt, cause: Cause): Recovery {
  const culprit = culpritOf(job, attempt, cause);
  const treatment = treatments[cause.kind] ?? again;
  const remedy = treatment({ job, attempt, cause, culprit });
  const death: Death = {
    cause: cause.kind,
    // One that got further than that did not die of it.
    resume: attempt.savedAtMs === null && !ignoresResume(attempt) ? (attempt.resume?.name ?? null) : null,
    node: culprit,
  };
  const suspected =
    remedy.isTreated || notOfTheCheckpoint.includes(cause.kind) || !diedSoBefore(job, death)
      ? remedy.job
      : withCheckpoints(remedy.job, ({ name }) => name === death.resume, { suspect: true });
  const failuresInRow = job.failuresInRow + 1;
  const next: Job = {
    ...suspected,
    deaths: [...job.deaths, death].slice(-deathsMax),
    failuresInRow,
  };
  return { outcome: outcomeOf(next, remedy, cause), job: next };
}

/** @param job with this end counted in `failuresInRow`, and not yet in `failures` */
function outcomeOf(job: Job, { isFree, isHopeless }: Remedy, cause: Cause): BadOutcome {
  const { retry } = job.spec;
  const isRetried = (retry.on as readonly CauseKind[]).includes(cause.kind) && isHopeless !== true;
  // What fails everywhere, again and again, is not the nodes' doing after all. Only that they are lost never is its own.
  const isCharged = !isFree || (opensBreaker(job) && cause.kind !== 'node_lost');
  if (!isRetried || (isCharged && job.failures + 1 >= retry.maxAttempts)) return { next: 'failed', cause };
  // Another node is there at once; only if that one breaks as well is there something to wait for.
  const counted = isFree ? job.failuresInRow - 1 : job.failuresInRow;
  const waitMs = counted === 0 ? 0 : backoffMs(retry.backoff, counted);
  const charge = isCharged ? 'failure' : 'node_loss';
  const pauseMs = opensBreaker(job) ? Math.max(waitMs, retry.breaker.pauseMs) : waitMs;
  return { next: 'queued', cause, backoffMs: pauseMs, charge };
}

/** Its attempts fail one after the other, and nothing is gained: one trial at a time, after a pause. */
export function opensBreaker({ failuresInRow, spec }: Job): boolean {
  return failuresInRow >= spec.retry.breaker.failures;
}

/** It has not given way as often as it is willing to. Whether it is willing at all is `preemptible`. */
export function mayBePreempted({ spec, preemptions }: Job): boolean {
  const { maxPreemptions } = spec.retry;
  return maxPreemptions === null || preemptions < maxPreemptions;
}

/** The end before this one, lost nodes aside, was the same, and neither got any further. */
function diedSoBefore({ deaths }: Job, { cause, resume }: Death): boolean {
  const last = deaths.findLast((each) => !isInfrastructure(each.cause));
  return resume !== null && last?.cause === cause && last.resume === resume;
}

function isInfrastructure(kind: CauseKind): boolean {
  const treatment = treatments[kind];
  return treatment === elsewhere || treatment === anywhere;
}

/**
 * Ranks are counted node by node, one for each GPU, as launchers do. Without a rank only a hang tells of a node: the first to
 * report a collective's timeout is the one that waited.
 */
function culpritOf({ spec }: Job, { tasks }: Attempt, { kind, evidence, node }: Cause): NodeName | null {
  const rank = evidence?.rank ?? null;
  if (rank === null) return kind === 'hung' ? (node as NodeName | null) : null;
  return tasks[Math.floor(rank / Math.max(1, spec.resources.gpus))]?.node ?? null;
}

/**
 * Whatever was saved after the last good step has the divergence in it. Where no step is known, the newest checkpoint may
 * have it, and the one before is taken. Of a program that began again, earlier attempts have other weights at these steps.
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
  // One of this attempt that does not tell its step may be of any moment.
  const isUncertain = goodUntil === null || (newest?.step === null && newest.attempt === number);
  return isUncertain
    ? withCheckpoints(marked, (each) => each === newest && isOfRun(each), { suspect: true })
    : marked;
}

/** Its output has shown that its program did not load what it was offered. */
function ignoresResume({ signs }: Attempt): boolean {
  return signs.some(({ kind }) => kind === 'resume_ignored');
}

/** The text has paths in it, and none of them leads to that checkpoint. Files of the program itself are none. */
function namesAnother(text: string, name: string): boolean {
  const paths = (text.match(/[^\s'"`,;:()[\]]*\/[^\s'"`,;:()[\]]*/g) ?? []).filter(
    (path) => !/\.pyx?$/.test(path),
  );
  return paths.length > 0 && !paths.some((path) => `/${path}/`.includes(`/${name}/`));
}

/** What a person reads who has to go on from here. @param cause of a job that has failed */
export function finalCause(job: Job, cause: Cause): Cause {
  if (cause.kind === 'time_limit') {
    const [best] = resumeCandidates(job);
    const step = best?.step == null ? '' : ` (step ${best.step})`;
    const hint =
      best === undefined ? 'it has no known checkpoint' : `muster requeue resumes from ${best.name}${step}`;
    return { ...cause, message: `${cause.message}; ${hint}` };
  }
  if (cause.kind === 'cuda_oom' && cause.blame === 'job' && job.batchScale < 1) {
    const message = `${cause.message}; MUSTER_BATCH_SCALE=${job.batchScale} was offered before`;
    return { ...cause, message };
  }
  return cause;
}
