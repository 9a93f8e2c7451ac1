/** Sweeps in SQLite. */
import type { SQLInputValue } from 'node:sqlite';
import {
  deleteSweep,
  deleteTrials,
  selectSweeps,
  selectTrials,
  upsertSweep,
  upsertTrial,
} from '../statements/sweeps.ts';
import type { StoredSweeps, SweepChanges } from '../sweeps.ts';

/** Writes what a batch changes of sweeps, within its transaction. */
export function writeSweeps(
  run: (sql: string, parameters: Record<string, SQLInputValue>) => void,
  { sweeps, sweepTrials, removedSweeps }: SweepChanges,
): void {
  for (const sweep of sweeps) run(upsertSweep.sql, upsertSweep.parameters(sweep));
  for (const trial of sweepTrials) run(upsertTrial.sql, upsertTrial.parameters(trial));
  for (const id of removedSweeps) {
    run(deleteTrials.sql, { id });
    run(deleteSweep.sql, { id });
  }
}

export function loadSweeps(rows: (sql: string) => { readonly body: string }[]): StoredSweeps {
  return {
    sweeps: rows(selectSweeps.sql).map(selectSweeps.fromRow),
    trials: rows(selectTrials.sql).map(selectTrials.fromRow),
  };
}
