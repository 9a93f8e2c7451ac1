/** What the output of a training program shows of its progress. A value that was not read is null, never 0. */
/** The metrics of a job that come from its output, with their units. */
export const trainingMetrics = {
  train_loss: 'loss',
  eval_loss: 'loss',
  learning_rate: 'rate',
  grad_norm: 'norm',
  epoch: 'epochs',
  step: 'steps',
  step_seconds: 'seconds',
  tokens_per_second: 'tokens/s',
  samples_per_second: 'samples/s',
  tokens: 'tokens',
} as const;
export type TrainingMetricName = keyof typeof trainingMetrics;

export function isTrainingMetricName(name: string): name is TrainingMetricName {
  return Object.hasOwn(trainingMetrics, name);
}

/** One line of metrics under canonical names; only finite values. */
export type TrainingValues = Readonly<Partial<Record<TrainingMetricName, number>>>;

/** In the order in which they are listed, and stored by their index: a new one is the last. */
export const trainingMetricNames = Object.keys(trainingMetrics).filter(isTrainingMetricName);

/** Which values of a metric are better; null: neither. */
export const betterValues: Readonly<Record<TrainingMetricName, 'low' | 'high' | null>> = {
  train_loss: 'low',
  eval_loss: 'low',
  learning_rate: null,
  grad_norm: null,
  epoch: null,
  step: null,
  step_seconds: 'low',
  tokens_per_second: 'high',
  samples_per_second: 'high',
  tokens: null,
};

/** One line of metrics, as it is kept for the life of its job. */
export interface TrainingRow {
  /** Bytes of the task's output up to the end of the line: this identifies the row, and grows from row to row. From 1. */
  readonly position: number;
  /** Wall clock of the node. */
  readonly atMs: number;
  readonly values: TrainingValues;
  /** The line has a train_loss that is not a finite number; `values` is without it. */
  readonly lossNotFinite: boolean;
  /** Other metrics of the line that are not finite numbers; `values` is without them. Absent: none. */
  readonly alsoNotFinite?: readonly TrainingMetricName[];
}

/** One metric of a job in short, of the lowest rank that prints it. */
export interface TrainingSummary {
  readonly name: TrainingMetricName;
  readonly unit: string;
  /** null: not a finite number. */
  readonly last: number | null;
  /** null: neither high nor low values are better, or none is finite. */
  readonly best: number | null;
  readonly firstStep: number | null;
  readonly lastStep: number | null;
  readonly bestStep: number | null;
  /** Lines that show it. */
  readonly rows: number;
  readonly notFinite: number;
  /** The first step at which it was not finite. */
  readonly notFiniteStep: number | null;
  /** null: not a finite number. */
  readonly first: number | null;
  readonly least: number | null;
  readonly leastStep: number | null;
  readonly greatest: number | null;
  readonly greatestStep: number | null;
  /** Values that were printed and are in no row, nor in one that stands for several. */
  readonly omitted: number;
  /** Rows that stand for several. */
  readonly mergedPoints: number;
}

/** Where a task is, by the newest lines of its output. */
export interface TrainingProgress {
  /** `nanogpt`, `hf_trainer` …; null: none was recognised. */
  readonly framework: string | null;
  /** The newest value of each metric. */
  readonly latest: TrainingValues;
  /** Metrics whose newest value is not a finite number; `latest` is without them. Absent: none. */
  readonly notFinite?: readonly string[];
  readonly totalSteps: number | null;
  /** Until `totalSteps` at the present speed. */
  readonly etaMs: number | null;
  /** Lines of metrics that were read. */
  readonly rows: number;
  /** Wall clock of the node when the newest of them was read. */
  readonly atMs: number;
}

/** Where the lines of metrics of a task end that has ended. */
export interface EndOfRows {
  /**
   * Bytes of the output up to the end of its last line of metrics; 0: it has none. The progress that was reported with it is final. Absent:
   * the agent had not read the output to its end, or is of an earlier version.
   */
  readonly rowsEnd?: number;
}

export const trainingSignKinds = [
  'nan_loss',
  'loss_divergence',
  'loss_spike',
  'loss_scale_exhausted',
  'resume_ignored',
  'resume_confirmed',
] as const;
/**
 * `loss_divergence`: it has exploded and does not come back. `loss_spike`: it has jumped, and may come back: never a reason
 * to stop. `resume_ignored`: the output begins before the checkpoint that the attempt was offered, so the program has not
 * loaded it. `resume_confirmed`: the output begins after that checkpoint. It is the only kind that is no problem.
 */
export type TrainingSignKind = (typeof trainingSignKinds)[number];

/** After which the weights are of no use: checkpoints saved from then on are marked, and `on_divergence` may stop the attempt. */
export type DivergenceKind = Exclude<TrainingSignKind, 'loss_spike' | ResumeSignKind>;

/** What the first steps of the output show about the checkpoint that the attempt was offered. */
type ResumeSignKind = 'resume_ignored' | 'resume_confirmed';

export function isDivergence(kind: TrainingSignKind): kind is DivergenceKind {
  return kind !== 'loss_spike' && !isResumeSign(kind);
}

export function isResumeSign(kind: TrainingSignKind): kind is ResumeSignKind {
  return kind === 'resume_ignored' || kind === 'resume_confirmed';
}

/** Something about the training that its owner should know while it runs. */
export interface TrainingSign {
  readonly kind: TrainingSignKind;
  readonly step: number | null;
  /** The last step at which all was well. */
  readonly lastGoodStep: number | null;
  readonly rank: number | null;
  /** Line of the output, counted from 1 by line feeds; 0: unknown, for some of the output was not read. */
  readonly line: number;
  /** At most 500 characters of it. */
  readonly text: string;
}

export const gpuStillnesses = ['pinned', 'idle'] as const;

/**
 * A task that has stopped making progress: nothing in its output, no step and no checkpoint for several times as long as
 * usual, while its GPUs show that nothing is computed.
 */
export interface HangSign {
  /** Since its last sign of progress. */
  readonly quietForMs: number;
  /** What is usual between two signs of progress, by its own past. */
  readonly usualMs: number;
  /** `pinned`: full utilisation at the power of an idle card, as spinning collectives show. `idle`: no utilisation. */
  readonly gpus: (typeof gpuStillnesses)[number];
  /** The first rank on this node whose output stopped. null: its output does not distinguish ranks. */
  readonly rank: number | null;
}

/** @returns the last step before the loss diverged; null: no step is known; undefined: it has not diverged */
export function goodStepBefore({ kind, step, lastGoodStep }: TrainingSign): number | null | undefined {
  if (!isDivergence(kind)) return undefined;
  return lastGoodStep ?? (step === null ? null : step - 1);
}
