/**
 * The newest lines of metrics of a task by their steps, to attach to a checkpoint what the program printed around then:
 * a checkpoint is verified some time after it was saved, when training is already further on.
 */
import type { TrainingValues } from '@muster/common/training';

/** At ten steps a second, what is read in the minutes that verifying a large checkpoint takes. */
const rowsMax = 4_096;
/** Evaluations are far rarer than steps, and would be pushed out by them. */
const evaluationsMax = 256;

interface Row {
  readonly step: number;
  readonly values: TrainingValues;
}

export class RecentRows {
  private readonly rows = new Ring<Row>(rowsMax);
  private readonly evaluations = new Ring<Row>(evaluationsMax);
  private newestStep: number | null = null;

  /** A line without a step belongs to that of the line before it: evaluations often have none. */
  add(values: TrainingValues): void {
    const step = values.step ?? this.newestStep;
    if (step === null) return;
    // The program has resumed from an earlier checkpoint: what it had printed of later steps no longer holds.
    if (this.newestStep !== null && step < this.newestStep) this.dropAfter(step);
    this.newestStep = step;
    const row = { step, values };
    this.rows.add(row);
    if (values.eval_loss !== undefined) this.evaluations.add(row);
  }

  /**
   * @param step null: the newest
   * @returns the values of the nearest step at or before it, and the newest loss of an evaluation by then; {}: there are none
   */
  at(step: number | null): TrainingValues {
    const limit = step ?? Number.POSITIVE_INFINITY;
    const nearest = this.rows.newest((row) => row.step <= limit)?.step;
    if (nearest === undefined) return {};
    const evaluation = this.evaluations.newest((row) => row.step <= limit)?.values.eval_loss;
    const values = this.rows.all().filter((row) => row.step === nearest);
    return Object.assign(
      {},
      evaluation === undefined ? {} : { eval_loss: evaluation },
      ...values.map((row) => row.values),
      { step: nearest },
    );
  }

  private dropAfter(step: number): void {
    this.rows.keep((row) => row.step <= step);
    this.evaluations.keep((row) => row.step <= step);
  }
}

/** The newest of a kind, oldest first. */
class Ring<T> {
  private items: T[] = [];
  private readonly max: number;

  constructor(max: number) {
    this.max = max;
  }

  add(item: T): void {
    this.items.push(item);
    // Seldom and many at a time: to move all of them for each new one would cost more than to keep twice as many.
    if (this.items.length >= 2 * this.max) this.items = this.items.slice(-this.max);
  }

  newest(fits: (item: T) => boolean): T | undefined {
    return this.items.findLast(fits);
  }

  all(): readonly T[] {
    return this.items;
  }

  keep(fits: (item: T) => boolean): void {
    this.items = this.items.filter(fits);
  }
}
