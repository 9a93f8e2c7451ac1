/** The settings of a training context as a table. Checks, flags and documentation are made of it. */
import {
  boolean,
  choice,
  field,
  number,
  optional,
  type SpecOf,
  section,
  text,
  type ValueKind,
  wholeNumber,
} from '@muster/common/spec/kinds';
import { trainingMetricNames } from '@muster/common/training';
import { actionFields, adviceTasks, settingPlaces, sharedKinds } from './actionShape.ts';

const scales = { '': 1, K: 1e3, M: 1e6, B: 1e9, T: 1e12 } as const;

/** `7B` → 7,000,000,000. @returns NaN: it is not an amount */
function amountOf(written: string | number): number {
  if (typeof written === 'number') return written;
  const [, digits = '', unit = ''] = /^(\d{1,15}(?:\.\d{1,6})?) ?([KMBT]?)$/i.exec(written.trim()) ?? [];
  return digits === '' ? Number.NaN : Number(digits) * scales[unit.toUpperCase() as keyof typeof scales];
}

/** A count that people write as `7B`, `350M` or in full. */
function amount([min, max]: readonly [number, number], form: string): ValueKind<number, string | number> {
  const isInRange = (written: string | number) => amountOf(written) >= min && amountOf(written) <= max;
  return {
    check: (z) =>
      z
        .union([z.string({ error: form }), z.number({ error: form })], { error: form })
        .refine(isInRange, { error: form }),
    form,
    read: (written) => Math.round(amountOf(written)),
    write: (value) => value,
  };
}

const modelFields = {
  parameters: optional(
    'parameters',
    amount([1e5, 1e14], 'a number of parameters from 100K to 100T, such as 7B or 350M'),
    {
      about: 'Parameters of the model. Needed for neural networks on GPUs.',
      flag: '--parameters <count>',
    },
  ),
  layers: optional('layers', wholeNumber(1, 1_000), {
    about: 'Transformer layers. Default: derived from the parameters.',
    flag: '--layers <count>',
  }),
  hiddenSize: optional('hidden_size', wholeNumber(16, 262_144), {
    about: 'Width of a layer. Default: derived from the parameters.',
    flag: '--hidden-size <size>',
  }),
  attentionHeads: optional('attention_heads', wholeNumber(1, 4_096), {
    about: 'Attention heads of a layer. Default: one for each 128 of the hidden size.',
    flag: '--attention-heads <count>',
  }),
  sequenceLength: field('sequence_length', wholeNumber(1, 10_000_000), {
    about: 'Tokens of one sample.',
    default: 2_048,
    flag: '--sequence-length <tokens>',
  }),
};

const interconnects = ['nvlink', 'infiniband', 'ethernet'] as const;
const precisions = ['fp32', 'fp16', 'bf16'] as const;
const optimizers = ['adamw', 'adam', 'sgd', 'adam8bit'] as const;

export type Interconnect = (typeof interconnects)[number];
export type Precision = (typeof precisions)[number];
export type OptimizerName = (typeof optimizers)[number];

