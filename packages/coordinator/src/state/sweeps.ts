/** Sweeps in the state, and what a draft changes of them. */
import type { StoredSweep, StoredSweeps, StoredTrial, SweepChanges } from '../store/sweeps.ts';
import { applyChanges, removedOf } from './committed.ts';
import type { SetUndoably } from './people.ts';

export interface Sweeps {
  readonly sweeps: Map<string, StoredSweep>;
  /** By sweep, then by number; numbers have no gaps. */
  readonly trials: Map<string, StoredTrial[]>;
}

export function sweepsOf({ sweeps, trials }: StoredSweeps): Sweeps {
  return {
    sweeps: new Map(sweeps.map((sweep) => [sweep.id, sweep])),
    trials: Map.groupBy(trials, ({ sweep }) => sweep),
  };
}

export class DraftedSweeps {
  /** null: removed. */
  private readonly sweeps = new Map<string, StoredSweep | null>();
  /** By sweep and number. */
  private readonly trials = new Map<string, StoredTrial>();
  private readonly base: Sweeps;
  private readonly set: SetUndoably;

  constructor(base: Sweeps, set: SetUndoably) {
    this.base = base;
    this.set = set;
  }

  sweep(id: string): StoredSweep | undefined {
    const drafted = this.sweeps.get(id);
    return drafted === undefined ? this.base.sweeps.get(id) : (drafted ?? undefined);
  }

  every(): readonly StoredSweep[] {
    const ids = new Set([...this.base.sweeps.keys(), ...this.sweeps.keys()]);
    return [...ids].flatMap((id) => this.sweep(id) ?? []);
  }

  put(sweep: StoredSweep): void {
    this.set(this.sweeps, sweep.id, sweep);
  }

  remove(id: string): void {
    this.set(this.sweeps, id, null);
  }

  trial(sweep: string, number: number): StoredTrial | undefined {
    return this.trials.get(keyOf(sweep, number)) ?? this.base.trials.get(sweep)?.[number];
  }

  /** Those of a sweep, in the order of their numbers. */
  trialsOf(sweep: string): readonly StoredTrial[] {
    const trials: StoredTrial[] = [];
    for (;;) {
      const next = this.trial(sweep, trials.length);
      if (next === undefined) return trials;
      trials.push(next);
    }
  }

  putTrial(trial: StoredTrial): void {
    this.set(this.trials, keyOf(trial.sweep, trial.number), trial);
  }

  toBatch(): SweepChanges {
    return {
      sweeps: [...this.sweeps.values()].filter((sweep) => sweep !== null),
      sweepTrials: [...this.trials.values()],
      removedSweeps: removedOf(this.sweeps),
    };
  }

  /** After the commit. */
  apply(): void {
    applyChanges(this.base.sweeps, this.sweeps);
    for (const trial of this.trials.values()) {
      const trials = this.base.trials.get(trial.sweep) ?? [];
      trials[trial.number] = trial;
      this.base.trials.set(trial.sweep, trials);
    }
    for (const id of removedOf(this.sweeps)) this.base.trials.delete(id);
  }
}

function keyOf(sweep: string, number: number): string {
  return `${sweep}/${number}`;
}
