import type { StoredSweep, StoredSweeps, StoredTrial, SweepChanges } from '../sweeps.ts';
import type { UndoableWriter } from './memoryAlerts.ts';
import type { Memory } from './memoryStore.ts';

export class SweepMemory {
  readonly sweeps = new Map<string, StoredSweep>();
  readonly trials = new Map<string, StoredTrial>();
}

/** Writes what a batch changes of sweeps. */
export function writeMemorySweeps(
  { sweeps: { sweeps, trials } }: Memory,
  changes: SweepChanges,
  writer: UndoableWriter,
): void {
  for (const sweep of changes.sweeps) writer.put(sweeps, sweep.id, sweep);
  for (const trial of changes.sweepTrials) writer.put(trials, `${trial.sweep}/${trial.number}`, trial);
  for (const id of changes.removedSweeps) {
    for (const [key, trial] of trials) if (trial.sweep === id) writer.remove(trials, key);
    writer.remove(sweeps, id);
  }
}

export function memorySweepsOf({ sweeps: { sweeps, trials } }: Memory): StoredSweeps {
  return {
    sweeps: [...sweeps.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
    trials: [...trials.values()].sort((a, b) =>
      a.sweep === b.sweep ? a.number - b.number : a.sweep < b.sweep ? -1 : 1,
    ),
  };
}
