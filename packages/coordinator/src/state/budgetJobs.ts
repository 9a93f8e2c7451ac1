/** Active jobs by the budget that they count in, so that a submit does not look at all jobs. */
import type { JobId } from '@muster/common/ids';
import { isTerminal } from '@muster/common/states';
import type { Job } from '../model.ts';

export class BudgetJobs {
  private readonly jobs = new Map<string, Set<JobId>>();

  /** Takes note of a job as it is now. */
  note({ id, budget, state }: Job): void {
    if (budget === null) return;
    const counted = this.jobs.get(budget) ?? new Set();
    if (isTerminal(state.kind)) counted.delete(id);
    else counted.add(id);
    if (counted.size === 0) this.jobs.delete(budget);
    else this.jobs.set(budget, counted);
  }

  of(budget: string): Iterable<JobId> {
    return this.jobs.get(budget) ?? [];
  }
}

/** GPU-seconds that the attempts of a job have held GPUs for, as far as they have ended. */
export function gpuSecondsOf({ ledger }: Pick<Job, 'ledger'>): number {
  return ledger.reduce((sum, { kind, gpuSeconds }) => (kind === 'queued' ? sum : sum + gpuSeconds), 0);
}
