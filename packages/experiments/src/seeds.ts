/** Trials that run once for each of several seeds: what they come to together. Pure. */

import type { SeedRunView } from '@muster/common/sweeps';

export type SeedRunState = SeedRunView['state'];

/** One run of a trial. */
export type SeedResult = Omit<SeedRunView, 'seed' | 'jobId'>;

/** @returns null: there is no value */
export function meanOf(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/**
 * The standard deviation of a sample: the square root of the sum of squared differences from the mean, divided by n - 1 (NIST/SEMATECH
 * e-Handbook of Statistical Methods, 1.3.5.6).
 * @returns null: fewer than two values have none
 */
export function deviationOf(values: readonly number[]): number | null {
  const mean = meanOf(values);
  if (mean === null || values.length < 2) return null;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return Math.sqrt(squares / (values.length - 1));
}

/** Whether another seed of the trial is worth its time: each that has ended has a value. */
export function needsMoreSeeds(runs: readonly Pick<SeedResult, 'state'>[], seeds: number): boolean {
  return runs.length < seeds && runs.every(({ state }) => state === 'running' || state === 'complete');
}

export interface SeedSummary {
  readonly state: Exclude<SeedRunState, 'running'>;
  readonly value: number | null;
  readonly furtherValues: readonly number[];
  readonly step: number | null;
  readonly cause: string | null;
}

/**
 * What a trial has come to, none of whose runs is left. It has a value only if each seed has one: a mean over those that happened to end
 * well would favour parameters that often fail. Parameters that do not work with one seed do not work.
 * @param runs by seed
 * @param seeds how many there were to be; with fewer runs the sweep was ended before
 */
export function summaryOfSeeds(runs: readonly SeedResult[], seeds: number): SeedSummary {
  const none = { value: null, furtherValues: [], step: null };
  for (const state of ['infeasible', 'failed', 'stopped'] as const) {
    const first = runs.find((run) => run.state === state);
    if (first !== undefined) return { ...none, state, cause: first.cause };
  }
  const values = runs.flatMap(({ value }) => value ?? []);
  if (values.length < seeds) return { ...none, state: 'stopped', cause: null };
  const [first] = runs;
  const isSameStep = runs.every(({ step }) => step === first?.step);
  return {
    state: 'complete',
    value: meanOf(values),
    furtherValues: (first?.furtherValues ?? []).map(
      (_, index) => meanOf(runs.flatMap(({ furtherValues }) => furtherValues[index] ?? [])) ?? 0,
    ),
    step: isSameStep ? (first?.step ?? null) : null,
    cause: null,
  };
}
