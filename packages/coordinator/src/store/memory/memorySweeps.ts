import type { StoredSweeps, SweepChanges } from '../sweeps.ts';
import type { UndoableWriter } from './memoryAlerts.ts';
import type { Memory } from './memoryStore.ts';

/** Writes what a batch changes of sweeps. */
export function writeMemorySweeps(
  { sweeps, sweepTrials }: Memory,
  changes: SweepChanges,
  writer: UndoableWriter,
): void {
  for (const sweep of changes.sweeps) writer.put(sweeps, sweep.id, sweep);
  for (const trial of changes.sweepTrials) writer.put(sweepTrials, `${trial.sweep}/${trial.number}`, trial);
  for (const id of changes.removedSweeps) {
    for (const [key, trial] of sweepTrials) if (trial.sweep === id) writer.remove(sweepTrials, key);
    writer.remove(sweeps, id);
  }
}

export function memorySweepsOf({ sweeps, sweepTrials }: Memory): StoredSweeps {
  return {
    sweeps: [...sweeps.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
    trials: [...sweepTrials.values()].sort((a, b) =>
      a.sweep === b.sweep ? a.number - b.number : a.sweep < b.sweep ? -1 : 1,
    ),
  };
}
