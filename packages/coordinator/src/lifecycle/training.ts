/** Handles the observations of agents about a running training: signs in its output, hangs, and its completion. */
import { causeOf } from '@muster/common/cause';
import { type DivergenceKind, isDivergence, isResumeSign, type TrainingSign } from '@muster/common/training';
import { type Attempt, isReleased, type Outcome } from '../model.ts';
import { withDiverged } from './checkpoints.ts';
import { attemptEvent, fencedAttempt, followedBy, type Handler, unchanged, withAttempt } from './event.ts';
import { recoveryOf } from './recovery.ts';
import { beginStopping } from './stopping.ts';

/** Of each kind, in one attempt. A reader that has not reacted by then will not. */
const signsMax = 16;

const signWords: Readonly<Record<DivergenceKind, string>> = {
  nan_loss: 'the loss is not a number',
  loss_divergence: 'the loss has exploded',
  loss_scale_exhausted: 'gradients overflow at every loss scale',
};

export const trainingComplete: Handler<'trainingComplete'> = (job, event, nowMs) => {
  const attempt = fencedAttempt(job, event.attempt);
  const task = attempt?.tasks[event.nodeRank];
  if (attempt === null || task === undefined || !isReleased(attempt)) return unchanged(job);
  if (job.state.kind === 'stopping' && !isVoidOnceComplete(job.state.outcome)) return unchanged(job);
  const { nodeRank, node } = task;
  const change = attemptEvent(job, attempt, 'training.complete', { nodeRank, node });
  return followedBy([change], beginStopping(job, attempt, { next: 'succeeded', cause: null }, nowMs));
};

/** The first report counts: each rank that prints steps makes one. */
export const firstStep: Handler<'firstStep'> = (job, event, nowMs) => {
  const before = fencedAttempt(job, event.attempt);
  const task = before?.tasks[event.nodeRank];
  if (before === null || task === undefined || !isReleased(before) || before.firstStepAtMs !== null)
    return unchanged(job);
  // The clock of the node may be wrong. The step was printed after the allocation, and before this report.
  const atMs = Math.max(before.allocatedAtMs, Math.min(event.atMs, nowMs));
  const { nodeRank, node } = task;
  const data = { nodeRank, node, step: event.step, atMs };
  const attempt: Attempt = { ...before, firstStepAtMs: atMs };
  return {
    job: withAttempt(job, attempt),
    ended: null,
    events: [attemptEvent(job, attempt, 'training.started', data)],
  };
};

export const trainingSign: Handler<'trainingSign'> = (job, event, nowMs) => {
  const { sign } = event;
  const before = fencedAttempt(job, event.attempt);
  const task = before?.tasks[event.nodeRank];
  if (before === null || task === undefined || !isReleased(before)) return unchanged(job);
  if (isResumeSign(sign.kind) && !isFirstOfResume(before)) return unchanged(job);
  const ofKind = before.signs.filter(({ kind }) => kind === sign.kind);
  if (ofKind.some(({ step }) => step === sign.step) || ofKind.length >= signsMax) return unchanged(job);
  const { kind, step, lastGoodStep } = sign;
  const noticed = { kind, step, lastGoodStep };
  const attempt: Attempt = { ...before, signs: [...before.signs, noticed] };
  const marked = withDiverged(job, attempt, noticed);
  const { nodeRank, node } = task;
  const { rank, line, text } = sign;
  const data = { nodeRank, node, rank, step, lastGoodStep, line, text };
  const change = attemptEvent(job, attempt, `training.${kind}`, data);
  // One that has jumped may come back, and a program that ignores its checkpoint does work anyway.
  if (!isDivergence(kind) || job.spec.onDivergence === 'warn' || job.state.kind === 'stopping')
    return { job: withAttempt(marked, attempt), ended: null, events: [change] };
  const message = `${inWords(kind, sign)}; rank ${rank ?? nodeRank} on ${node} reported it first`;
  // Of no task's end: it names no rank, so that what a rank does when it is stopped never becomes the cause.
  const cause = causeOf(kind, message, { nodeRank: null, node }, { line, text, rank });
  return followedBy(
    [change],
    beginStopping(marked, attempt, recoveryOf(marked, attempt, cause).outcome, nowMs),
  );
};

export const hung: Handler<'hung'> = (job, event, nowMs) => {
  const before = fencedAttempt(job, event.attempt);
  const task = before?.tasks[event.nodeRank];
  if (before === null || task === undefined || job.state.kind !== 'running') return unchanged(job);
  const { quietForMs, usualMs, gpus, rank } = event.sign;
  // A repeated report of the same hang began before the last report.
  const sinceMs = nowMs - quietForMs;
  if (before.hungAtMs !== null && sinceMs <= before.hungAtMs) return unchanged(job);
  const attempt: Attempt = { ...before, hungAtMs: nowMs };
  const { nodeRank, node } = task;
  const change = attemptEvent(job, attempt, 'attempt.hung', {
    nodeRank,
    node,
    rank,
    quietForMs,
    usualMs,
    gpus,
  });
  if (job.spec.hang.action === 'warn')
    return { job: withAttempt(job, attempt), ended: null, events: [change] };
  const seconds = (ms: number) => `${Math.round(ms / 1_000)} s`;
  const who = `rank ${rank ?? nodeRank} on ${node} stopped first`;
  const text = `no progress for ${seconds(quietForMs)} (usually ${seconds(usualMs)}), GPUs ${gpus}`;
  const cause = causeOf('hung', `${text}; ${who}`, { nodeRank: null, node }, { line: null, text, rank });
  return followedBy([change], beginStopping(job, attempt, recoveryOf(job, attempt, cause).outcome, nowMs));
};

/**
 * Where it was only to make room, there is nothing left to come back for. Nor is there where one of its tasks has failed: the
 * marker may have been written before that, and the reports of the two come in any order.
 */
function isVoidOnceComplete(outcome: Outcome): boolean {
  const isOfTask = (outcome.cause?.nodeRank ?? null) !== null;
  switch (outcome.next) {
    case 'queued':
      return isOfTask || outcome.charge === 'preemption' || outcome.charge === 'nothing';
    case 'failed':
      return isOfTask && outcome.isWanted !== true;
    case 'cancelled':
    case 'succeeded':
      return false;
    default: {
      const never: never = outcome;
      return never;
    }
  }
}

/** Each task of a gang may report the step where it began. The first report counts. */
function isFirstOfResume({ resume, signs }: Attempt): boolean {
  return resume !== null && !signs.some(({ kind }) => isResumeSign(kind));
}

function inWords(kind: DivergenceKind, { step, lastGoodStep }: TrainingSign): string {
  const at = step === null ? '' : ` at step ${step}`;
  const until = lastGoodStep === null ? '' : ` (last normal step: ${lastGoodStep})`;
  return `${signWords[kind]}${at}${until}`;
}
