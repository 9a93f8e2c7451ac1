/** The requests of users, the scheduler, timers and runners to a job: stop, requeue, preempt, extend, time limit, the verdict on a phase. */
import { causeOf } from '@muster/common/cause';
import type { ResumeChoice } from '@muster/common/checkpoints';
import { isTerminal } from '@muster/common/states';
import { currentAttempt, type Job, type Outcome } from '../model.ts';
import { attemptEvent, fencedAttempt, followedBy, type Handler, jobEvent, unchanged } from './event.ts';
import { afterVerdict, isQueuedAfterGoodEnd, phaseOfChoice } from './phases.ts';
import { recoveryOf } from './recovery.ts';
import { beginStopping, end, followPhase } from './stopping.ts';

export const stop: Handler<'stop'> = (job, event, nowMs) => {
  if (isTerminal(job.state.kind)) return unchanged(job);
  const cause = causeOf('cancelled', event.reason === '' ? 'stopped by a user' : event.reason);
  const attempt = currentAttempt(job);
  if (attempt === null) return end(job, { next: 'cancelled', cause }, nowMs);
  if (job.state.kind === 'stopping') {
    // Already on the way out: the user's wish outranks a retry, but does not hide why a job failed.
    const { state } = job;
    if (state.outcome.next === 'failed') {
      const outcome: Outcome = { ...state.outcome, isWanted: true };
      return { job: { ...job, state: { ...state, outcome } }, ended: null, events: [] };
    }
    if (endsForGood(job)) return unchanged(job);
  }
  return beginStopping(job, attempt, { next: 'cancelled', cause }, nowMs);
};

/** Whether the end of its attempt is the end of the job: it does not return to the queue. */
export function endsForGood(job: Job): boolean {
  const { state } = job;
  if (state.kind !== 'stopping' || state.outcome.next === 'queued') return false;
  return state.outcome.next !== 'succeeded' || !isQueuedAfterGoodEnd(job);
}

export const requeue: Handler<'requeue'> = (job, { from }, nowMs) => {
  if (isTerminal(job.state.kind)) return unchanged(job);
  if (endsForGood(job)) return unchanged(job);
  const { state } = job;
  const attempt = currentAttempt(job);
  const phase = phaseOfChoice(job, from);
  const isSamePhase = phase === job.phase || isBeginning(job, phase);
  const isSameAsBefore = isSamePhase && isSameChoice(job.resumeChoice, from);
  const chosen = isSameAsBefore ? job : { ...job, resumeChoice: from, phase };
  const events = [jobEvent(job, 'job.requeued', { from })];
  if (state.kind === 'stopping') {
    // A choice that its attempt began with would end with what the attempt saves; one that is made now holds.
    if (isSameAsBefore && (from.kind === 'newest' || state.isRequeued === true)) return unchanged(job);
    const { outcome: before } = state;
    const isPreempted = before.next === 'queued' && before.charge === 'preemption';
    const outcome: Outcome = isPreempted ? { ...before, charge: 'nothing' } : before;
    return { job: { ...chosen, state: { ...state, outcome, isRequeued: true } }, ended: null, events };
  }
  if (attempt === null) return isSameAsBefore ? unchanged(job) : { job: chosen, ended: null, events };
  const cause = causeOf('preempted', `requeued by a user${inWords(from)}`);
  const outcome: Outcome = { next: 'queued', cause, backoffMs: 0, charge: 'nothing' };
  const stopped = beginStopping(chosen, attempt, outcome, nowMs);
  const after = stopped.job.state;
  if (after.kind !== 'stopping') return stopped;
  return { ...stopped, job: { ...stopped.job, state: { ...after, isRequeued: true } } };
};

export const preempt: Handler<'preempt'> = (job, event, nowMs) => {
  const attempt = fencedAttempt(job, event.attempt);
  if (attempt === null || job.state.kind === 'stopping') return unchanged(job);
  const { message, by } = event;
  const outcome: Outcome = {
    next: 'queued',
    cause: causeOf('preempted', message),
    backoffMs: 0,
    charge: 'preemption',
  };
  const change = attemptEvent(job, attempt, 'job.preempted', { by, message });
  return followedBy([change], beginStopping(job, attempt, outcome, nowMs));
};

export const extend: Handler<'extend'> = (job, { byMs }) => {
  if (isTerminal(job.state.kind) || job.spec.maxRuntimeMs === null) return unchanged(job);
  const extraRuntimeMs = job.extraRuntimeMs + byMs;
  return {
    job: { ...job, extraRuntimeMs },
    ended: null,
    events: [jobEvent(job, 'job.extended', { byMs, extraRuntimeMs })],
  };
};

export const phaseJudged: Handler<'phaseJudged'> = (job, event, nowMs) => {
  const step = afterVerdict(job, event, nowMs);
  return step === null ? unchanged(job) : followPhase(step, nowMs);
};

export const timeLimit: Handler<'timeLimit'> = (job, event, nowMs) => {
  const attempt = fencedAttempt(job, event.attempt);
  if (attempt === null || job.state.kind === 'stopping') return unchanged(job);
  const seconds = (ms: number) => `${Math.round(ms / 1_000)} s`;
  const added = job.extraRuntimeMs === 0 ? '' : `, extended by ${seconds(job.extraRuntimeMs)}`;
  const message = `ran for its max_runtime of ${seconds(job.spec.maxRuntimeMs ?? 0)}${added}`;
  const cause = causeOf('time_limit', message);
  return beginStopping(job, attempt, recoveryOf(job, attempt, cause).outcome, nowMs);
};

/** Whether it is at the beginning of that phase, with no attempt in it. */
function isBeginning({ phase }: Job, chosen: Job['phase']): boolean {
  return phase?.index === chosen?.index && phase?.firstAttempt == null && phase?.awaiting == null;
}

function isSameChoice(a: ResumeChoice, b: ResumeChoice): boolean {
  if (a.kind === 'step' && b.kind === 'step') return a.step === b.step;
  if (a.kind === 'name' && b.kind === 'name') return a.name === b.name;
  return a.kind === b.kind;
}

function inWords(from: ResumeChoice): string {
  switch (from.kind) {
    case 'newest':
      return '';
    case 'step':
      return `, to resume from step ${from.step}`;
    case 'name':
      return `, to resume from ${from.name}`;
    case 'start':
      return ', to start from scratch';
    default: {
      const never: never = from;
      return never;
    }
  }
}
