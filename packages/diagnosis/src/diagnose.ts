/** Everything that an output shows, read once from its first byte to its last, in bounded memory. */
import { isDivergence, type TrainingSign, type TrainingSignKind } from '@muster/common/training';
import { FailureReader } from './failure/failureReader.ts';
import { type FailureFinding, finding, retryAdviceOf } from './failure/finding.ts';
import type { ProcessEnd } from './failure/judge.ts';
import { LineReader } from './lines/lineReader.ts';
import type { Diagnosis, Line } from './model.ts';
import { hasNaNLoss } from './progress/canonical.ts';
import { ProgressReader, type ProgressRow } from './progress/progressReader.ts';
import { TrendWatch } from './signs/trend.ts';

/** So many good lines of metrics after it, and a loss that was no number has come back. */
const goodRowsMin = 10;

export class LogDiagnosis {
  private readonly lines = new LineReader((line) => this.line(line));
  private readonly progress = new ProgressReader();
  private readonly trend = new TrendWatch();
  private readonly failure = new FailureReader();
  /** The first of each kind. */
  private readonly signs = new Map<TrainingSignKind, TrainingSign>();
  private goodRows = 0;

  feed(bytes: Uint8Array): void {
    this.lines.feed(bytes);
  }

  /** The output is over. */
  end(): void {
    this.lines.end();
  }

  /** @param end null: nothing but the output is known */
  result(end: ProcessEnd | null = null): Diagnosis {
    const { state } = this.failure.result(end);
    const { framework, rows, first, last } = this.progress;
    return {
      state,
      ...this.cause(end),
      framework,
      metrics: { rows, first: first?.values ?? null, last: last?.values ?? null },
    };
  }

  /** What went wrong first. null: nothing did. */
  finding(end: ProcessEnd | null = null): FailureFinding | null {
    const { found } = this.failure.result(end);
    const sign = this.lastingSign();
    if (sign === null) return found;
    if (found === null || isAfter(found, sign)) return sign;
    return found;
  }

  private cause(
    end: ProcessEnd | null,
  ): Pick<Diagnosis, 'cause' | 'blame' | 'evidence' | 'retry' | 'advice'> {
    const found = this.finding(end);
    if (found !== null) {
      const { kind, blame, evidence, retry, advice } = found;
      return { cause: kind, blame, evidence, retry, advice };
    }
    const spike = this.signs.get('loss_spike');
    if (spike === undefined) return { cause: null, blame: null, evidence: null, retry: null, advice: null };
    const { line, text, rank } = spike;
    const evidence = { line, text, rank };
    return { cause: 'loss_spike', blame: 'job', evidence, retry: retryAdviceOf.loss_spike, advice: null };
  }

  private line(line: Line): void {
    const row = this.progress.line(line);
    const signs = row === null ? this.trend.line(line) : this.trend.row(row);
    if (row !== null) this.readRow(row);
    for (const sign of signs) {
      this.goodRows = 0;
      if (!this.signs.has(sign.kind)) this.signs.set(sign.kind, sign);
    }
    this.failure.line(line);
  }

  private readRow(row: ProgressRow): void {
    const { step, epoch, train_loss: loss } = row.canonical;
    const position = step ?? epoch;
    if (position !== undefined) this.failure.movedTo(position);
    if (loss === undefined || hasNaNLoss(row) || hasBadNorm(row)) {
      this.goodRows = 0;
      return;
    }
    this.goodRows += 1;
    if (this.goodRows < goodRowsMin) return;
    this.signs.delete('nan_loss');
    this.signs.delete('loss_scale_exhausted');
  }

  /** The first that is more than an alert. */
  private lastingSign(): FailureFinding | null {
    const first = [...this.signs.values()]
      .sort((a, b) => a.line - b.line)
      .find(({ kind }) => isDivergence(kind));
    if (first === undefined || !isDivergence(first.kind)) return null;
    const { kind, line, text, rank } = first;
    return finding({ kind, strength: 'program', evidence: { line, text, rank } });
  }
}

/** With weights that are no numbers, programs in half precision print a loss of 0. */
function hasBadNorm({ values }: ProgressRow): boolean {
  return values['grad_norm'] === null || values['gnorm'] === null;
}

/** A training that is spoilt ends in many ways; only what is stronger, or was there before, is not one of them. */
function isAfter({ strength, evidence }: FailureFinding, sign: FailureFinding): boolean {
  if (strength === 'hardware' || strength === 'storage') return false;
  if (strength !== 'program') return true;
  return evidence.line === null || evidence.line > (sign.evidence.line ?? 0);
}
