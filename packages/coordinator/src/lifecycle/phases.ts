/**
 * The phases of a job. Each is one attempt or more with parameters of its own: the program runs to the target of the phase, saves and
 * exits with 0, and the next attempt resumes with the parameters of the next phase.
 *
 *      current ──its attempt ended well──► (no criterion) ─────────────────────────────► ended ──► the next, or the job has succeeded
 *         ▲                    │                                                           ▲
 *         │                    ▼                             met · unmet: continue         │
 *         │                 awaiting ──phaseJudged─────────────────────────────────────────┘
 *         │                                │ unmet: extend                │ unmet: stop
 *         └────────────────────────────────┘                              └──► ended, and the job has failed (phase_unmet)
 *
 * - An attempt that does not end well is retried in the same phase.
 * - While a phase awaits its verdict the job waits in the queue, and gets no attempt. A verdict about any but the awaited attempt changes
 *   nothing, so that each end of a phase is judged once.
 * - Phases only go forward, unless a user requeues the job from an earlier step, or from scratch.
 */
import { causeOf } from '@muster/common/cause';
import type { Checkpoint, ResumeChoice } from '@muster/common/checkpoints';
import type { NewEvent } from '@muster/common/eventKinds';
import {
  criterionMetric,
  type EndedPhase,
  type PhaseValues,
  type PhaseVerdict,
  phaseTarget,
  phaseUnitOf,
} from '@muster/common/phases';
import type { JobSpec, PhaseSpec } from '@muster/common/spec/types';
import type { Cause } from '@muster/common/views';
import { type Attempt, currentAttempt, type Job, type PhaseProgress } from '../model.ts';
import { attemptEvent, jobEvent, type PhaseJudgement } from './event.ts';
import { resumeCandidates } from './resume.ts';

/** What follows from the end of a phase. */
export interface PhaseStep {
  readonly job: Job;
  readonly events: readonly NewEvent[];
  /** `waits`: for a verdict, or for the next attempt. */
  readonly next: 'waits' | 'succeeded' | { readonly failed: Cause };
}

interface Judged {
  readonly verdict: PhaseVerdict | null;
  readonly values: PhaseValues;
}

/** The metrics that a target counts. */
type PhaseCount = 'step' | 'tokens';

/** What comes of a phase, in the words of its event. */
type PhaseEnding = 'next' | 'succeeded' | 'failed';

/** @param start steps or tokens that were done before the job @returns null: the job has no phases */
export function firstPhase({ phases }: Pick<JobSpec, 'phases'>, start: number): PhaseProgress | null {
  if (phases.length === 0) return null;
  return { index: 0, start, firstAttempt: null, extensions: 0, awaiting: null, ended: [] };
}

/**
 * The step or token count at which a job starts that continues another training, in the unit of its phases.
 * @returns 0: the checkpoint does not have it
 */
export function startAt(
  { phases }: Pick<JobSpec, 'phases'>,
  checkpoint: Pick<Checkpoint, 'step'> & Partial<Pick<Checkpoint, 'metrics'>>,
): number {
  return (phaseUnitOf(phases) === 'steps' ? checkpoint.step : checkpoint.metrics?.['tokens']) ?? 0;
}

/** The phase whose criterion must be judged. null: there is none */
export function awaitedPhase({ phase, spec }: Pick<Job, 'phase' | 'spec'>): PhaseSpec | null {
  return phase === null || phase.awaiting === null ? null : (spec.phases[phase.index] ?? null);
}

/**
 * What the phase that is awaited has left, and the next one resumes from: the checkpoint whose evaluation counts for its criterion.
 * @returns null: the phase has saved none that is verified, in this job or in the one that it continues
 */
export function checkpointOfPhase(job: Pick<Job, 'phase' | 'checkpoints' | 'spec'>): Checkpoint | null {
  const { phase, checkpoints } = job;
  if (phase === null || phase.awaiting === null) return null;
  const [best] = resumeCandidates({ checkpoints, resumeChoice: { kind: 'newest' } });
  if (best === undefined) return null;
  const first = phase.firstAttempt ?? phase.awaiting.attempt;
  const isOfPhase = best.attempt === 0 ? isAfterStart(job, phase, best) : best.attempt >= first;
  return isOfPhase ? best : null;
}

/** Of a checkpoint of an earlier job. A phase of that, which this job repeats the end of, may have saved it. */
function isAfterStart(
  { spec }: Pick<Job, 'spec'>,
  { ended, start }: PhaseProgress,
  saved: Checkpoint,
): boolean {
  const before = ended.at(-1)?.checkpoint?.step ?? null;
  return before === null ? startAt(spec, saved) > start : saved.step !== null && saved.step > before;
}

