/** What the output of one task shows of its training: its output in, progress, readings and signs out. */
import type { TaskRef } from '@muster/common/ids';
import type {
  TrainingMetricName,
  TrainingProgress,
  TrainingRow,
  TrainingSign,
  TrainingValues,
} from '@muster/common/training';
import type { Resume } from '@muster/common/views';
import { LineReader } from '@muster/diagnosis/lines/lineReader';
import type { Line } from '@muster/diagnosis/model';
import { canonical, hasNaNLoss, notFiniteMetrics } from '@muster/diagnosis/progress/canonical';
import { ProgressReader, type ProgressRow } from '@muster/diagnosis/progress/progressReader';
import { TrendWatch } from '@muster/diagnosis/signs/trend';
import { RecentRows } from './recentRows.ts';
import { ResumeWatch } from './resumeWatch.ts';

/** Sent again on a new connection; older ones were sent long ago. */
const signsMax = 32;

export interface TaskOutputParts {
  readonly task: TaskRef;
  /** The checkpoint that it was offered. null: none, or this agent does not know. */
  readonly resume: Resume | null;
  readonly onSign: (sign: TrainingSign) => void;
  /** Of every line. */
  readonly onLine: (line: Line) => void;
  /** A line of metrics named a step. */
  readonly onStep: () => void;
  /** Every line of metrics. Without its time: @param isChange it was written about now */
  readonly onRow: (row: Omit<TrainingRow, 'atMs'>, isChange: boolean) => void;
}

export class TaskOutput {
  private readonly parts: TaskOutputParts;
  private readonly progressReader = new ProgressReader();
  private readonly trend = new TrendWatch();
  private readonly rows = new RecentRows();
  /** null: there is nothing to find out, or no more. */
  private resume: ResumeWatch | null;
  private lines = this.newLines();
  /** Position in the output at which `lines` began. */
  private linesBeganAt: number | null = null;
  /** Positions of rows continue from here after the output has started over. */
  private positionBase = 0;
  private lastPosition = 0;
  /** Line numbers are known: nothing was skipped. */
  private isWhole = true;
  /** The next line is what is left of one whose beginning was skipped. */
  private isCutOff = false;
  /** Wall clock when the present bytes were read, and whether they were written about then. */
  private readAtMs = 0;
  private isChange = false;
  private newestRowMs = 0;
  private readonly reported: TrainingSign[] = [];

  constructor(parts: TaskOutputParts) {
    this.parts = parts;
    this.resume = parts.resume === null ? null : new ResumeWatch(parts.resume.step);
  }

  /**
   * @param atMs wall clock
   * @param isChange they were written about now; otherwise some time ago, so that they show nothing of the speed
   * @param start position of the first byte in the output
   */
  feed(bytes: Buffer, atMs: number, isChange: boolean, start: number): void {
    this.linesBeganAt ??= start;
    this.readAtMs = atMs;
    this.isChange = isChange;
    this.lines.feed(bytes);
  }

  /** What is fed next does not follow what was fed before. */
  skip(): void {
    // What comes now are not its first steps.
    this.resume = null;
    this.lines = this.newLines();
    this.linesBeganAt = null;
    this.isWhole = false;
    this.isCutOff = true;
  }

  /** What is fed next is the beginning of another output. */
  startOver(): void {
    this.lines = this.newLines();
    this.linesBeganAt = null;
    this.positionBase = this.lastPosition;
    this.isWhole = true;
    this.isCutOff = false;
  }

  /** Nothing more will come: a line without an end is one, too. */
  end(): void {
    this.lines.end();
  }

  get progress(): TrainingProgress | null {
    const { progress } = this.progressReader;
    // The reader knows no time of lines that were written some time ago; they were read when they were.
    return progress === null ? null : { ...progress, atMs: Math.max(progress.atMs, this.newestRowMs) };
  }

  get signs(): readonly TrainingSign[] {
    return this.reported;
  }

  /** As RecentRows.at. */
  metricsAt(step: number | null): TrainingValues {
    return this.rows.at(step);
  }

  private newLines(): LineReader {
    return new LineReader((line) => this.onLine(line));
  }

  private onLine(line: Line): void {
    if (this.isCutOff) {
      this.isCutOff = false;
      return;
    }
    this.parts.onLine(line);
    const numbered = this.isWhole ? line : { ...line, number: 0 };
    const row = this.progressReader.line(numbered, this.isChange ? this.readAtMs : null);
    if (row === null) {
      this.report(this.trend.line(numbered));
      return;
    }
    this.newestRowMs = this.readAtMs;
    this.rows.add(row.canonical);
    this.lastPosition = this.positionBase + (this.linesBeganAt ?? 0) + this.lines.position;
    const lossNotFinite = row.canonical.train_loss === undefined && hasNaNLoss(row);
    const found = { position: this.lastPosition, values: row.canonical, lossNotFinite };
    const alsoNotFinite = othersNotFinite(row);
    this.parts.onRow(alsoNotFinite.length === 0 ? found : { ...found, alsoNotFinite }, this.isChange);
    if (row.canonical.step !== undefined) this.parts.onStep();
    this.report(this.trend.row(row));
    this.watchResume(row);
  }

  private watchResume(row: ProgressRow): void {
    const { step, epoch } = row.canonical;
    if (this.resume === null || step === undefined) return;
    const isOfBar = canonical(row).step === undefined;
    const found = this.resume.row({ step, epoch: epoch ?? null, isOfBar });
    if (found === null) return;
    this.resume = null;
    const { rank, line, text } = row;
    this.report([{ kind: found.kind, step: found.step, lastGoodStep: null, rank, line, text }]);
  }

  private report(signs: readonly TrainingSign[]): void {
    for (const sign of signs) {
      this.reported.push(sign);
      if (this.reported.length > signsMax) this.reported.shift();
      this.parts.onSign(sign);
    }
  }
}

/** @returns metrics other than the loss of training that the line shows without any finite value */
function othersNotFinite(row: ProgressRow): readonly TrainingMetricName[] {
  // Nearly every line: without a list of its metrics.
  let hasNone = true;
  for (const key in row.values) if (row.values[key] === null) hasNone = false;
  if (hasNone) return [];
  return notFiniteMetrics(row).filter((name) => name !== 'train_loss' && row.canonical[name] === undefined);
}
