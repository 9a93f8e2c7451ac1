/**
 * Reads how far a program is from the lines of its output. Most lines of most outputs have nothing about it, so every
 * pattern is preceded by a cheap search for marks that nearly all other lines lack.
 */
import type { TrainingMetricName, TrainingProgress, TrainingValues } from '@muster/common/training';
import type { Framework, Line, MetricRow } from '../model.ts';
import { type Bar, barIn } from './bars.ts';
import { canonical, notFiniteMetrics } from './canonical.ts';
import { jsonLines, type LineFormat, lineFormats } from './formats.ts';
import type { Values } from './lineShape.ts';
import { type SaveMention, saveIn, saveMark } from './saves.ts';

export interface ProgressRow extends MetricRow {
  /** The values under canonical names; the step is that of the progress bar where the line itself has none. */
  readonly canonical: TrainingValues;
  /** At most 500 characters of the line. */
  readonly text: string;
}

export interface ProgressReaderOptions {
  readonly onRow?: (row: ProgressRow) => void;
  readonly onSave?: (save: SaveMention) => void;
}

/** Longer lines hold data; the longest line of metrics known has some 3,000 characters. */
const textLengthMax = 16 * 1024;
const rowTextMax = 500;

/** One search for all marks instead of one for each. */
function marksOf(formats: readonly LineFormat[]): string {
  const marks = new Set(formats.flatMap((format) => format.marks));
  return [...marks].map((mark) => mark.replace(/[|{}.*+?^$()[\]\\]/g, '\\$&')).join('|');
}

/** A line without this has no total. */
const totalMark = /max_iters|(?:total|optimization) steps|Num Epochs|epochs:/;

/** Marks of which a line needs one to be worth a closer look: those of the formats, of bars, of saves and of totals. */
const anyMark = new RegExp([marksOf(lineFormats), 's/it|it/s', saveMark.source, totalMark.source].join('|'));

const aside = new RegExp(`${saveMark.source}|${totalMark.source}`);

/** A line without these is one of JSON or none at all. */
const markBesideJson = new RegExp(marksOf(lineFormats.filter((format) => format !== jsonLines)));

/** Frameworks that print less than another framework of the same job; the job gets the name of the other. */
const secondary: ReadonlySet<Framework> = new Set(['deepspeed', 'json_lines']);

const printsTotals: ReadonlySet<Framework> = new Set([
  'megatron',
  'json_lines',
  'nanotron',
  'modded_nanogpt',
  'plain',
]);

export class ProgressReader {
  private readonly options: ProgressReaderOptions;
  private readonly bar = new TrainingBar();
  private speed = new Speed();
  /** That of the newest line of metrics, which is asked first. */
  private usualFormat: LineFormat | null = null;
  private currentFramework: Framework | null = null;
  private rowCount = 0;
  private firstRow: ProgressRow | null = null;
  private lastRow: ProgressRow | null = null;
  private readonly latest: Partial<Record<TrainingMetricName, number>> = {};
  private readonly notFinite = new Set<TrainingMetricName>();
  private atMs = 0;
  private knownSteps: number | null = null;
  private knownEpochs: number | null = null;
  /** Once the lines with a loss have their own step, bars count something else. */
  private rowsHaveSteps = false;

  constructor(options: ProgressReaderOptions = {}) {
    this.options = options;
  }

  /**
   * @param atMs wall clock when the line came; null: it was written at another time, so that it shows nothing of the speed
   * @returns null: the line has no metrics
   */
  line(line: Line, atMs: number | null = null): ProgressRow | null {
    const { text } = line;
    if (text.length > textLengthMax || !anyMark.test(text)) return null;
    const hasAside = aside.test(text);
    if (hasAside) this.readTotals(text);
    this.readBar(text, atMs);
    if (hasAside) this.readSave(line);
    const usual = this.usualFormat;
    const row = usual === null ? null : this.read(usual, line, atMs);
    if (row !== null) return row;
    if (!markBesideJson.test(text)) return this.read(jsonLines, line, atMs);
    for (const format of lineFormats) {
      const other = format === usual ? null : this.read(format, line, atMs);
      if (other !== null) return other;
    }
    return null;
  }

  private read(format: LineFormat, line: Line, atMs: number | null): ProgressRow | null {
    const { framework } = format;
    if (!hasMark(line.text, format)) return null;
    const values = format.read(line.text);
    if (values === null || (this.currentFramework !== null && covers(this.currentFramework, framework)))
      return null;
    // Lines of fairseq are lines of JSON, too, so that one is never asked first.
    this.usualFormat = format === jsonLines ? null : format;
    return this.row(framework, values, line, atMs);
  }

  /** null: nothing was recognised. */
  get framework(): Framework | null {
    return this.currentFramework;
  }

