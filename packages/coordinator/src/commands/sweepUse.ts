/** What a sweep has used of its budget: of jobs that have ended as it was booked, of those that run up to now. */
import type { JobId } from '@muster/common/ids';
import { formatDuration } from '@muster/common/spec/duration';
import type { SweepBudget } from '@muster/experiments/file/budget';
import { gpuCountOf } from '../lifecycle/ledger.ts';
import { type Attempt, currentAttempt } from '../model.ts';
import { gpuSecondsOf } from '../state/budgetJobs.ts';
import type { ClusterState } from '../state/state.ts';
import { openJobsOf } from '../state/trialJobs.ts';
import type { JobRecord, Store } from '../store/store.ts';
import type { StoredSweep, StoredTrial, TrialUse } from '../store/sweeps.ts';
import type { RunningMs } from './budgets.ts';

export interface SweepUseParts {
  readonly state: Pick<ClusterState, 'jobs'>;
  readonly store: Pick<Store, 'readJob'>;
  readonly runningMs: RunningMs;
  /** USD at the prices of the coordinator. null: unknown. */
  readonly costOf: (attempts: readonly Attempt[]) => number | null;
  readonly wallMs: () => number;
}

/** What a trial has used when one of its jobs has ended. Of a job that retention has removed nothing is known. */
export function useAfter(
  { used = nothingUsed }: Pick<StoredTrial, 'used'>,
  record: JobRecord | null,
  costOf: SweepUseParts['costOf'],
): TrialUse {
  if (record === null) return used;
  const { job, attempts } = record;
  return sumOfUse(used, { gpuSeconds: gpuSecondsOf(job), usd: costOf(attempts) ?? 0 });
}

const nothingUsed: TrialUse = { gpuSeconds: 0, usd: 0 };

export function sumOfUse(a: TrialUse = nothingUsed, b: TrialUse = nothingUsed): TrialUse {
  return { gpuSeconds: a.gpuSeconds + b.gpuSeconds, usd: a.usd + b.usd };
}

/** @returns the limit that is reached, in words; null: none is */
export async function usedUp(
  parts: SweepUseParts,
  budget: SweepBudget,
  { createdAtMs }: Pick<StoredSweep, 'createdAtMs'>,
  trials: readonly StoredTrial[],
): Promise<string | null> {
  const total = await useOfTrials(parts, trials, budget.usd !== null);
  return limitReached(budget, { ...total, wallClockMs: parts.wallMs() - createdAtMs });
}

/** @param isPriced whether money counts, for which the store may be read; else it is that of jobs that have ended */
export async function useOfTrials(
  parts: SweepUseParts,
  trials: readonly StoredTrial[],
  isPriced: boolean,
): Promise<TrialUse> {
  let total = nothingUsed;
  for (const trial of trials) {
    total = sumOfUse(total, trial.used);
    for (const jobId of openJobsOf(trial))
      total = sumOfUse(total, await useOfRunning(parts, isPriced, jobId));
  }
  return total;
}

async function useOfRunning(
  { state, store, runningMs, costOf }: SweepUseParts,
  isPriced: boolean,
  jobId: JobId,
): Promise<TrialUse> {
  const job = state.jobs.get(jobId);
  if (job === undefined) return nothingUsed;
  const attempt = currentAttempt(job);
  const held = attempt === null ? 0 : (gpuCountOf(attempt) * (runningMs(jobId) ?? 0)) / 1000;
  const gpuSeconds = gpuSecondsOf(job) + held;
  if (!isPriced) return { gpuSeconds, usd: 0 };
  // Attempts before the current one are in the store alone.
  const attempts = job.lastAttempt > 1 ? (await store.readJob(jobId))?.attempts : undefined;
  return { gpuSeconds, usd: costOf(attempts ?? (attempt === null ? [] : [attempt])) ?? 0 };
}

export function limitReached(
  budget: SweepBudget,
  { gpuSeconds, usd, wallClockMs }: TrialUse & { readonly wallClockMs: number },
): string | null {
  const hours = gpuSeconds / 3600;
  if (budget.gpuHours !== null && hours >= budget.gpuHours)
    return `the budget of ${figureOf(budget.gpuHours)} GPU-hours is used up: ${figureOf(hours)}`;
  if (budget.usd !== null && usd >= budget.usd)
    return `the budget of ${figureOf(budget.usd)} USD is used up: ${figureOf(usd)}`;
  if (budget.wallClockMs !== null && wallClockMs >= budget.wallClockMs)
    return `the budget of ${formatDuration(budget.wallClockMs)} of wall clock is used up`;
  return null;
}

function figureOf(value: number): string {
  return String(Number(value.toPrecision(4)));
}
