import type { PipelineChanges, StoredPipeline, StoredPipelineStep, StoredPipelines } from '../pipelines.ts';
import type { StoredTrigger } from '../triggers.ts';
import type { UndoableWriter } from './memoryAlerts.ts';
import type { Memory } from './memoryStore.ts';

export class PipelineMemory {
  readonly runs = new Map<string, StoredPipeline>();
  readonly steps = new Map<string, StoredPipelineStep>();
  readonly triggers = new Map<string, StoredTrigger>();
}

/** Writes what a batch changes of pipelines. */
export function writeMemoryPipelines(
  { pipelines: { runs, steps, triggers } }: Memory,
  changes: PipelineChanges,
  writer: UndoableWriter,
): void {
  for (const run of changes.pipelines) writer.put(runs, run.id, run);
  for (const step of changes.pipelineSteps) writer.put(steps, `${step.run}/${step.step}/${step.index}`, step);
  for (const id of changes.removedPipelines) {
    for (const [key, step] of steps) if (step.run === id) writer.remove(steps, key);
    writer.remove(runs, id);
  }
  for (const trigger of changes.triggers) writer.put(triggers, trigger.name, trigger);
  for (const name of changes.removedTriggers) writer.remove(triggers, name);
}

export function memoryPipelinesOf({ pipelines: { runs, steps, triggers } }: Memory): StoredPipelines {
  const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  return {
    runs: [...runs.values()].sort((a, b) => order(a.id, b.id)),
    steps: [...steps.values()].sort(
      (a, b) => order(a.run, b.run) || order(a.step, b.step) || a.index - b.index,
    ),
    triggers: [...triggers.values()].sort((a, b) => order(a.name, b.name)),
  };
}
