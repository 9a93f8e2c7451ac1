/** One name per metric, whatever a program calls it. */
import type { TrainingMetricName } from '@muster/common/training';
import type { Framework, MetricRow } from '../model.ts';

/**
 * What programs call each metric; the first of a line's names that has a number counts. `/`, `.`, `-` and blanks in a name
 * read as `_`.
 */
const names: Readonly<Record<TrainingMetricName, readonly string[]>> = {
  train_loss: [
    'loss',
    'train_loss',
    'train_loss_step',
    'training_loss',
    'loss_train',
    'lm_loss',
    'actor_pg_loss',
  ],
  eval_loss: ['eval_loss', 'val_loss', 'valid_loss', 'validation_loss', 'loss_val', 'val_loss_epoch'],
  learning_rate: ['learning_rate', 'lr', 'train_lr', 'train_learning_rate', 'actor_lr'],
  grad_norm: ['grad_norm', 'gnorm', 'train_grad_norm', 'gradient_norm', 'actor_grad_norm'],
  epoch: ['epoch', 'train_epoch'],
  step: [
    'step',
    'num_updates',
    'train_num_updates',
    'valid_num_updates',
    'global_step',
    'train_global_step',
  ].concat(['trainer_global_step', 'train_step', 'iteration', 'iter', 'steps', 'update']),
  step_seconds: [
    'step_time_s',
    'step_seconds',
    'step_time',
    'iter_time_s',
    'iter_time',
    'seconds_per_step',
  ].concat('timing_s_step'),
  tokens_per_second: [
    'tokens_per_s',
    'tokens_per_second',
    'tokens_per_sec',
    'tokens_per_second_per_gpu',
    'wps',
  ],
  samples_per_second: ['samples_per_s', 'samples_per_second', 'samples_per_sec'],
  // All since the beginning of the training. Names of the tokens of one batch, such as `ntokens`, are not among them.
  tokens: [
    'tokens_seen',
    'consumed_tokens',
    'num_input_tokens_seen',
    'num_tokens',
    'total_tokens',
    'throughput_total_tokens',
    'tokens',
  ],
};

interface Metric {
  readonly name: TrainingMetricName;
  /** Of several names for it in one line the lowest counts. */
  readonly order: number;
  /** Among all metrics. */
  readonly index: number;
}

const metricOf: ReadonlyMap<string, Metric> = new Map(
  Object.entries(names).flatMap(([name, aliases], index) =>
    aliases.map((each, order) => [each, { name: name as TrainingMetricName, order, index }] as const),
  ),
);
const noOrders: readonly number[] = Object.keys(names).map(() => 1_000);
const evalLossIndex = Object.keys(names).indexOf('eval_loss');

/** Names that mean something else in the lines of one program. */
const notHere: Partial<Record<Framework, ReadonlySet<string>>> = {
  // The time of a micro batch, of which a step takes several; their count is `step`'s business, too.
  litgpt: new Set(['step_time_s', 'iter']),
  // A fraction of an epoch; the mean over a whole epoch.
  fairseq: new Set(['update', 'train_loss']),
};

/** `{"split": "val", "loss": …}` */
const parts = ['split', 'mode', 'phase', 'stage'] as const;
const evaluation = /^(?:val|valid|validation|eval|evaluation|dev|test)$/i;

/** @returns finite values only. A step that only a progress bar shows is missing. */
export function canonical(row: MetricRow): Partial<Record<TrainingMetricName, number>> {
  const found: Partial<Record<TrainingMetricName, number>> = {};
  const orders = noOrders.slice();
  const metrics = metricsOf(row.framework);
  for (const key in row.values) {
    const value = row.values[key];
    if (typeof value !== 'number' || !Number.isFinite(value)) continue;
    const metric = metricNamed(row, key, metrics);
    if (metric === null || metric.order >= (orders[metric.index] ?? 0)) continue;
    if (metric.name === 'step' && !(Number.isSafeInteger(value) && value >= 0)) continue;
    found[metric.name] = value;
    orders[metric.index] = metric.order;
  }
  derive(row, found);
  return found;
}

/** The metrics that the line shows, and whose values are not (finite) numbers. */
export function notFiniteMetrics(row: MetricRow): readonly TrainingMetricName[] {
  const found = new Set<TrainingMetricName>();
  for (const key in row.values) {
    if (row.values[key] !== null) continue;
    const metric = metricNamed(row, key, metricsOf(row.framework));
    if (metric !== null) found.add(metric.name);
  }
  if (hasNaNLoss(row)) found.add('train_loss');
  return [...found];
}

/** Whether the line shows a loss of training that is not a (finite) number. */
export function hasNaNLoss(row: MetricRow): boolean {
  for (const key in row.values) {
    if (row.values[key] !== null) continue;
    if (key === 'train_loss_eval') return true;
    if (metricNamed(row, key, metricsOf(row.framework))?.name === 'train_loss') return true;
  }
  return false;
}

function metricNamed({ framework, values }: MetricRow, key: string, metrics: MetricsByName): Metric | null {
  const metric = rememberedMetric(framework, key, metrics);
  if (metric?.name !== 'train_loss') return metric;
  // The last line of the Trainer: means over the whole run, which are nobody's present values.
  if (framework === 'hf_trainer' && key === 'train_loss' && 'train_runtime' in values) return null;
  return framework === 'json_lines' && isEvaluation(values) ? evaluationLoss(metric) : metric;
}

function evaluationLoss({ order }: Metric): Metric {
  return { name: 'eval_loss', order, index: evalLossIndex };
}

/** Lines of a program have the same names again and again. Names that vary from line to line must not fill the memory. */
type MetricsByName = Map<string, Metric | null>;
const remembered = new Map<Framework, MetricsByName>();
const rememberedMax = 1_000;

function metricsOf(framework: Framework): MetricsByName {
  let metrics = remembered.get(framework);
  if (metrics === undefined) remembered.set(framework, (metrics = new Map()));
  return metrics;
}

function rememberedMetric(framework: Framework, key: string, metrics: MetricsByName): Metric | null {
  let metric = metrics.get(key);
  if (metric === undefined) {
    metric = metricOfName(framework, key);
    if (metrics.size < rememberedMax) metrics.set(key, metric);
  }
  return metric;
}

function metricOfName(framework: Framework, key: string): Metric | null {
  const name = key.toLowerCase().replace(/[/.\s-]/g, '_');
  return notHere[framework]?.has(name) ? null : (metricOf.get(name) ?? null);
}

function isEvaluation(values: MetricRow['values']): boolean {
  for (const part of parts) {
    const value = values[part];
    if (typeof value === 'string' && evaluation.test(value)) return true;
  }
  return false;
}

function derive({ framework, values }: MetricRow, found: Partial<Record<TrainingMetricName, number>>): void {
  if (framework === 'lightning') {
    const { epoch, batch, batches } = values;
    // As Lightning counts where every batch is a step.
    if (typeof epoch === 'number' && typeof batch === 'number' && typeof batches === 'number')
      found.step = epoch * batches + batch;
  } else if (framework === 'fairseq') {
    const { ups } = values;
    // Updates per second, 0 where fairseq has not measured them yet.
    if (typeof ups === 'number' && ups > 0) found.step_seconds = 1 / ups;
  }
}
