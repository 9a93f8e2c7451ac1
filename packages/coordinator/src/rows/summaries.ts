/** Each metric of a job in short, from one look at its rows. Pure. */
import {
  betterValues,
  type TrainingMetricName,
  type TrainingSummary,
  trainingMetricNames,
  trainingMetrics,
} from '@muster/common/training';
import { pointOf, type rowFilter } from './curve.ts';
import type { Frame } from './rowFormat.ts';

interface Summed {
  readonly name: TrainingMetricName;
  readonly nodeRank: number;
  last: number | null;
  lastStep: number | null;
  firstStep: number | null;
  best: number | null;
  bestStep: number | null;
  rows: number;
  notFinite: number;
  notFiniteStep: number | null;
}

export class Summaries {
  private readonly isIn: ReturnType<typeof rowFilter>;
  /** Of the lowest rank that has printed it by now. */
  private readonly byName = new Map<TrainingMetricName, Summed>();

  constructor(isIn: ReturnType<typeof rowFilter>) {
    this.isIn = isIn;
  }

  take(frame: Frame): void {
    for (const row of frame.rows) {
      if (!this.isIn(frame, row)) continue;
      for (const name of trainingMetricNames) {
        if (row.values[name] === undefined && !(name === 'train_loss' && row.notFinite > 0)) continue;
        const point = pointOf(row, name);
        const summed = point === null ? null : this.of(name, frame.nodeRank);
        if (point === null || summed === null) continue;
        const { step = null, notFinite = 0, bucket, value } = point;
        summed.rows += bucket?.rows ?? 1;
        summed.firstStep ??= bucket?.firstStep ?? step;
        summed.lastStep = step ?? summed.lastStep;
        summed.last = bucket === undefined ? value : bucket.last;
        if (notFinite > 0 && summed.notFinite === 0) summed.notFiniteStep = bucket?.firstStep ?? step;
        summed.notFinite += notFinite;
        this.compare(summed, bucket?.min ?? value, bucket?.max ?? value, step);
      }
    }
  }

  /** In the order in which metrics are listed. */
  get metrics(): readonly TrainingSummary[] {
    return trainingMetricNames.flatMap((name) => {
      const summed = this.byName.get(name);
      if (summed === undefined) return [];
      const { nodeRank: _rank, ...summary } = summed;
      return { ...summary, unit: trainingMetrics[name] };
    });
  }

  private of(name: TrainingMetricName, nodeRank: number): Summed | null {
    const before = this.byName.get(name);
    if (before !== undefined && before.nodeRank < nodeRank) return null;
    if (before !== undefined && before.nodeRank === nodeRank) return before;
    const fresh: Summed = {
      name,
      nodeRank,
      last: null,
      lastStep: null,
      firstStep: null,
      best: null,
      bestStep: null,
      rows: 0,
      notFinite: 0,
      notFiniteStep: null,
    };
    this.byName.set(name, fresh);
    return fresh;
  }

  private compare(summed: Summed, low: number | null, high: number | null, step: number | null): void {
    const better = betterValues[summed.name];
    const value = better === 'low' ? low : high;
    if (better === null || value === null) return;
    const isBetter = summed.best === null || (better === 'low' ? value < summed.best : value > summed.best);
    if (!isBetter) return;
    summed.best = value;
    summed.bestStep = step;
  }
}