const computeFields = {
  gpuType: optional('gpu_type', sharedKinds.gpuType, { about: 'GPU model.', flag: '--gpu-type <type>' }),
  gpuCount: optional('gpu_count', sharedKinds.gpuCount, {
    about: 'GPUs of the job, on all nodes together.',
    flag: '--gpus <count>',
  }),
  memoryGb: optional('memory_gb', sharedKinds.memoryGb, {
    about: 'Memory of each GPU, in GB. Default: the largest of the GPU model.',
    flag: '--gpu-memory <gb>',
  }),
  hostMemoryGb: optional('host_memory_gb', number([1, 100_000], 'GB, a number from 1 to 100000'), {
    about: 'Memory of a node that the job can use, in GB. Default: 48 to 234 for each GPU, by its model.',
    flag: '--host-memory <gb>',
  }),
  storageGb: optional('storage_gb', sharedKinds.storageGb, {
    about: 'Storage for data and checkpoints, in GB.',
    flag: '--storage <gb>',
  }),
  gpusPerNode: field('gpus_per_node', wholeNumber(1, 16), {
    about: 'GPUs of a node; a job with fewer GPUs uses one node.',
    default: 8,
    flag: '--gpus-per-node <count>',
  }),
  interconnect: optional('interconnect', choice(interconnects), {
    about:
      'The slowest link between two GPUs of the job. Default: nvlink or pcie on one node, ethernet on several.',
    flag: '--interconnect <link>',
  }),
  interconnectGbPerS: optional(
    'interconnect_gb_per_s',
    number([0.01, 10_000], 'GB/s, a number from 0.01 to 10000, such as 25'),
    {
      about: 'Its rate in one direction, in GB/s: of a GPU for nvlink, of a node otherwise.',
      flag: '--interconnect-rate <gb/s>',
    },
  ),
};

const trainingFields = {
  epochs: field('epochs', sharedKinds.epochs, {
    about: 'Passes over the data.',
    default: 1,
    flag: '--epochs <count>',
  }),
  batchSize: optional('batch_size', sharedKinds.batchSize, {
    about: 'Samples of one optimizer step, on all GPUs together.',
    flag: '--batch-size <samples>',
  }),
  distributedStrategy: field('distributed_strategy', sharedKinds.distributedStrategy, {
    about: 'A strategy to prefer; none: it is chosen.',
    default: 'none',
    flag: '--strategy <strategy>',
  }),
  precision: optional('precision', choice(precisions), {
    about: 'Format of weights and gradients. Default: bf16 where the GPU computes it, else fp16.',
    flag: '--precision <format>',
  }),
  optimizer: field('optimizer', choice(optimizers), {
    about: 'The optimizer; sgd: with momentum.',
    default: 'adamw',
    flag: '--optimizer <name>',
  }),
  gradientCheckpointing: optional('gradient_checkpointing', boolean(), {
    about: 'Whether activations are recomputed. Default: only if they do not fit otherwise.',
  }),
  cpuOffload: optional('cpu_offload', boolean(), {
    about:
      'Whether gradients and optimizer are kept in the memory of the nodes. Default: only if they do not fit otherwise.',
  }),
  targetTokens: optional('target_tokens', amount([1, 1e16], 'a number of tokens, such as 250M or 2T'), {
    about: 'Tokens to train on, all epochs together. Default: derived from data_size_gb and epochs.',
    flag: '--tokens <count>',
  }),
};

const budgetFields = {
  usd: optional('usd', number([0, 1e12], 'USD, a number above 0', { isAboveMin: true }), {
    about: 'What the training may cost, in USD.',
    flag: '--budget <usd>',
  }),
  hours: optional('hours', number([0, 100_000], 'hours, a number above 0', { isAboveMin: true }), {
    about: 'How long it may take, in hours.',
    flag: '--deadline <hours>',
  }),
};

const spotFields = {
  priceFactor: field('price_factor', number([0, 1], 'a number above 0 up to 1', { isAboveMin: true }), {
    about: 'Price of a spot machine, relative to on-demand.',
    default: 0.35,
  }),
  interruptionsPerDay: field('interruptions_per_day', number([0, 1_000], 'a number from 0 to 1000'), {
    about: 'How often a spot node is taken away, per day and node.',
    default: 1,
  }),
  restartMinutes: field('restart_minutes', number([0, 1_440], 'minutes, a number from 0 to 1440'), {
    about: 'From an interruption to the first step after it.',
    default: 10,
  }),
};

const dataFields = {
  path: optional('path', text(/^[^\p{Cc}]{1,1000}$/u, 'a path on the nodes, such as /data/train.csv'), {
    about: 'A table in CSV or Parquet, or a directory of images by class, on the nodes.',
    flag: '--data <path>',
  }),
  target: field('target', text(/^[^\p{Cc}]{1,200}$/u, 'the name of a column'), {
    about: 'The column that is predicted.',
    default: 'target',
    flag: '--target <column>',
  }),
};