/** Notes the attempt as the first of its phase, if it is that. */
export function beginPhase(job: Job, attempt: Attempt): Pick<PhaseStep, 'job' | 'events'> {
  const { phase, spec } = job;
  const current = phase === null ? undefined : spec.phases[phase.index];
  if (phase === null || current === undefined || phase.firstAttempt !== null) return { job, events: [] };
  const target = phaseTarget(current, phase.extensions);
  const begun = attemptEvent(job, attempt, 'phase.started', {
    ...placeOf(spec, phase, current),
    start: phase.start,
    end: phase.start + target,
    resume: attempt.resume,
  });
  return { job: { ...job, phase: { ...phase, firstAttempt: attempt.number } }, events: [begun] };
}

/** The attempt of a job with phases has ended well. @param job with that attempt @returns null: the job has no phases */
export function afterGoodEnd(job: Job, nowMs: number): PhaseStep | null {
  const { phase, spec } = job;
  const current = phase === null ? undefined : spec.phases[phase.index];
  if (phase === null || current === undefined) return null;
  // Its user has sent it elsewhere meanwhile: this attempt was of the phase where it was then.
  if (phase.firstAttempt === null) return { job, events: [], next: 'waits' };
  const last = currentAttempt(job);
  const awaiting = {
    attempt: job.lastAttempt,
    step: newestOf(last, 'step'),
    tokens: newestOf(last, 'tokens'),
  };
  const reached: Job = { ...job, phase: { ...phase, awaiting } };
  if (current.success !== null) return { job: reached, events: [], next: 'waits' };
  return endPhase(reached, { verdict: null, values: {} }, nowMs);
}

/** Whether a good end of its attempt only ends a phase: the job then returns to the queue. */
export function isQueuedAfterGoodEnd({ phase, spec }: Pick<Job, 'phase' | 'spec'>): boolean {
  const current = phase === null ? undefined : spec.phases[phase.index];
  if (phase === null || current === undefined) return false;
  const isLast = phase.index + 1 >= spec.phases.length;
  return phase.firstAttempt === null || current.success !== null || !isLast;
}

/**
 * What the spec wants after the verdict on the phase that is awaited.
 * @returns null: this attempt awaits none, and nothing changes
 */
export function afterVerdict(
  job: Job,
  { attempt, verdict, values, notFinite, lost }: { readonly attempt: number } & PhaseJudgement,
  nowMs: number,
): PhaseStep | null {
  const { phase, spec, state } = job;
  const current = phase === null ? undefined : spec.phases[phase.index];
  if (phase === null || current === undefined || state.kind !== 'queued') return null;
  if (phase.awaiting?.attempt !== attempt) return null;
  const judged: Judged = { verdict, values };
  if (verdict === 'met') return endPhase(job, judged, nowMs);
  const { unmet, extend } = current;
  if (unmet === 'extend' && extend !== null && phase.extensions < extend.max) {
    const extensions = phase.extensions + 1;
    const extended = jobEvent(job, 'phase.extended', {
      attempt,
      ...placeOf(spec, phase, current),
      ...judged,
      verdict,
      extensions,
      extensionsMax: extend.max,
      end: phase.start + phaseTarget(current, extensions),
    });
    const next = { ...phase, extensions, awaiting: null };
    return { job: { ...rewarded(job), phase: next }, events: [extended], next: 'waits' };
  }
  const action = unmet === 'extend' ? (extend?.finally ?? 'stop') : unmet;
  return action === 'continue'
    ? endPhase(job, judged, nowMs)
    : failPhase(job, judged, { notFinite, ...(lost === undefined ? {} : { lost }) }, nowMs);
}

/** Where a job is in its phases once its user has chosen what it resumes from. */
export function phaseOfChoice(
  job: Pick<Job, 'spec' | 'phase' | 'checkpoints'>,
  from: ResumeChoice,
): PhaseProgress | null {
  const { phase, spec, checkpoints } = job;
  if (phase === null || from.kind === 'newest') return phase;
  if (from.kind === 'start') return firstPhase(spec, 0);
  const [best] = resumeCandidates({ checkpoints, resumeChoice: from });
  const step = best?.step ?? null;
  const again = { ...phase, firstAttempt: null, awaiting: null };
  if (step === null) return again;
  const endOf = ({ checkpoint, step: reached }: EndedPhase) => checkpoint?.step ?? reached;
  const index = phase.ended.findIndex((each) => (endOf(each) ?? -1) > step);
  const before = phase.ended[index];
  if (before === undefined || index >= phase.index) return again;
  const { start, extensions } = before;
  return { ...again, index, start, extensions, ended: phase.ended.slice(0, index) };
}

/**
 * Of a job that runs another one again: it begins in the phase in which that one ended, as far as it has the same phases up to there.
 * @param from what it resumes from @param start as `firstPhase`, where it begins with the first
 */
