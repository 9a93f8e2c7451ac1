import type { JobId } from '@muster/common/ids';
import type { EvaluationChanges, JobEvaluations } from '../evaluations.ts';
import type { Snapshot } from '../store.ts';
import type { StoredSweep, StoredTrial, SweepChanges } from '../sweeps.ts';
import type { UndoableWriter } from './memoryAlerts.ts';
import type { Memory } from './memoryStore.ts';

export class SweepMemory {
  readonly sweeps = new Map<string, StoredSweep>();
  readonly trials = new Map<string, StoredTrial>();
  readonly evaluations = new Map<JobId, JobEvaluations>();
}

/** Writes what a batch changes of sweeps and evaluations. */
export function writeMemorySweeps(
  { sweeps: { sweeps, trials, evaluations } }: Memory,
  changes: SweepChanges & EvaluationChanges,
  writer: UndoableWriter,
): void {
  for (const sweep of changes.sweeps) writer.put(sweeps, sweep.id, sweep);
  for (const trial of changes.sweepTrials) writer.put(trials, `${trial.sweep}/${trial.number}`, trial);
  for (const id of changes.removedSweeps) {
    for (const [key, trial] of trials) if (trial.sweep === id) writer.remove(trials, key);
    writer.remove(sweeps, id);
  }
  for (const each of changes.evaluations) writer.put(evaluations, each.job, each);
  for (const job of changes.removedEvaluations) writer.remove(evaluations, job);
}

export function memorySweepsOf({
  sweeps: { sweeps, trials, evaluations },
}: Memory): Pick<Snapshot, 'sweeps' | 'evaluations'> {
  return {
    sweeps: {
      sweeps: [...sweeps.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
      trials: [...trials.values()].sort((a, b) =>
        a.sweep === b.sweep ? a.number - b.number : a.sweep < b.sweep ? -1 : 1,
      ),
    },
    evaluations: [...evaluations.values()].sort((a, b) => (a.job < b.job ? -1 : 1)),
  };
}
