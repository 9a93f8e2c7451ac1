/** What has tables of a key and a value: alerts, sweeps, pipelines and evaluations. */
import type { SQLInputValue } from 'node:sqlite';
import type { Batch, Snapshot } from '../store.ts';
import { loadAlerts, writeAlerts } from './sqliteAlerts.ts';
import { loadEvaluations, writeEvaluations } from './sqliteEvaluations.ts';
import { loadPipelines, writePipelines } from './sqlitePipelines.ts';
import { loadSweeps, writeSweeps } from './sqliteSweeps.ts';

/** Writes what a batch changes of them, within its transaction. */
export function writeNamed(
  run: (sql: string, parameters: Record<string, SQLInputValue>) => void,
  batch: Batch,
): void {
  writeAlerts(run, batch);
  writeSweeps(run, batch);
  writePipelines(run, batch);
  writeEvaluations(run, batch);
}

export function loadNamed(
  rows: (sql: string) => { readonly body: string }[],
): Pick<Snapshot, 'alerts' | 'sweeps' | 'pipelines' | 'evaluations'> {
  return {
    alerts: loadAlerts(rows),
    sweeps: loadSweeps(rows),
    pipelines: loadPipelines(rows),
    evaluations: loadEvaluations(rows),
  };
}
