/**
 * Stops the jobs of a budget whose GPU-hours are used up, each with its grace to save. Runtimes are those that agents report, as for
 * time limits. A budget is removed once it has no job, no array and no credential.
 */

import { coordinatorPart } from '../caller.ts';
import type { RunningMs } from '../commands/budgets.ts';
import { budgetUse } from '../commands/budgets.ts';
import type { Loop } from '../loop.ts';
import type { Budget, Job } from '../model.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import type { ClusterState } from '../state/state.ts';

const caller = coordinatorPart('budgets');

/** Jobs that one turn stops. Another pass stops the next ones. */
const jobsPerPass = 100;

/** One pass; idempotent. */
export function enforceBudgets(
  state: ClusterState,
  loop: Loop,
  runningMs: RunningMs,
): readonly Promise<void>[] {
  const { budgets } = state.people;
  if (budgets.size === 0) return [];
  const held = new Set([...state.credentials.values()].flatMap(({ scope }) => scope.budget ?? []));
  return [...budgets.values()].flatMap((budget) => {
    const jobs = [...state.budgetJobs.of(budget.id)].flatMap((id) => state.jobs.get(id) ?? []);
    if (jobs.length === 0)
      return held.has(budget.id) || isOfArray(state, budget)
        ? []
        : [loop.run(caller, (draft) => draft.people.removeBudget(budget.id))];
    const { gpuHours: limit } = budget.limits;
    if (limit === null || budgetUse(budget, jobs, runningMs).gpuHours < limit) return [];
    const toStop = jobs.filter(mayBeStopped).slice(0, jobsPerPass);
    if (toStop.length === 0) return [];
    const reason = `the budget of its token is used up: ${limit} GPU-hours (${budget.id})`;
    return [
      loop.run(caller, (draft, nowMs) => {
        for (const { id } of toStop) applyJobEvent(draft, id, { kind: 'stop', reason }, nowMs);
      }),
    ];
  });
}

/** Not while it is being stopped for good already. */
function mayBeStopped({ state }: Job): boolean {
  return state.kind !== 'stopping' || state.outcome.next === 'queued';
}

function isOfArray(state: ClusterState, { id }: Budget): boolean {
  return [...state.arrays.values()].some(({ by }) => by.kind === 'user' && by.budget === id);
}
