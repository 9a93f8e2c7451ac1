/** Programs that submit with tokens that have a budget, faster than it allows. */
import type { TokenBudget } from '@muster/common/people';
import type { JobSpecFile } from '@muster/common/spec/types';
import { CallError, type Client } from './client.ts';
import { plainProgram } from './machine.ts';
import type { Random } from './random.ts';
import type { Timeline } from './timeline.ts';
import type { Workload } from './workload.ts';

const meanPauseMs = 1_500;
/** Until the budget is used up. */
const longMs = 300_000;

export interface BudgetedParts {
  readonly client: Client;
  readonly random: Random;
  readonly timeline: Timeline;
  readonly workload: Workload;
  /** GPUs of each machine. */
  readonly gpus: readonly number[];
}

/** @param user its name */
export async function submitWithinBudget(parts: BudgetedParts, user: string, untilMs: number): Promise<void> {
  const { client, random, timeline } = parts;
  const budget: TokenBudget = {
    gpuHours: random.chance(0.6) ? random.between(5, 40) / 3_600 : null,
    gpus: random.chance(0.7) ? random.between(1, 4) : null,
    jobs: random.chance(0.5) ? random.between(1, 3) : null,
    jobsTotal: random.chance(0.5) ? random.between(3, 12) : null,
    priority: 50,
  };
  const token = await persistently(client, () => client.issueToken(user, budget));
  if (token === null) return;
  for (let count = 1; timeline.nowMs < untilMs; count += 1) {
    await client.pause(random.waitMs(meanPauseMs));
    // Some at once: of two that take the last place, one is refused.
    const some = Array.from({ length: random.between(1, 3) }, (_, index) =>
      submit(parts, `${user}-${count}-${index}`, token, budget),
    );
    await Promise.all(some);
  }
}

async function submit(
  { client, random, workload, gpus }: BudgetedParts,
  name: string,
  token: string,
  budget: TokenBudget,
): Promise<void> {
  const isLong = budget.gpuHours !== null && random.chance(0.3);
  const program = plainProgram(isLong ? longMs : random.between(100, 4_000));
  const wanted = { nodes: 1, gpus: random.between(isLong ? 1 : 0, Math.max(...gpus)) };
  const file: JobSpecFile = {
    name,
    command: ['simulate', JSON.stringify(program)],
    resources: wanted,
    priority: random.pick([0, 50, 50, 100]),
    stop_grace: '1s',
  };
  workload.submissions.set(name, { name, requestId: name, file, program, ...wanted, budget });
  workload.callsUnderway += 1;
  const ids = await persistently(client, () => client.submit(name, file, 0, token));
  for (const id of ids ?? []) workload.acknowledged.add(id);
  workload.callsUnderway -= 1;
}

/** @returns null: it was refused */
async function persistently<T>(client: Client, call: () => Promise<T>): Promise<T | null> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      if (!error.isUnanswered) return null;
    }
    await client.pause(300);
  }
}
