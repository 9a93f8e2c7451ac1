/** Phases of a curriculum: how they are counted, and what is shown of them. Pure. */
import type { Checkpoint } from './checkpoints.ts';
import type { JobSpec, PhaseSpec } from './spec/types.ts';

export const phaseUnits = ['steps', 'tokens'] as const;
export type PhaseUnit = (typeof phaseUnits)[number];

export const phaseVerdicts = ['met', 'unmet', 'unknown'] as const;
/** Whether the criterion of a phase was met. `unknown`: it depends on a metric that the phase has not printed. */
export type PhaseVerdict = (typeof phaseVerdicts)[number];

/** Metrics that a criterion names, as they were when it was judged. null: not known. */
export type PhaseValues = Readonly<Record<string, number | null>>;

/** What the next phase resumes from. */
type CarriedCheckpoint = Pick<Checkpoint, 'name' | 'step'>;

/** What is recorded of a phase that has ended. */
export interface EndedPhase {
  readonly name: string;
  /** Its first attempt and its last. null: of an earlier job, which this one continues. */
  readonly firstAttempt: number | null;
  readonly lastAttempt: number | null;
  /** Where it began, in steps or tokens from the beginning of the training. */
  readonly start: number;
  /** How many it had, extensions included. */
  readonly target: number;
  readonly extensions: number;
  /** The last step that its output showed. null: none. */
  readonly step: number | null;
  /** The last count of tokens that its output showed. null: none. Absent: of a version that did not read them. */
  readonly tokens?: number | null;
  /** null: it has no criterion. */
  readonly verdict: PhaseVerdict | null;
  readonly values: PhaseValues;
  /** The checkpoint that is carried over. null: it has left none. */
  readonly checkpoint: CarriedCheckpoint | null;
  readonly endedAtMs: number;
}

export const phaseStates = ['waiting', 'current', 'judged', 'ended'] as const;
/** `judged`: its target was reached, and its criterion is being judged. */
export type PhaseState = (typeof phaseStates)[number];

export interface PhaseView {
  readonly name: string;
  readonly state: PhaseState;
  /** Where it begins, from the beginning of the training. Of one that waits: as planned now. */
  readonly start: number;
  readonly target: number;
  readonly extensions: number;
  /** The newest step that its output showed. null: none. */
  readonly step: number | null;
  /** The newest count of tokens that its output showed, from the beginning of the training. null: none. */
  readonly tokens: number | null;
  /** null: it has not ended, or has no criterion. */
  readonly verdict: PhaseVerdict | null;
  /** Those that are known. */
  readonly values: Readonly<Record<string, number>>;
  readonly checkpoint: CarriedCheckpoint | null;
  readonly endedAtMs: number | null;
}

/** Progress over all phases of a job. */
export interface PhasesView {
  readonly unit: PhaseUnit;
  /** Of the current phase, or of the last that has run, from 0. */
  readonly index: number;
  /** Over all phases, extensions included. */
  readonly done: number;
  readonly total: number;
  /** 0 to 100. */
  readonly percent: number;
  readonly phases: readonly PhaseView[];
}

/** The metric that a name in a criterion means: `loss` is what most programs call that of the training. */
export function criterionMetric(name: string): string {
  return name === 'loss' ? 'train_loss' : name;
}

/** By what the phases of a job are counted: the same in all of them. */
export function phaseUnitOf(phases: readonly Pick<PhaseSpec, 'tokens'>[]): PhaseUnit {
  return phases.some(({ tokens }) => tokens !== null) ? 'tokens' : 'steps';
}

/** How many steps or tokens a phase has. */
export function phaseTarget({ steps, tokens, extend }: PhaseSpec, extensions: number): number {
  const each = extend?.steps ?? extend?.tokens ?? 0;
  return (steps ?? tokens ?? 0) + extensions * each;
}

/** The parameters of a phase: those of the job, with its own over them. */
export function paramsInPhase(
  { params, phases }: Pick<JobSpec, 'params' | 'phases'>,
  index: number | null,
): JobSpec['params'] {
  const own = index === null ? undefined : phases[index]?.params;
  return own === undefined ? params : { ...params, ...own };
}
