/**
 * What a token with a budget submits stays within it: no submit is taken that is beyond it, and what runs is stopped soon after its
 * GPU-hours are used up.
 */

import { taskKey } from '@muster/common/ids';
import type { TokenBudget } from '@muster/common/people';
import { isTerminal, type JobStateKind } from '@muster/common/states';
import type { StoredEvent } from '@muster/coordinator/model';
import type { Fact } from '../history.ts';
import type { JobStories } from './jobStories.ts';
import type { Verdict } from './verdict.ts';

/** For a report, a stop with its grace, and an agent that is away for a moment. */
const stopWithinMs = 60_000;
const roundingS = 0.01;

interface Account {
  readonly limits: TokenBudget;
  readonly active: Set<string>;
  jobsTotal: number;
  /** Of attempts that have ended, as they are booked. */
  gpuSeconds: number;
  /** World time since when what has run is more than the budget and something runs. null: it is not. */
  overSinceMs: number | null;
}

interface Held {
  gpus: number;
  /** Wall clock of the allocation. */
  sinceMs: number;
}

export class TokenBudgetCheck {
  private readonly accounts = new Map<string, Account>();
  private readonly accountOf = new Map<string, Account>();
  private readonly held = new Map<string, Held>();
  /** Tasks that run, by world time. */
  private readonly running = new Map<
    string,
    { readonly job: string; readonly gpus: number; readonly sinceMs: number }
  >();
  private isQuiet = false;
  private readonly verdict: Verdict;
  private readonly stories: JobStories;

  constructor(verdict: Verdict, stories: JobStories) {
    this.verdict = verdict;
    this.stories = stories;
  }

  see(fact: Fact, nowMs: number): void {
    if (fact.kind === 'phase') this.isQuiet = fact.phase !== 'faults';
    else if (fact.kind === 'tokenIssued')
      this.accounts.set(fact.id, {
        limits: fact.budget,
        active: new Set(),
        jobsTotal: 0,
        gpuSeconds: 0,
        overSinceMs: null,
      });
    else if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event);
    else if (fact.kind === 'started')
      this.running.set(taskKey(fact.task), {
        job: fact.task.jobId,
        gpus: fact.gpuUuids.length,
        sinceMs: nowMs,
      });
    else if (fact.kind === 'ended') this.running.delete(taskKey(fact.task));
  }

  /** To be called every second or so. */
  look(nowMs: number): void {
    for (const account of this.accounts.values()) {
      const { limits } = account;
      const tasks = [...this.running.values()].filter(({ job }) => this.accountOf.get(job) === account);
      const now = tasks.reduce((sum, { gpus, sinceMs }) => sum + (gpus * (nowMs - sinceMs)) / 1_000, 0);
      const used = account.gpuSeconds + now;
      const isOver = limits.gpuHours !== null && used > limits.gpuHours * 3_600 && tasks.length > 0;
      account.overSinceMs = isOver && this.isQuiet ? (account.overSinceMs ?? nowMs) : null;
      const overMs = nowMs - (account.overSinceMs ?? nowMs);
      const what = () =>
        `${tasks.map(({ job }) => job).join(', ')} still run ${overMs} ms after their budget was used up`;
      this.verdict.require(overMs <= stopWithinMs, 'budget', what);
    }
  }

  private onEvent({ kind, subject, by, data, timeMs }: StoredEvent): void {
    const own = kind === 'job.submitted' ? this.accounts.get(by) : undefined;
    if (own !== undefined) this.onSubmitted(own, subject);
    const account = this.accountOf.get(subject);
    if (account === undefined) return;
    if (isTerminal(kind.replace('job.', '') as JobStateKind)) account.active.delete(subject);
    if (kind === 'attempt.ended') {
      const { gpus, sinceMs } = this.held.get(subject) ?? { gpus: 0, sinceMs: 0 };
      account.gpuSeconds += (gpus * Math.max(0, Number(data['endedAtMs']) - sinceMs)) / 1_000;
    } else if (kind === 'attempt.allocated') {
      const tasks = data['tasks'] as { gpuUuids: unknown[] }[];
      this.held.set(subject, {
        gpus: tasks.reduce((sum, { gpuUuids }) => sum + gpuUuids.length, 0),
        sinceMs: timeMs,
      });
    }
  }

  private onSubmitted(account: Account, job: string): void {
    const { limits, active } = account;
    this.accountOf.set(job, account);
    active.add(job);
    account.jobsTotal += 1;
    const gpus = [...active].reduce((sum, each) => sum + this.gpusOf(each), 0);
    const within = (limit: number | null, used: number, of: string) =>
      this.verdict.require(
        limit === null || used <= limit,
        'budget',
        () => `${job} was taken: ${used} ${of}, and the budget of its token allows ${limit}`,
      );
    within(limits.gpus, gpus, 'GPUs at a time');
    within(limits.jobs, active.size, 'jobs at a time');
    within(limits.jobsTotal, account.jobsTotal, 'jobs');
    within(limits.priority, this.stories.of(job)?.file?.priority ?? 50, 'is its priority');
    if (limits.gpuHours !== null)
      within(limits.gpuHours * 3_600 + roundingS, account.gpuSeconds, 'GPU-seconds');
  }

  private gpusOf(job: string): number {
    const { nodes, gpus } = this.stories.of(job)?.file?.resources ?? {};
    return Number(nodes ?? 1) * (gpus ?? 0);
  }
}
