/** Evaluations of checkpoints in SQLite. */
import type { SQLInputValue } from 'node:sqlite';
import type { EvaluationChanges, JobEvaluations } from '../evaluations.ts';
import { deleteEvaluations, selectEvaluations, upsertEvaluations } from '../statements/evaluations.ts';

/** Writes what a batch changes of them, within its transaction. */
export function writeEvaluations(
  run: (sql: string, parameters: Record<string, SQLInputValue>) => void,
  { evaluations, removedEvaluations }: EvaluationChanges,
): void {
  for (const each of evaluations) run(upsertEvaluations.sql, upsertEvaluations.parameters(each));
  for (const job of removedEvaluations) run(deleteEvaluations.sql, { job });
}

export function loadEvaluations(
  rows: (sql: string) => { readonly body: string }[],
): readonly JobEvaluations[] {
  return rows(selectEvaluations.sql).map(selectEvaluations.fromRow);
}
