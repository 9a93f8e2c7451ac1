/** Between the wire and the parts of rows of metrics that are not a field of one value: counts, and metrics that are not finite. */
import type { ValueCount__Output, ValueCount as WireCount } from '../gen/muster/v1/ValueCount.ts';
import { isTrainingMetricName, type TrainingMetricName, trainingMetricNames } from '../training.ts';
import type { ValueCount, ValueCounts } from '../valueCounts.ts';

/** Numbers of the fields of TrainingRow. */
const fieldNumbers: Readonly<Record<TrainingMetricName, number>> = {
  step: 4,
  train_loss: 5,
  eval_loss: 6,
  learning_rate: 7,
  grad_norm: 8,
  epoch: 9,
  step_seconds: 10,
  tokens_per_second: 11,
  samples_per_second: 12,
  tokens: 13,
};

/** @returns a bit for each metric, by the number of its field */
export function metricBits(names: readonly TrainingMetricName[]): number {
  return names.reduce((bits, name) => bits | (1 << fieldNumbers[name]), 0);
}

/** The metrics of `metricBits`, without those that this version does not know. */
export function metricsOfBits(bits: number): readonly TrainingMetricName[] {
  return trainingMetricNames.filter((name) => (bits & (1 << fieldNumbers[name])) !== 0);
}

/** More values than any program prints: larger numbers could not be added up exactly. */
const countMax = 2 ** 50;

export function valueCountsToWire(counts: ValueCounts): WireCount[] {
  return Object.entries(counts).map(([metric, count]) => ({ metric, ...count }));
}

/** Counts of the metrics that this version knows. */
export function valueCountsFromWire(wire: readonly ValueCount__Output[]): ValueCounts {
  const counts: Partial<Record<TrainingMetricName, ValueCount>> = {};
  for (const { metric, rows, notFinite } of wire) {
    if (!isTrainingMetricName(metric)) continue;
    const all = Math.min(countMax, rows);
    counts[metric] = { rows: all, notFinite: Math.min(all, notFinite) };
  }
  return counts;
}
