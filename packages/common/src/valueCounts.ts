/** How many values of each metric the lines of a task have: the sum by which it is known what was omitted on the way. */
import { type TrainingMetricName, type TrainingRow, trainingMetricNames } from './training.ts';

/** Values of one metric. */
export interface ValueCount {
  /** Lines that show it, those whose value is not a finite number included. */
  readonly rows: number;
  readonly notFinite: number;
}

/** Metric → its values. A metric without values is absent. */
export type ValueCounts = Readonly<Partial<Record<TrainingMetricName, ValueCount>>>;

const lossIndex = trainingMetricNames.indexOf('train_loss');

export class ValueTally {
  private readonly rows = new Float64Array(trainingMetricNames.length);
  private readonly notFinite = new Float64Array(trainingMetricNames.length);

  constructor(start: ValueCounts = {}) {
    this.addAll(start);
  }

  /** Counts the values of one line. */
  addRow({ values, lossNotFinite, alsoNotFinite }: Omit<TrainingRow, 'position' | 'atMs'>): void {
    for (let index = 0; index < trainingMetricNames.length; index += 1)
      if (values[trainingMetricNames[index] as TrainingMetricName] !== undefined) this.add(index, 1, 0);
    if (lossNotFinite) this.add(lossIndex, 1, 1);
    for (const name of alsoNotFinite ?? []) this.add(trainingMetricNames.indexOf(name), 1, 1);
  }

  /** @param index of the metric in `trainingMetricNames` */
  add(index: number, rows: number, notFinite: number): void {
    this.rows[index] = (this.rows[index] ?? 0) + rows;
    this.notFinite[index] = (this.notFinite[index] ?? 0) + notFinite;
  }

  addAll(counts: ValueCounts): void {
    for (const [index, name] of trainingMetricNames.entries()) {
      const count = counts[name];
      if (count !== undefined) this.add(index, count.rows, count.notFinite);
    }
  }

  /** Raises each count to at least that of `counts`. */
  raiseTo(counts: ValueCounts): void {
    for (const [index, name] of trainingMetricNames.entries()) {
      const { rows = 0, notFinite = 0 } = counts[name] ?? {};
      this.rows[index] = Math.max(this.rows[index] ?? 0, rows);
      this.notFinite[index] = Math.max(this.notFinite[index] ?? 0, notFinite);
    }
  }

  get counts(): ValueCounts {
    const counts: Partial<Record<TrainingMetricName, ValueCount>> = {};
    for (const [index, name] of trainingMetricNames.entries()) {
      const [rows = 0, notFinite = 0] = [this.rows[index], this.notFinite[index]];
      if (rows > 0 || notFinite > 0) counts[name] = { rows, notFinite };
    }
    return counts;
  }
}

/** @returns what `counts` has more than `others`, never less than nothing */
export function excessOf(counts: ValueCounts, others: ValueCounts): ValueCounts {
  const tally = new ValueTally();
  for (const [index, name] of trainingMetricNames.entries()) {
    const [all, less] = [counts[name], others[name]];
    if (all === undefined) continue;
    const rows = Math.max(0, all.rows - (less?.rows ?? 0));
    tally.add(index, rows, Math.min(rows, Math.max(0, all.notFinite - (less?.notFinite ?? 0))));
  }
  return tally.counts;
}

/** @returns values of all metrics together */
export function valuesIn(counts: ValueCounts): number {
  return Object.values(counts).reduce((sum, { rows }) => sum + rows, 0);
}
