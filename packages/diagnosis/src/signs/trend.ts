/**
 * Notices trouble of a training while it runs: a loss that is no number, that explodes, or that jumps, and a loss scale
 * that is exhausted. Each kind is reported once per stretch of trouble.
 */
import type { TrainingSign, TrainingSignKind } from '@muster/common/training';
import type { Line } from '../model.ts';
import { hasNaNLoss } from '../progress/canonical.ts';
import type { ProgressRow } from '../progress/progressReader.ts';
import { LossTrend } from './lossTrend.ts';
import { Overflows } from './overflow.ts';

/** This many good lines of metrics in a row end a stretch: trouble that comes and goes is one trouble. */
const goodRowsMin = 10;
/**
 * A norm that is no number beside a good loss is how a loss scale that was too high shows, once in a while; so often in a
 * row, it is the gradients.
 */
const badNormsMax = 3;
/** The step of a line may be a little lower than the newest one. A step that is lower by more shows a restarted program. */
const rewindSteps = 50;
const textMax = 500;

/** One of these is in every line that reports trouble and is no line of metrics. */
const troubleMark = /oss scale|NaN in/;
const nanText = /found NaN in (?:local )?(?:forward|grad|loss)/i;

type Place = Pick<TrainingSign, 'text' | 'line' | 'rank' | 'step'>;

export class TrendWatch {
  private trend = new LossTrend();
  private overflows = new Overflows();
  private badNorms = 0;
  /** Where the first of these norms was. */
  private badNormAt: Place | null = null;
  private goodRows = 0;
  private reported = new Set<TrainingSignKind>();
  private newestStep: number | null = null;
  private lastGoodStep: number | null = null;
  /** As it was when the present jump of the loss began. */
  private goodBeforeJump: number | null = null;

  /** A line that is no line of metrics. */
  line({ text, number, rank }: Line): readonly TrainingSign[] {
    if (!troubleMark.test(text)) return [];
    const kind = this.overflows.line(text) ? 'loss_scale_exhausted' : nanText.test(text) ? 'nan_loss' : null;
    return kind === null ? [] : this.report(kind, { text, line: number, rank, step: this.newestStep });
  }

  row(row: ProgressRow): readonly TrainingSign[] {
    const step = row.canonical.step ?? null;
    this.rewind(step);
    if (step !== null) this.newestStep = step;
    const place = { text: row.text, line: row.line, rank: row.rank, step };
    if (this.isNaN(row, place)) return this.report('nan_loss', this.badNormAt ?? place);
    if (isSkipped(row)) {
      const isExhausted = this.overflows.skipped(numberOf(row.values['loss_scale']));
      return isExhausted ? this.report('loss_scale_exhausted', place) : [];
    }
    const loss = row.canonical.train_loss;
    if (loss === undefined) return [];
    this.overflows.end();
    const sign = isPolicyLoss(row) ? null : this.trend.loss(loss, step);
    if (sign === 'loss_spike') this.goodBeforeJump = this.lastGoodStep;
    if (this.trend.isCalm && this.badNorms === 0) this.good(step);
    return sign === null ? [] : this.report(sign, place, this.goodBeforeJump);
  }

  private good(step: number | null): void {
    this.lastGoodStep = step ?? this.lastGoodStep;
    this.goodRows += 1;
    if (this.goodRows >= goodRowsMin && this.reported.size > 0) this.reported.clear();
  }

  private rewind(step: number | null): void {
    if (step === null || this.newestStep === null || step >= this.newestStep - rewindSteps) return;
    this.trend = new LossTrend();
    this.overflows.end();
    this.badNorms = 0;
    this.badNormAt = null;
    this.reported.clear();
    this.lastGoodStep = null;
  }

  private isNaN(row: ProgressRow, place: Place): boolean {
    const { values } = row;
    const nanIterations = numberOf(values['nan_iterations']) ?? 0;
    if (hasNaNLoss(row) || nanIterations > 0) return true;
    const { grad_norm: norm, gnorm } = values;
    if (norm !== undefined || gnorm !== undefined) {
      const isBad = norm === null || gnorm === null;
      this.badNorms = isBad ? this.badNorms + 1 : 0;
      this.badNormAt = isBad ? (this.badNormAt ?? place) : null;
      // What a Trainer prints in half precision once the weights are no longer numbers.
      if (isBad && row.canonical.train_loss === 0) return true;
    }
    return this.badNorms >= badNormsMax;
  }

  private report(
    kind: TrainingSignKind,
    { text, line, rank, step }: Place,
    lastGoodStep = this.lastGoodStep,
  ): readonly TrainingSign[] {
    this.goodRows = 0;
    if (this.reported.has(kind)) return [];
    this.reported.add(kind);
    return [{ kind, step, lastGoodStep, rank, line, text: text.slice(0, textMax) }];
  }
}

/** Megatron leaves the loss out while it skips every step. */
function isSkipped({ values, canonical }: ProgressRow): boolean {
  return (numberOf(values['skipped_iterations']) ?? 0) > 0 && canonical.train_loss === undefined;
}

/** Of a policy that is rewarded, the loss is no measure: it is near 0 whether all is well or not. */
function isPolicyLoss({ values }: ProgressRow): boolean {
  return (
    'actor/pg_loss' in values || 'reward' in values || 'objective/kl' in values || 'rewards/mean' in values
  );
}

function numberOf(value: number | string | null | undefined): number | null {
  return typeof value === 'number' ? value : null;
}
