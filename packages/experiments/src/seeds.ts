/** Trials that run once for each of several seeds: what they come to together. Pure. */

import type { SeedRunView } from '@muster/common/sweeps';

export type SeedRunState = SeedRunView['state'];

/** One run of a trial. */
export interface SeedResult extends Omit<SeedRunView, 'seed' | 'jobId' | 'lost'> {
  /** Which of its metrics were lost. Absent: none. */
  readonly lost?: string;
}

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
  /** Which of the metrics of a run were lost. Absent: none. */
  readonly lost?: string;
}

/**
 * What a trial has come to, none of whose runs is left. It has a value only if each seed has one: a mean over those that happened to end
 * well would favour parameters that often fail. Parameters that do not work with one seed do not work. With lost metrics of one run it is
 * incomplete.
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
  const lost = runs.find((run) => run.lost !== undefined)?.lost;
  const incomplete = runs.find(({ state }) => state === 'incomplete');
  const isPartial = incomplete !== undefined && (values.length < seeds || values.length < runs.length);
  if (isPartial) return { ...none, state: 'incomplete', cause: incomplete.cause, ...lostOf(lost) };
  if (values.length < seeds) return { ...none, state: 'stopped', cause: null };
  const [first] = runs;
  const isSameStep = runs.every(({ step }) => step === first?.step);
  return {
    state: incomplete === undefined ? 'complete' : 'incomplete',
    value: meanOf(values),
    furtherValues: (first?.furtherValues ?? []).map(
      (_, index) => meanOf(runs.flatMap(({ furtherValues }) => furtherValues[index] ?? [])) ?? 0,
    ),
    step: isSameStep ? (first?.step ?? null) : null,
    cause: null,
    ...lostOf(lost),
  };
}

function lostOf(lost: string | undefined): Pick<SeedSummary, 'lost'> {
  return lost === undefined ? {} : { lost };
}
