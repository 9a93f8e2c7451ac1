/** Each metric of a job in short, from one look at its rows. Pure. */
import {
  betterValues,
  type TrainingMetricName,
  type TrainingSummary,
  trainingMetricNames,
  trainingMetrics,
} from '@muster/common/training';
import { pointOf, type rowFilter } from './curve.ts';
import type { OmittedOfTask } from './knownRows.ts';
import type { Frame, StoredRow } from './rowFormat.ts';

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
  first: number | null;
  least: number | null;
  leastStep: number | null;
  greatest: number | null;
  greatestStep: number | null;
  mergedPoints: number;
  /** Attempts that show it. */
  readonly attempts: Set<number>;
}

export class Summaries {
  private readonly isIn: ReturnType<typeof rowFilter>;
  private readonly omitted: readonly OmittedOfTask[];
  /** Of the lowest rank that has printed it by now. */
  private readonly byName = new Map<TrainingMetricName, Summed>();

  /** @param omitted what the rows lack */
  constructor(isIn: ReturnType<typeof rowFilter>, omitted: readonly OmittedOfTask[] = []) {
    this.isIn = isIn;
    this.omitted = omitted;
  }

  take(frame: Frame): void {
    for (const row of frame.rows) {
      if (!this.isIn(frame, row)) continue;
      for (const name of trainingMetricNames) {
        if (row.values[name] === undefined && !isNotFinite(row, name)) continue;
        const point = pointOf(row, name);
        const summed = point === null ? null : this.of(name, frame.nodeRank);
        if (point === null || summed === null) continue;
        const { step = null, notFinite = 0, bucket, value } = point;
        summed.attempts.add(frame.attempt);
        if (summed.rows === 0) summed.first = bucket === undefined ? value : null;
        summed.rows += bucket?.rows ?? 1;
        if (bucket !== undefined) summed.mergedPoints += 1;
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
      const { nodeRank, attempts, ...summary } = summed;
      const lacking = this.omitted.flatMap((task) =>
        task.nodeRank === nodeRank && attempts.has(task.attempt) ? (task.values[name] ?? []) : [],
      );
      return {
        ...summary,
        notFinite: lacking.reduce((sum, { notFinite }) => sum + notFinite, summary.notFinite),
        omitted: lacking.reduce((sum, { rows }) => sum + rows, 0),
        unit: trainingMetrics[name],
      };
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
      first: null,
      least: null,
      leastStep: null,
      greatest: null,
      greatestStep: null,
      mergedPoints: 0,
      attempts: new Set(),
    };
    this.byName.set(name, fresh);
    return fresh;
  }

  private compare(summed: Summed, low: number | null, high: number | null, step: number | null): void {
    if (low !== null && (summed.least === null || low < summed.least)) {
      summed.least = low;
      summed.leastStep = step;
    }
    if (high !== null && (summed.greatest === null || high > summed.greatest)) {
      summed.greatest = high;
      summed.greatestStep = step;
    }
    const better = betterValues[summed.name];
    if (better === null) return;
    summed.best = better === 'low' ? summed.least : summed.greatest;
    summed.bestStep = better === 'low' ? summed.leastStep : summed.greatestStep;
  }
}

function isNotFinite({ notFinite, alsoNotFinite }: StoredRow, name: TrainingMetricName): boolean {
  return name === 'train_loss' ? notFinite > 0 : (alsoNotFinite?.includes(name) ?? false);
}
