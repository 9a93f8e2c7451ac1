/**
 * Stops the jobs of a budget whose GPU-hours are used up, each with its grace to save. Runtimes are those that agents report, as for
 * time limits. A budget is removed once no credential has it and nothing that counts in it may run or submit.
 */

import { hasPipelineEnded } from '@muster/common/pipelines';
import { hasSweepEnded } from '@muster/common/sweeps';
import { budgetOf, coordinatorPart } from '../caller.ts';
import type { RunningMs } from '../commands/budgets.ts';
import { budgetUse } from '../commands/budgets.ts';
import type { Loop } from '../loop.ts';
import type { Budget, Job } from '../model.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { type ClusterState, Draft } from '../state/state.ts';

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
  const used = usedBudgets(new Draft(state));
  return [...budgets.values()].flatMap((budget) => {
    const jobs = [...state.budgetJobs.of(budget.id)].flatMap((id) => state.jobs.get(id) ?? []);
    if (jobs.length === 0)
      return isStillUsed(used, budget)
        ? []
        : [loop.run(caller, (draft) => removeUnusedBudget(draft, budget))];
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

/** An earlier command of the same turn may have let something of it continue. */
function removeUnusedBudget(draft: Draft, budget: Budget): void {
  if (draft.jobsOfBudget(budget.id).length === 0 && !isStillUsed(usedBudgets(draft), budget))
    draft.people.removeBudget(budget.id);
}

interface UsedBudgets {
  readonly ids: ReadonlySet<string | null>;
  /** Evaluations wait, of which it is unknown in which budget they will count: their jobs may have ended. */
  readonly isUnknown: boolean;
}

function isStillUsed({ ids, isUnknown }: UsedBudgets, { id }: Budget): boolean {
  return isUnknown || ids.has(id);
}

/** Those that a credential has, or in which jobs may still be submitted that were promised before. */
function usedBudgets(draft: Draft): UsedBudgets {
  const submitters = [
    ...draft.arrays.every(),
    ...draft.sweeps.every().filter(({ state }) => !hasSweepEnded(state)),
    ...draft.pipelines.every().filter(({ state }) => !hasPipelineEnded(state)),
    ...draft.pipelines.everyTrigger(),
  ];
  const ids = new Set([
    ...draft.everyCredential().map(({ scope }) => scope.budget),
    ...submitters.map(({ by }) => budgetOf(by)),
  ]);
  return { ids, isUnknown: draft.evaluations.hasWaiting() };
}
