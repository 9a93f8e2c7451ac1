/** The settings of an AutoML run as a table, in the form of the other actions: `task_type` and `training_context`. */
import {
  boolean,
  choice,
  duration,
  field,
  hourMs,
  listOf,
  mapping,
  number,
  optional,
  required,
  type SpecOf,
  section,
  text,
  wholeNumber,
} from '@muster/common/spec/kinds';
import { actionFields, sharedKinds } from '../actionShape.ts';

export const automlModels = [
  'linear',
  'tree',
  'forest',
  'extra_trees',
  'boosting',
  'xgboost',
  'lightgbm',
  'mlp',
] as const;
export type AutomlModel = (typeof automlModels)[number];

export const automlTasks = ['classification', 'regression'] as const;
export const automlMetrics = {
  classification: ['log_loss', 'accuracy', 'balanced_accuracy', 'f1_macro', 'roc_auc'],
  regression: ['rmse', 'mae', 'r2'],
} as const;

const name = (form: string) => text(/^[^\0\n\r]{1,500}$/, form);
/** Braces are parameters in the command of a trial. */
const path = text(
  /^\/[^\0\n\r{}$]{0,1000}$/,
  'an absolute path without braces and "$", such as /data/train.csv',
);

const dataFields = {
  path: required('path', path, { about: 'The table, as nodes see it: CSV, or Parquet where pyarrow is.' }),
  target: required('target', name('the name of a column'), { about: 'The column to predict.' }),
  timeColumn: optional('time_column', name('the name of a column'), {
    about: 'Rows are split in its order, and the newest are the test. Default: rows are split by chance.',
    flag: '--time-column <column>',
  }),
  encoding: field('encoding', text(/^[A-Za-z0-9_.-]{1,40}$/, 'an encoding such as utf-8 or latin-1'), {
    about: 'Encoding of a CSV file.',
    default: 'utf-8',
    flag: '--encoding <name>',
  }),
  ignore: field('ignore', listOf(name('the name of a column'), 'a list of columns'), {
    about: 'Columns that no model gets. May be repeated.',
    default: [],
    flag: '--ignore <column>',
  }),
  keep: field('keep', listOf(name('the name of a column'), 'a list of columns'), {
    about: 'Columns to use although they look like a key or the target. May be repeated.',
    default: [],
    flag: '--keep <column>',
  }),
};

const constraintFields = {
  timeMs: optional('time', duration(60_000, 365 * 24 * hourMs), {
    about: 'How long trials may take in all; then they are stopped, and what is complete counts.',
    flag: '--time <duration>',
  }),
  trials: field('trials', wholeNumber(1, 10_000), {
    about: 'How many configurations are tried.',
    default: 40,
    flag: '--trials <count>',
  }),
  parallel: optional('parallel', wholeNumber(1, 1_000), {
    about: 'Trials at the same time. Default: as many as there is room for.',
    flag: '--parallel <count>',
  }),
  gpuHours: optional('gpu_hours', number([0, 1e9], 'GPU-hours, a number from 0'), {
    about: 'What trials may use of GPUs. They use none.',
  }),
  metric: optional('metric', choice([...automlMetrics.classification, ...automlMetrics.regression]), {
    about: 'What models are compared by. Default: log_loss or rmse.',
    flag: '--metric <name>',
  }),
  interpretable: field('interpretable', boolean(), {
    about: 'Only linear models and shallow trees, and no ensemble.',
    default: false,
    flag: '--interpretable',
  }),
  models: optional('models', listOf(choice(automlModels), 'a list of models'), {
    about: 'Models to try. Default: all that the Python of the nodes has.',
    flag: '--model <name>',
  }),
};

const runFields = {
  dir: optional('dir', path, {
    about: 'Directory of the run, which all nodes share. Default: the path of the data, with .automl.',
  }),
  seed: field('seed', wholeNumber(0, 2 ** 31 - 1), {
    about: 'The same seed gives the same data, folds and models.',
    default: 0,
    flag: '--seed <number>',
  }),
  cpus: field('cpus', wholeNumber(1, 1_024), {
    about: 'Processors of each trial.',
    default: 1,
    flag: '--cpus <count>',
  }),
  python: field('python', text(/^[\w./+-]{1,500}$/, 'a program, such as python3'), {
    about: 'The Python of the nodes, with scikit-learn and pandas.',
    default: 'python3',
    flag: '--python <program>',
  }),
};

/** What other actions ask for, and what has no effect here. */
const computeFields = {
  gpuType: optional('gpu_type', sharedKinds.gpuType, { about: 'Has no effect.' }),
  gpuCount: optional('gpu_count', sharedKinds.gpuCount, { about: 'Has no effect.' }),
  memoryGb: optional('memory_gb', sharedKinds.memoryGb, { about: 'Memory of each trial, in GB.' }),
  storageGb: optional('storage_gb', sharedKinds.storageGb, { about: 'Has no effect.' }),
};
const trainingFields = {
  epochs: optional('epochs', sharedKinds.epochs, { about: 'Has no effect.' }),
  batchSize: optional('batch_size', sharedKinds.batchSize, { about: 'Has no effect.' }),
  distributedStrategy: field('distributed_strategy', sharedKinds.distributedStrategy, {
    about: 'Has no effect: each trial is one process.',
    default: 'none',
  }),
};

const automlContextFields = {
  modelType: field('model_type', choice(['tabular', 'timeseries']), {
    about: 'A table; timeseries: one whose rows are split by time_column.',
    default: 'tabular',
  }),
  framework: field('framework', choice(['sklearn', 'xgboost', 'lightgbm']), {
    about: 'xgboost, lightgbm: also try its models.',
    default: 'sklearn',
  }),
  dataSizeGb: optional('data_size_gb', sharedKinds.dataSizeGb, {
    about: 'Size of the table, in GB.',
  }),
  task: optional('task', choice(automlTasks), {
    about: 'What to learn. Default: classification for text and few whole numbers, else regression.',
    flag: '--task <task>',
  }),
  data: required('data', mapping(dataFields, 'a mapping such as {path: /data/train.csv, target: price}'), {
    about: 'The table.',
  }),
  constraints: section('constraints', constraintFields, 'a mapping such as {time: 30m, trials: 40}', {
    about: 'Limits.',
  }),
  run: section('run', runFields, 'a mapping such as {dir: /shared/automl, seed: 1}', {
    about: 'Where and how.',
  }),
  compute: section('compute_requirements', computeFields, 'a mapping such as {memory_gb: 8}', {
    about: 'Resources of each trial.',
  }),
  training: section('training_config', trainingFields, 'a mapping such as {epochs: 1}', {
    about: 'As other actions have it.',
  }),
};

export const automlFields = actionFields(
  ['setup_automl'],
  automlContextFields,
  '{data: {path: /data/train.csv, target: price}}',
);

/** A context that was checked and completed with its defaults. null: not given. */
export type AutomlContext = SpecOf<typeof automlContextFields>;
