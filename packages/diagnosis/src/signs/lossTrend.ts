/**
 * Tells a spike from a divergence. Both begin with a loss far above the usual (see usualLoss.ts). A spike may return by
 * itself, as they do in large runs within some tens of steps, so it is only told; it is a divergence once the loss
 *
 * - has stayed high for 50 steps AND 3 lines: a program that prints every 500 steps prints means of many steps;
 * - and is far above the usual now and in most of these lines, so that a spike on its way back is left alone.
 *
 * The loss has returned once 3 lines in a row are less than half as far above the median as the limit is.
 */
import { type Usual, UsualLoss } from './usualLoss.ts';

const divergenceSteps = 50;
const divergenceRows = 3;
/** Where lines tell no steps: each may stand for any number of them. */
const divergenceRowsWithoutSteps = 20;
const returnedRows = 3;

export type LossSign = 'loss_spike' | 'loss_divergence';

/** Of losses that are too high. */
interface Stretch {
  readonly usual: Usual;
  readonly step: number | null;
  rows: number;
  farRows: number;
  calmRows: number;
  isDivergence: boolean;
}

export class LossTrend {
  private readonly usual = new UsualLoss();
  private stretch: Stretch | null = null;

  /** Whether the newest loss is as it should be. */
  get isCalm(): boolean {
    return this.stretch === null || this.stretch.calmRows > 0;
  }

  /** @param step null: not told */
  loss(loss: number, step: number | null): LossSign | null {
    if (this.stretch !== null) return this.withinStretch(this.stretch, loss, step);
    const usual = this.usual.exceededBy(loss);
    if (usual === null) {
      this.usual.accept(loss);
      return null;
    }
    this.stretch = { usual, step, rows: 1, farRows: 1, calmRows: 0, isDivergence: false };
    return 'loss_spike';
  }

  private withinStretch(stretch: Stretch, loss: number, step: number | null): LossSign | null {
    const { median, limit } = stretch.usual;
    if (loss <= median + (limit - median) / 2) {
      stretch.calmRows += 1;
      this.usual.accept(loss);
      if (stretch.calmRows >= returnedRows) this.stretch = null;
      return null;
    }
    stretch.calmRows = 0;
    stretch.rows += 1;
    if (loss <= limit) return null;
    stretch.farRows += 1;
    if (stretch.isDivergence || !lasts(stretch, step) || stretch.farRows * 2 <= stretch.rows) return null;
    stretch.isDivergence = true;
    return 'loss_divergence';
  }
}

function lasts({ rows, step: since }: Stretch, step: number | null): boolean {
  if (since === null || step === null) return rows >= divergenceRowsWithoutSteps;
  return rows >= divergenceRows && step - since >= divergenceSteps;
}