export function inheritedPhase(
  predecessor: Pick<Job, 'spec' | 'phase' | 'checkpoints'>,
  spec: JobSpec,
  from: ResumeChoice,
  start: number,
): PhaseProgress | null {
  const { phase } = predecessor;
  const isSame = (name: string, index: number) => spec.phases[index]?.name === name;
  const names = predecessor.spec.phases.map(({ name }) => name);
  const reached = phase === null ? [] : names.slice(0, phase.index + 1);
  if (phase === null || from.kind === 'start' || !reached.every(isSame)) return firstPhase(spec, start);
  // Its attempts are those of another job.
  const ended = phase.ended
    .slice(0, phase.index)
    .map((each) => ({ ...each, firstAttempt: null, lastAttempt: null }));
  const again = { ...phase, firstAttempt: null, awaiting: null, ended };
  return phaseOfChoice({ ...predecessor, spec, phase: again }, from);
}

function endPhase(job: Job, judged: Judged, nowMs: number): PhaseStep {
  const { phase, spec } = job;
  const isLast = phase !== null && phase.index + 1 >= spec.phases.length;
  const ended = withEnded(job, judged, isLast ? 'succeeded' : 'next', nowMs);
  const after = ended.job.phase;
  if (isLast || after === null) return { ...ended, next: 'succeeded' };
  const last = after.ended.at(-1);
  const next: PhaseProgress = {
    index: after.index + 1,
    start: last === undefined ? 0 : last.start + last.target,
    firstAttempt: null,
    extensions: 0,
    awaiting: null,
    ended: after.ended,
  };
  return { ...ended, job: { ...rewarded(ended.job), phase: next }, next: 'waits' };
}

function failPhase(job: Job, judged: Judged, gaps: Gaps, nowMs: number): PhaseStep {
  const ended = withEnded(job, judged, 'failed', nowMs);
  return { ...ended, next: { failed: causeOf('phase_unmet', unmetText(job, judged.values, gaps)) } };
}

/** Why values are not known. */
type Gaps = Pick<PhaseJudgement, 'notFinite' | 'lost'>;

/** `phase curated did not meet eval_loss < 2.9: eval_loss 3.1` */
function unmetText({ spec, phase }: Job, values: PhaseValues, { notFinite, lost }: Gaps): string {
  const { name, success } = spec.phases[phase?.index ?? 0] ?? { name: '', success: null };
  const measured = spec.evaluate?.metric?.name;
  const known = Object.entries(values).map(([metric, value]) => {
    if (notFinite.includes(metric)) return `${metric} NaN, for its newest value is not a finite number`;
    if (value !== null) return `${metric} ${value}`;
    const isMeasured = criterionMetric(metric) === measured;
    if (lost !== undefined && !isMeasured) return `${metric} unknown, for ${lost}`;
    const source = isMeasured ? 'no evaluation of its last checkpoint' : 'no output of the phase';
    return `${metric} unknown, for ${source} shows it`;
  });
  return `phase ${name} did not meet ${success ?? ''}${known.length === 0 ? '' : `: ${known.join(', ')}`}`;
}

function withEnded(
  job: Job,
  { verdict, values }: Judged,
  ending: PhaseEnding,
  nowMs: number,
): Pick<PhaseStep, 'job' | 'events'> {
  const { phase, spec } = job;
  const current = phase === null ? undefined : spec.phases[phase.index];
  if (phase === null || current === undefined) return { job, events: [] };
  const { awaiting, start, extensions, firstAttempt } = phase;
  const [best] = resumeCandidates({ ...job, resumeChoice: { kind: 'newest' } });
  const ended: EndedPhase = {
    name: current.name,
    firstAttempt,
    lastAttempt: awaiting?.attempt ?? null,
    start,
    target: phaseTarget(current, extensions),
    extensions,
    step: awaiting?.step ?? null,
    tokens: awaiting?.tokens ?? null,
    verdict,
    values,
    checkpoint: best === undefined ? null : { name: best.name, step: best.step },
    endedAtMs: nowMs,
  };
  const event = jobEvent(job, 'phase.ended', {
    attempt: awaiting?.attempt ?? job.lastAttempt,
    ...placeOf(spec, phase, current),
    verdict,
    values,
    step: ended.step,
    tokens: awaiting?.tokens ?? null,
    end: start + ended.target,
    checkpoint: ended.checkpoint,
    next: ending,
  });
  return {
    job: { ...job, phase: { ...phase, awaiting: null, ended: [...phase.ended, ended] } },
    events: [event],
  };
}

function placeOf({ phases }: JobSpec, { index }: PhaseProgress, { name }: PhaseSpec) {
  return { phase: name, index, phases: phases.length, unit: phaseUnitOf(phases) };
}

/** A phase that has ended well is progress, whatever went wrong in it. */
function rewarded(job: Job): Job {
  return { ...job, failures: 0, failuresInRow: 0, recentFailures: [], excludedNodes: [] };
}

/** By the lowest rank that shows one. */
function newestOf(attempt: Attempt | null, metric: PhaseCount): number | null {
  for (const { exit } of attempt?.tasks ?? []) {
    const value = exit?.training?.latest[metric];
    if (value !== undefined) return value;
  }
  return null;
}