  /** How many lines of metrics there were, without validations of Megatron: they stand between its iterations. */
  get rows(): number {
    return this.rowCount;
  }

  get first(): ProgressRow | null {
    return this.firstRow;
  }

  get last(): ProgressRow | null {
    return this.lastRow;
  }

  /** null: there was no line of metrics and no progress bar yet. */
  get progress(): TrainingProgress | null {
    if (this.rowCount === 0 && this.bar.bar === null) return null;
    const totalSteps = this.knownSteps ?? (this.rowsHaveSteps ? null : (this.bar.bar?.total ?? null));
    return {
      framework: this.currentFramework,
      latest: { ...this.latest },
      ...(this.notFinite.size === 0 ? {} : { notFinite: [...this.notFinite] }),
      totalSteps,
      etaMs: this.etaMs(totalSteps),
      rows: this.rowCount,
      atMs: this.atMs,
    };
  }

  private etaMs(totalSteps: number | null): number | null {
    const { step } = this.latest;
    const { stepSeconds } = this.speed;
    if (step === undefined || totalSteps === null || stepSeconds === null) return null;
    return Math.round(Math.max(0, totalSteps - step) * stepSeconds * 1000);
  }

  private row(framework: Framework, values: Values, line: Line, atMs: number | null): ProgressRow {
    const row: MetricRow = { framework, line: line.number, rank: line.rank, values };
    const own = canonical(row);
    if (own.step !== undefined && own.train_loss !== undefined && !this.rowsHaveSteps) {
      this.rowsHaveSteps = true;
      this.speed = new Speed();
    }
    if (own.train_loss !== undefined) this.bar.lossCame();
    const step = own.step ?? this.stepOfBar(own.epoch);
    if (step !== null) own.step = step;
    const full: ProgressRow = {
      framework,
      line: line.number,
      rank: line.rank,
      values,
      canonical: own,
      text: line.text.slice(0, rowTextMax),
    };
    if (this.currentFramework !== null && covers(framework, this.currentFramework)) this.forgetRows();
    if (
      framework !== this.currentFramework &&
      (this.currentFramework === null || secondary.has(this.currentFramework))
    )
      this.currentFramework = framework;
    const isBetween = framework === 'megatron' && own.eval_loss !== undefined && own.train_loss === undefined;
    if (!isBetween) {
      this.rowCount += 1;
      this.firstRow ??= full;
      this.lastRow = full;
    }
    if (printsTotals.has(framework)) this.readTotalOf(values);
    if (own.step_seconds !== undefined) this.speed.report(own.step_seconds);
    // An old loss is not the loss of a program whose loss is not a number.
    for (const name of notFiniteMetrics(row)) {
      if (own[name] !== undefined) continue;
      delete this.latest[name];
      this.notFinite.add(name);
    }
    this.advance(full.canonical, atMs);
    this.options.onRow?.(full);
    return full;
  }

  /** They were those of an engine, before the program on top of it had printed its first. */
  private forgetRows(): void {
    this.rowCount = 0;
    this.firstRow = null;
    this.lastRow = null;
  }

  private advance(values: TrainingValues, atMs: number | null): void {
    Object.assign(this.latest, values);
    if (this.notFinite.size > 0)
      for (const name of this.notFinite) if (values[name] !== undefined) this.notFinite.delete(name);
    if (atMs === null) return;
    this.atMs = atMs;
    if (values.step !== undefined) this.speed.arrive(values.step, atMs);
  }

  private readTotals(text: string): void {
    if (!totalMark.test(text)) return;
    const totals = totalsIn(text);
    this.knownSteps = totals?.steps ?? this.knownSteps;
    this.knownEpochs = totals?.epochs ?? this.knownEpochs;
  }

  private readTotalOf(values: Values): void {
    const total = values['total_steps'] ?? values['max_steps'];
    if (typeof total === 'number' && total > 0) this.knownSteps = total;
  }

  private readSave(line: Line): void {
    const { onSave } = this.options;
    if (onSave === undefined || !saveMark.test(line.text)) return;
    const save = saveIn(line.text);
    if (save !== null) onSave({ ...save, line: line.number, rank: line.rank });
  }

  private readBar(text: string, atMs: number | null): void {
    if (this.rowsHaveSteps || !(text.includes('s/it') || text.includes('it/s'))) return;
    const bar = barIn(text);
    if (bar === null || !this.bar.see(bar, this.knownSteps)) return;
    if (bar.secondsPerStep !== null) this.speed.report(bar.secondsPerStep);
    this.advance({ step: bar.done }, atMs);
  }

