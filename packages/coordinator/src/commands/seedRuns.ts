/** Commands of the runner about trials that run once for each of several seeds. */
import { clusterSubject } from '@muster/common/eventKinds';
import type { RandomBytes } from '@muster/common/ids';
import { needsMoreSeeds, summaryOfSeeds } from '@muster/experiments/seeds';
import type { Job } from '../model.ts';
import type { Draft } from '../state/state.ts';
import { openJobsOf, ranWith, startedSeedRun } from '../state/trialJobs.ts';
import type { SeedRun, StoredSweep, StoredTrial, TrialUse } from '../store/sweeps.ts';
import { addTrialJob, dataOf, type TrialJob } from './sweeps.ts';
import { sumOfUse } from './sweepUse.ts';

type TrialKey = Pick<StoredTrial, 'sweep' | 'number'>;

export interface NewSeedRun extends TrialKey, Pick<TrialJob, 'spec' | 'runningMs'> {
  readonly seed: number;
  /** How many the trial will have. */
  readonly seeds: number;
}

/**
 * Stores a further seed of a trial and its job in one commit. One that is there already, or that the trial no longer needs, is not started.
 * @throws {MusterError} as a submit of its job
 */
export function startSeedRun(
  draft: Draft,
  { sweep: id, number, seed, seeds, spec, runningMs }: NewSeedRun,
  random: RandomBytes,
  nowMs: number,
): void {
  const sweep = draft.sweeps.sweep(id);
  const trial = draft.sweeps.trial(id, number);
  if (sweep?.state !== 'running' || trial?.state !== 'running') return;
  const { seedRuns } = trial;
  if (seedRuns?.length !== seed || !needsMoreSeeds(seedRuns, seeds)) return;
  const jobId = addTrialJob(draft, sweep, { spec, runningMs, inherited: {} }, random, nowMs);
  draft.sweeps.putTrial({ ...trial, seedRuns: [...seedRuns, startedSeedRun(seed, jobId)] });
}

export interface SeedRunEnd extends Omit<SeedRun, 'seed'> {
  /** By that job. */
  readonly used: TrialUse;
  /** That job, as it has ended. null: retention has removed it. */
  readonly job: Pick<Job, 'spec' | 'batchScale' | 'lrScale'> | null;
  /** How many the trial will have. */
  readonly seeds: number;
}

/** Once. The last one that the trial waits for ends the trial, in the same commit. */
export function endSeedRun(
  draft: Draft,
  { sweep: id, number }: TrialKey,
  { used, job, seeds, ...end }: SeedRunEnd,
  nowMs: number,
): void {
  const sweep = draft.sweeps.sweep(id);
  const trial = draft.sweeps.trial(id, number);
  const run = trial?.seedRuns?.find(({ jobId }) => jobId === end.jobId);
  if (sweep === undefined || trial?.state !== 'running' || run?.state !== 'running') return;
  const seedRuns = (trial.seedRuns ?? []).map((each) => (each === run ? { ...each, ...end } : each));
  const ran = job === null ? {} : ranWith(trial, job);
  const after = { ...trial, ...ran, seedRuns, used: sumOfUse(trial.used, used) };
  const waits = openJobsOf(after).length > 0 || needsMoreSeeds(seedRuns, seeds);
  if (waits) draft.sweeps.putTrial(after);
  else closeTrial(draft, sweep, after, seeds, nowMs);
}

/** Of those that none of their jobs runs of: they get no further seed. */
export function closeTrials(
  draft: Draft,
  id: string,
  { numbers, seeds }: { readonly numbers: readonly number[]; readonly seeds: number },
  nowMs: number,
): void {
  const sweep = draft.sweeps.sweep(id);
  if (sweep === undefined) return;
  for (const number of numbers) {
    const trial = draft.sweeps.trial(id, number);
    if (trial?.state === 'running' && openJobsOf(trial).length === 0)
      closeTrial(draft, sweep, trial, seeds, nowMs);
  }
}

function closeTrial(
  draft: Draft,
  sweep: StoredSweep,
  trial: StoredTrial,
  seeds: number,
  nowMs: number,
): void {
  const { furtherValues, ...summary } = summaryOfSeeds(trial.seedRuns ?? [], seeds);
  const further = furtherValues.length === 0 ? {} : { furtherValues };
  draft.sweeps.putTrial({ ...trial, ...summary, ...further, endedAtMs: nowMs });
  const { state, value, step, cause, lost = null } = summary;
  const { number, jobId } = trial;
  const data = { ...dataOf(sweep), trial: number, jobId, state, value, step, cause, lost };
  draft.emit({ kind: 'sweep.trial_ended', subject: clusterSubject, data }, nowMs);
}