/** Parameters as a sweep file has them, whose reader checks them. */
function searchSpace(): ValueKind<Readonly<Record<string, unknown>>, Readonly<Record<string, unknown>>> {
  const form = 'a mapping such as {lr: {type: float, min: 1e-5, max: 1e-2, log: true}}';
  const same = (value: Readonly<Record<string, unknown>>) => value;
  return { check: (z) => z.record(z.string(), z.unknown(), { error: form }), form, read: same, write: same };
}

const tuningFields = {
  metric: field('metric', choice(trainingMetricNames), {
    about: 'What is optimized, as Muster reads it from the output.',
    default: 'eval_loss',
    flag: '--metric <name>',
  }),
  direction: optional('direction', choice(['minimize', 'maximize']), {
    about: 'Default: what is better for the metric.',
  }),
  trials: optional('trials', wholeNumber(1, 10_000), {
    about: 'How many trials. Default: by the parameters and the budget.',
    flag: '--trials <count>',
  }),
  trialMinutes: optional(
    'trial_minutes',
    number([0, 1e6], 'minutes, a number above 0', { isAboveMin: true }),
    {
      about: 'How long a trial takes that is not stopped early. Default: estimated.',
      flag: '--trial-minutes <minutes>',
    },
  ),
  searchSpace: optional('search_space', searchSpace(), {
    about: 'The parameters, as a sweep file has them. Default: the usual ones of the framework.',
  }),
};

const modelTypes = ['tabular', 'cv', 'nlp', 'timeseries', 'multimodal'] as const;
const frameworks = ['pytorch', 'tensorflow', 'sklearn', 'xgboost', 'lightgbm'] as const;
export type TrainingFramework = (typeof frameworks)[number];

const trainingContextFields = {
  modelType: field('model_type', choice(modelTypes), {
    about: 'What the model works on.',
    default: 'nlp',
    flag: '--model-type <type>',
  }),
  framework: field('framework', choice(frameworks), {
    about: 'The framework of the training.',
    default: 'pytorch',
    flag: '--framework <name>',
  }),
  dataSizeGb: optional('data_size_gb', sharedKinds.dataSizeGb, {
    about: 'Size of the training data, in GB.',
    flag: '--data-size <gb>',
  }),
  model: section('model', modelFields, 'a mapping such as {parameters: 7B}', { about: 'The model.' }),
  compute: section(
    'compute_requirements',
    computeFields,
    'a mapping such as {gpu_type: a100, gpu_count: 4}',
    { about: 'The GPUs.' },
  ),
  training: section('training_config', trainingFields, 'a mapping such as {epochs: 3, batch_size: 64}', {
    about: 'How it is trained.',
  }),
  budget: section('budget', budgetFields, 'a mapping such as {usd: 500, hours: 12}', {
    about: 'Limits of cost and time.',
  }),
  data: section('data', dataFields, 'a mapping such as {path: /data/train.csv, target: label}', {
    about: 'The data that a designed pipeline reads.',
  }),
  tuning: section('tuning', tuningFields, 'a mapping such as {metric: eval_loss, trials: 40}', {
    about: 'The search for good parameters.',
  }),
  spot: section('spot', spotFields, 'a mapping such as {price_factor: 0.35}', {
    about: 'What is assumed of spot machines.',
  }),
};

export const contextFields = actionFields(adviceTasks, trainingContextFields, '{model: {parameters: 7B}}');

/** A context that was checked and completed with its defaults. null: not given. */
export type TrainingContext = SpecOf<typeof trainingContextFields>;

/** Every setting with its place in the file, outer ones before those within. */
export const contextPlaces = settingPlaces(contextFields);