  /** The fraction of the epochs serves where bars are turned off. */
  private stepOfBar(epoch: number | undefined): number | null {
    if (this.rowsHaveSteps) return null;
    if (this.bar.bar !== null) return this.bar.bar.done;
    if (epoch === undefined || this.knownSteps === null || this.knownEpochs === null) return null;
    return Math.round((epoch / this.knownEpochs) * this.knownSteps);
  }
}

/** Whether what one prints has all that the other, on which it runs, prints of the same steps. */
function covers(framework: Framework, engine: Framework): boolean {
  return framework === 'megatron' && engine === 'deepspeed';
}

function hasMark(text: string, { marks }: LineFormat): boolean {
  for (const mark of marks) if (text.includes(mark)) return true;
  return false;
}

/** Programs print a step twice or a little late; after a larger step back, they have restarted. */
const rewindSteps = 50;
/** Enough to even out a slow step, few enough to follow a change of the load. */
const marksMax = 20;
/**
 * Lines that come together are one mark: output that was written before it is read (an agent that was restarted) arrives
 * at once and would be taken for a speed.
 */
const markMs = 500;

interface Mark {
  readonly sinceMs: number;
  atMs: number;
  step: number;
}

class Speed {
  /** The newest, in no order: the oldest is overwritten. */
  private readonly reported: number[] = [];
  private nextReported = 0;
  private marks: Mark[] = [];

  report(stepSeconds: number): void {
    if (stepSeconds <= 0) return;
    this.reported[this.nextReported] = stepSeconds;
    this.nextReported = (this.nextReported + 1) % marksMax;
  }

  arrive(step: number, atMs: number): void {
    const newest = this.marks.at(-1);
    if (newest !== undefined && (step < newest.step - rewindSteps || atMs < newest.atMs)) this.marks = [];
    else if (newest !== undefined && step <= newest.step) return;
    else if (newest !== undefined && atMs - newest.sinceMs < markMs) {
      newest.step = step;
      newest.atMs = atMs;
      return;
    }
    this.marks.push({ sinceMs: atMs, atMs, step });
    if (this.marks.length > marksMax) this.marks.shift();
  }

  /** null: not known yet */
  get stepSeconds(): number | null {
    if (this.reported.length > 0) {
      const sorted = this.reported.toSorted((a, b) => a - b);
      return sorted[sorted.length >> 1] ?? null;
    }
    const [oldest, newest] = [this.marks[0], this.marks.at(-1)];
    if (oldest === undefined || newest === undefined || newest.step <= oldest.step) return null;
    return (newest.atMs - oldest.atMs) / 1000 / (newest.step - oldest.step);
  }
}

interface Totals {
  readonly steps?: number;
  readonly epochs?: number;
}

const steps = [
  // nanoGPT prints its configuration file, and what the command line overrides in it.
  /^(?:Overriding: )?max_iters = (\d{1,12})\b/,
  // Trainer
  /\bTotal optimization steps = ([\d,]{1,15})/,
  // torchtitan
  /\bTraining starts at step \d{1,12}\b.{0,400}\btotal steps (\d{1,12})\b/,
];
const epochs = [/\bNum Epochs = ([\d,]{1,15})/, /^epochs: (\d{1,9})$/];

function totalsIn(text: string): Totals | null {
  const knownSteps = firstNumber(steps, text);
  if (knownSteps !== null) return { steps: knownSteps };
  const knownEpochs = firstNumber(epochs, text);
  return knownEpochs === null ? null : { epochs: knownEpochs };
}

function firstNumber(patterns: readonly RegExp[], text: string): number | null {
  for (const pattern of patterns) {
    const found = pattern.exec(text);
    if (found !== null) return Number((found[1] ?? '').replaceAll(',', ''));
  }
  return null;
}

/**
 * Which of a program's progress bars is that of its training. Bars of evaluations have no label either, so the bar is known
 * by its total: the one that the program prints, or that of the bar which the lines with a loss follow.
 */
class TrainingBar {
  private newest: Bar | null = null;
  private followed: Bar | null = null;
  private isChosen = false;
  private isSeen = false;

  /** null: there was no bar. */
  get bar(): Bar | null {
    return this.followed;
  }

  /**
   * @param knownSteps the number of steps, if the program prints it
   * @returns whether this is the bar of the training
   */
  see(bar: Bar, knownSteps: number | null): boolean {
    this.newest = bar;
    const total = knownSteps ?? (this.isChosen ? this.followed?.total : undefined);
    if (total !== undefined && bar.total !== total) return false;
    this.followed = bar;
    this.isSeen = true;
    return true;
  }

  /** A line with a loss came: what it follows is its bar, unless the known one was there since the line before. */
  lossCame(): void {
    if (!this.isChosen || !this.isSeen) this.followed = this.newest ?? this.followed;
    this.isChosen = this.followed !== null;
    this.isSeen = false;
  }
}
