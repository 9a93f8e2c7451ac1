/** Runs of pipelines and their triggers in SQLite. */
import type { SQLInputValue } from 'node:sqlite';
import type { PipelineChanges, StoredPipelines } from '../pipelines.ts';
import {
  deletePipeline,
  deletePipelineSteps,
  deleteTriggerRow,
  selectPipelineSteps,
  selectPipelines,
  selectTriggers,
  upsertPipeline,
  upsertPipelineStep,
  upsertTrigger,
} from '../statements/pipelines.ts';

/** Writes what a batch changes of pipelines, within its transaction. */
export function writePipelines(
  run: (sql: string, parameters: Record<string, SQLInputValue>) => void,
  { pipelines, pipelineSteps, removedPipelines, triggers, removedTriggers }: PipelineChanges,
): void {
  for (const each of pipelines) run(upsertPipeline.sql, upsertPipeline.parameters(each));
  for (const each of pipelineSteps) run(upsertPipelineStep.sql, upsertPipelineStep.parameters(each));
  for (const id of removedPipelines) {
    run(deletePipelineSteps.sql, { id });
    run(deletePipeline.sql, { id });
  }
  for (const each of triggers) run(upsertTrigger.sql, upsertTrigger.parameters(each));
  for (const name of removedTriggers) run(deleteTriggerRow.sql, { name });
}

export function loadPipelines(rows: (sql: string) => { readonly body: string }[]): StoredPipelines {
  return {
    runs: rows(selectPipelines.sql).map(selectPipelines.fromRow),
    steps: rows(selectPipelineSteps.sql).map(selectPipelineSteps.fromRow),
    triggers: rows(selectTriggers.sql).map(selectTriggers.fromRow),
  };
}
