/** Projects, and budgets of tokens, in SQLite. */

import { deleteBudget, selectBudgets, selectProjects, upsertBudget } from '../statements/cluster.ts';
import type { Batch, Snapshot } from '../store.ts';

type ReadBodies = (sql: string) => readonly { readonly body: string }[];

export function loadProjects(read: ReadBodies): Snapshot['projects'] {
  return read(selectProjects.sql).map(selectProjects.fromRow);
}

export function loadBudgets(read: ReadBodies): Snapshot['budgets'] {
  return read(selectBudgets.sql).map(selectBudgets.fromRow);
}

export function writeBudgets(
  write: (sql: string, parameters: Readonly<Record<string, string>>) => void,
  { budgets, removedBudgets }: Pick<Batch, 'budgets' | 'removedBudgets'>,
): void {
  for (const id of removedBudgets) write(deleteBudget.sql, { id });
  for (const budget of budgets) write(upsertBudget.sql, upsertBudget.parameters(budget));
}
