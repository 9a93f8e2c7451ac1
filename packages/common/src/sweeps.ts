/** Sweeps: searches for good parameters, each trial of which is a job. What the API shows of them; `-o json` prints these. */

/**
 * - `running`: trials run, wait, or will be started
 * - `stopping`: a user has stopped it, and trials still end
 * - `done`: all its trials have ended
 * - `stopped`: it was stopped by a user
 * - `failed`: it cannot continue, as `reason` says
 */
export const sweepStates = ['running', 'stopping', 'done', 'stopped', 'failed'] as const;
export type SweepState = (typeof sweepStates)[number];

/**
 * - `running`: its job has not ended, or some of its metrics can still arrive
 * - `paused`: it was stopped at a rung, with its checkpoint, and is resumed when it is among the best there
 * - `complete`: it has a value
 * - `incomplete`: its job has succeeded, and some of its metrics were lost; its value is that of those that arrived
 * - `pruned`: it was stopped early, because others were better at the same step; its value is that of the moment
 * - `infeasible`: its parameters do not work, such as a batch for which memory is too small; samplers avoid them
 * - `failed`: it has ended without a value, for a reason that says nothing of its parameters
 * - `stopped`: a user has stopped it
 */
export const trialStates = [
  'running',
  'paused',
  'complete',
  'incomplete',
  'pruned',
  'infeasible',
  'failed',
  'stopped',
] as const;
export type TrialState = (typeof trialStates)[number];

export const seedRunStates = [
  'running',
  'complete',
  'incomplete',
  'infeasible',
  'failed',
  'stopped',
] as const;

/** A run of a trial with one of several seeds. */
export interface SeedRunView {
  readonly seed: number;
  readonly jobId: string;
  readonly state: (typeof seedRunStates)[number];
  /** null: it has none, or none yet. */
  readonly value: number | null;
  readonly furtherValues: readonly number[];
  readonly step: number | null;
  /** Why it has no value. */
  readonly cause: string | null;
  /** Which of its metrics were lost, so that its value is that of those that arrived. null: none */
  readonly lost: string | null;
}

export interface TrialView {
  /** From 0, in the order in which trials are started. */
  readonly number: number;
  readonly state: TrialState;
  /** Of the parameters that apply. */
  readonly params: Readonly<Record<string, unknown>>;
  /** Of a trial that was resumed the newest; with seeds that of the first. */
  readonly jobId: string;
  /** Those before it, each of which was stopped at a rung. */
  readonly earlierJobs: readonly string[];
  /** Of the objective, with seeds the mean of theirs. null: it has none, or none yet. */
  readonly value: number | null;
  /** The standard deviation of the sample of the values of its seeds. null: it has no value, or there are no seeds. */
  readonly deviation: number | null;
  /** Of the second objective and so on. Empty: there is one, or it has no value. */
  readonly furtherValues: readonly number[];
  readonly furtherDeviations: readonly number[];
  /** Those that were started, by seed. Empty: each trial of the sweep runs once. */
  readonly seeds: readonly SeedRunView[];
  /** The step of that value. null: its line had none. */
  readonly step: number | null;
  /**
   * Why it has no value, as causes of jobs are named; `no_metric`: its output never showed the metric; `metrics_lost`: what arrived of its
   * metrics does not have it.
   */
  readonly cause: string | null;
  /** Which of its metrics were lost, so that its value is that of those that arrived. null: none */
  readonly lost: string | null;
  /** Its job has ended, and these metrics of it have not arrived yet. null: it waits for none. */
  readonly awaits: string | null;
  /** Wall clock. */
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
}

/** Up to now, or to its end. */
export interface SweepUseView {
  /** Those that were started. */
  readonly trials: number;
  readonly trialsLimit: number;
  /** From the allocation of GPUs to their release, those that are held now included. */
  readonly gpuHours: number;
  /** null: there is none. */
  readonly gpuHoursLimit: number | null;
  /** At the prices of the coordinator. null: it has none. */
  readonly usd: number | null;
  readonly usdLimit: number | null;
  /** Since the sweep was created. */
  readonly wallClockHours: number;
  readonly wallClockHoursLimit: number | null;
}

export interface SweepView {
  readonly id: string;
  readonly name: string;
  readonly user: string;
  readonly project: string;
  readonly state: SweepState;
  /** Why it has ended, or is about to. null: it continues, or all its trials have ended. */
  readonly reason: string | null;
  /** The sweep file, complete. */
  readonly spec: Readonly<Record<string, unknown>>;
  readonly createdAtMs: number;
  readonly endedAtMs: number | null;
  /** How many trials it will have in all. */
  readonly trials: number;
  readonly running: number;
  readonly paused: number;
  readonly complete: number;
  /** Those with lost metrics, unless the sweep accepts them as complete. */
  readonly incomplete: number;
  readonly pruned: number;
  readonly infeasible: number;
  readonly failed: number;
  readonly stopped: number;
  /** The trial with the best value. null: none has a value yet. */
  readonly best: TrialView | null;
  /** Which last metrics of ended jobs it waits for, and from where. null: none */
  readonly awaits: string | null;
  /** What it has used of its limits. null: the coordinator is of an earlier version. */
  readonly use: SweepUseView | null;
}

/** Whether no trial of it will be started, and none runs. */
export function hasSweepEnded(state: SweepState): boolean {
  return state !== 'running' && state !== 'stopping';
}
