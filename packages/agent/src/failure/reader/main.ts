/**
 * Reads why tasks have failed: a process of its own, because what a task writes is not to be trusted, not even with the time
 * that reading it takes. It works on one order after the other and ends with the agent that asked.
 *
 *     failure-reader BUDGET_MS    processor time for one output
 */

import { endProcess } from '@muster/common/endProcess';
import type { ReadAnswer, ReadOrder } from '../failureReaderProcess.ts';
import { OverBudget } from '../outputFindings.ts';
import { readTaskFailure } from '../taskFailure.ts';

const budgetMs = Number(process.argv[2]);

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function carryOut({ id, end, now }: ReadOrder): ReadAnswer {
  const startedAtMs = cpuMs();
  try {
    return { id, failure: readTaskFailure(end, now, () => cpuMs() - startedAtMs >= budgetMs) };
  } catch (error) {
    if (error instanceof OverBudget) return { id, failure: null };
    throw error;
  }
}

process.on('message', (order: ReadOrder) => process.send?.(carryOut(order)));
process.on('disconnect', () => endProcess(0));
