/** Budgets of tokens: what was used of them, and whether another submit is within them. */
import { MusterError } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import type { BudgetUse } from '@muster/common/people';
import { arraySize } from '@muster/common/spec/array';
import type { JobSpec } from '@muster/common/spec/types';
import { budgetOf, type Caller } from '../caller.ts';
import { gpuCountOf } from '../lifecycle/ledger.ts';
import { type Budget, currentAttempt, type Job, type JobArray } from '../model.ts';
import { gpuSecondsOf } from '../state/budgetJobs.ts';
import type { ClusterState, Draft } from '../state/state.ts';

/** How long the current attempt of a job has run, in milliseconds by the clocks of its nodes. null: unknown. */
export type RunningMs = (jobId: JobId) => number | null;

/** @param jobs those of the budget that have not ended */
export function budgetUse(budget: Budget, jobs: Iterable<Job>, runningMs: RunningMs): BudgetUse {
  let { gpuSeconds } = budget;
  let gpus = 0;
  let count = 0;
  for (const job of jobs) {
    count += 1;
    gpus += gpusOf(job.spec);
    gpuSeconds += gpuSecondsOf(job) + runningGpuSeconds(job, runningMs);
  }
  return { gpuHours: gpuSeconds / 3600, gpus, jobs: count, jobsTotal: budget.jobsTotal };
}

/** What was used of a budget, with what runs now. */
export function budgetUseIn(
  { budgetJobs, jobs }: Pick<ClusterState, 'budgetJobs' | 'jobs'>,
  budget: Budget,
  runningMs: RunningMs,
): BudgetUse {
  const active = [...budgetJobs.of(budget.id)].flatMap((id) => jobs.get(id) ?? []);
  return budgetUse(budget, active, runningMs);
}

function runningGpuSeconds(job: Job, runningMs: RunningMs): number {
  const attempt = currentAttempt(job);
  return attempt === null ? 0 : (gpuCountOf(attempt) * (runningMs(job.id) ?? 0)) / 1000;
}

function gpusOf({ resources: { gpus, nodes } }: JobSpec): number {
  return gpus * nodes;
}

interface Counted {
  readonly spec: JobSpec;
  /** null: it makes what its spec says; else it runs in the place of one job of an array. */
  readonly place: JobArray | null;
  readonly runningMs?: RunningMs;
  /** Absent: that of the caller. */
  readonly budget?: string | null;
}

/**
 * Counts a submit in the budget of its caller, where the caller has one.
 * @throws {MusterError} `resource_exhausted` with what is left and what was asked for, `permission_denied` for a priority, or
 *   `failed_precondition` for a budget that is gone
 */
export function countInBudget(draft: Draft, counted: Counted): void {
  const { spec, place, runningMs = () => null, budget: id = budgetOf(draft.by) } = counted;
  if (id === null) return;
  const budget = draft.people.budget(id);
  if (budget === undefined)
    throw new MusterError(
      'failed_precondition',
      `the budget ${id} is gone, as no token has it any longer: submit this again with another token`,
    );
  const { limits } = budget;
  const jobs = spec.array === null || place !== null ? 1 : arraySize(spec.array);
  const gpus = gpusOf(spec) * jobs;
  // Jobs of its arrays that are not stored yet are counted with the first of them.
  const used = budgetUse(budget, draft.jobsOfBudget(id), runningMs);
  const waiting = notStored(draft, id);
  if (limits.priority !== null && spec.priority > limits.priority)
    throw new MusterError(
      'permission_denied',
      `priority: got ${spec.priority}; the budget of this token allows ${limits.priority} at most`,
    );
  const gpuHours = spec.maxRuntimeMs === null ? null : (gpus * spec.maxRuntimeMs) / 3_600_000;
  requireRoom('GPU-hours in all', limits.gpuHours, used.gpuHours, gpuHours);
  requireRoom('GPUs at a time', limits.gpus, used.gpus + waiting.gpus, gpus);
  requireRoom('jobs at a time', limits.jobs, used.jobs + waiting.jobs, jobs);
  requireRoom('jobs in all', limits.jobsTotal, used.jobsTotal, jobs);
  draft.people.putBudget({ ...budget, jobsTotal: budget.jobsTotal + jobs });
}

/**
 * Whoever has a budget has nothing run that counts in another one, or in none.
 * @param budget of what was submitted before @param what names it
 * @throws {MusterError} `permission_denied`
 */
export function requireBudgetOf(by: Caller, budget: string | null, what: string): void {
  const own = budgetOf(by);
  if (own === null || own === budget) return;
  throw new MusterError(
    'permission_denied',
    `${what} does not count in the budget of this token, and would let it use more than that allows: submit what is needed with ` +
      'this token, or ask for this with another one',
  );
}

/** Jobs of arrays that count in this budget and are not stored yet. */
function notStored({ arrays }: Draft, id: string): Pick<BudgetUse, 'jobs' | 'gpus'> {
  let jobs = 0;
  let gpus = 0;
  for (const { by, size, filled, early, spec } of arrays.every()) {
    if (budgetOf(by) !== id) continue;
    const missing = size - filled - early.size;
    jobs += missing;
    gpus += missing * gpusOf(spec);
  }
  return { jobs, gpus };
}

/** @param asked null: nobody knows, so anything that is left is enough */
function requireRoom(what: string, limit: number | null, used: number, asked: number | null): void {
  if (limit === null) return;
  const left = Math.max(0, limit - used);
  if (asked === null ? left > 0 : asked <= left) return;
  const wants = asked === null ? '' : `${figure(asked)} asked for, `;
  throw new MusterError(
    'resource_exhausted',
    `the budget of this token allows ${figure(limit)} ${what}: ${wants}${figure(left)} left, ${figure(used)} used`,
  );
}

function figure(value: number): string {
  return String(Math.round(value * 100) / 100);
}
