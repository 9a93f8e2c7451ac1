/** Progress of a job over its phases, as the API shows it. Pure. */
import { type PhasesView, type PhaseView, phaseTarget, phaseUnitOf } from '@muster/common/phases';
import type { PhaseSpec } from '@muster/common/spec/types';
import type { TrainingProgress } from '@muster/common/training';
import type { Job, PhaseProgress } from '../model.ts';

type Counts = Pick<PhaseView, 'step' | 'tokens'>;
const notCounted: Counts = { step: null, tokens: null };

type PhasedJob = Pick<Job, 'phase' | 'spec'> & { readonly state: { readonly kind: Job['state']['kind'] } };

/** @param training where it is, by its output @returns null: the job has no phases */
export function phasesView(
  { phase, spec, state }: PhasedJob,
  training: TrainingProgress | null,
): PhasesView | null {
  if (phase === null) return null;
  const unit = phaseUnitOf(spec.phases);
  const { step = null, tokens = null } = training?.latest ?? {};
  const phases: PhaseView[] = [];
  for (const [index, each] of spec.phases.entries()) {
    const before = phases.at(-1);
    const start = before === undefined ? phase.start : before.start + before.target;
    phases.push(phaseView(each, index, phase, start, { step, tokens }));
  }
  const [first] = phases;
  const last = phases.at(-1);
  const origin = first?.start ?? 0;
  const total = last === undefined ? 0 : last.start + last.target - origin;
  const current = phases[phase.index];
  const isOver = phase.ended.length > phase.index;
  const reached =
    current === undefined ? 0 : isOver ? current.start + current.target : reachedIn(current, unit);
  const done = state.kind === 'succeeded' ? total : reached - origin;
  const percent = total === 0 ? 0 : Math.round((1_000 * done) / total) / 10;
  return { unit, index: phase.index, done, total, percent, phases };
}

/** @param start as planned, of a phase of which nothing is recorded */
function phaseView(
  spec: PhaseSpec,
  index: number,
  phase: PhaseProgress,
  start: number,
  newest: Counts,
): PhaseView {
  const { name } = spec;
  const ended = phase.ended[index];
  if (ended !== undefined) {
    const { target, extensions, verdict, checkpoint, endedAtMs } = ended;
    const known = Object.entries(ended.values).filter((pair): pair is [string, number] => pair[1] !== null);
    const values = Object.fromEntries(known);
    const place = { start: ended.start, target, extensions, step: ended.step, tokens: ended.tokens ?? null };
    return { name, state: 'ended', ...place, verdict, values, checkpoint, endedAtMs };
  }
  const nothing = { verdict: null, values: {}, checkpoint: null, endedAtMs: null } as const;
  if (index !== phase.index) {
    const target = phaseTarget(spec, 0);
    return { name, state: 'waiting', start, target, extensions: 0, ...notCounted, ...nothing };
  }
  const { extensions, awaiting } = phase;
  const target = phaseTarget(spec, extensions);
  const state = awaiting === null ? 'current' : 'judged';
  return { name, state, start: phase.start, target, extensions, ...countsOf(phase, newest), ...nothing };
}

/** Before the first attempt of a phase, what is newest is of the phase before. */
function countsOf({ awaiting, firstAttempt }: PhaseProgress, newest: Counts): Counts {
  if (firstAttempt === null) return notCounted;
  return { step: awaiting?.step ?? newest.step, tokens: awaiting?.tokens ?? newest.tokens };
}

/** The newest count that was shown; a phase whose output shows none counts once it has ended. */
function reachedIn({ start, target, step, tokens, state }: PhaseView, unit: PhasesView['unit']): number {
  if (state === 'judged') return start + target;
  const count = unit === 'tokens' ? tokens : step;
  return count === null ? start : Math.min(Math.max(count, start), start + target);
}
