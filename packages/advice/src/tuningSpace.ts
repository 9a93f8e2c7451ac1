/** Ranges in which good hyperparameters usually are, each with its reason. Pure data and arithmetic. */
import type { TrainingContext } from './contextFields.ts';

export interface TunedParameter {
  readonly name: string;
  /** As a sweep file has it. */
  readonly range: Readonly<Record<string, unknown>> | readonly (number | string)[];
  readonly why: string;
}

export const tuningSources: readonly string[] = [
  'Brown and others 2020, table 2.1: learning rates from 6e-4 for 125 M to 0.6e-4 for 175 B parameters',
  'Loshchilov and Hutter 2019, Decoupled Weight Decay Regularization: weight decay is searched beside the learning rate',
  'Probst, Boulesteix, Bischl 2019, Tunability: which parameters of boosted trees matter, and their ranges',
  'Bergstra and others 2011: TPE; Li and others 2020: ASHA',
];

const float = (min: number, max: number) => ({ type: 'float', min, max });
const logFloat = (min: number, max: number) => ({ ...float(min, max), log: true });
const stepped = (min: number, max: number, step: number) => ({ ...float(min, max), step });
const int = (min: number, max: number) => ({ type: 'int', min, max });
const logInt = (min: number, max: number) => ({ ...int(min, max), log: true });

export function usualSpace(context: TrainingContext): readonly TunedParameter[] {
  switch (context.framework) {
    case 'xgboost':
      return xgboost(context);
    case 'lightgbm':
      return lightgbm(context);
    case 'sklearn':
      return histGradientBoosting(context);
    default:
      return network(context);
  }
}

/** Two digits: a bound is no measurement. */
function rounded(value: number): number {
  return Number(value.toPrecision(2));
}

/** Brown and others 2020, table 2.1, is met within a third by 6e-4 · (125 M / parameters)^(1/3). */
export function usualLearningRate(parameters: number): number {
  return 6e-4 * Math.cbrt(125e6 / parameters);
}

/** Larger models diverge at rates that small ones need, and samples above this size of model are too few to overfit on. */
const largeModel = 1e9;

function network(context: TrainingContext): readonly TunedParameter[] {
  const { model, training, modelType } = context;
  const { parameters } = model;
  const isSgd = training.optimizer === 'sgd';
  const isLarge = parameters !== null && parameters >= largeModel;
  return [
    learningRate(parameters, isSgd),
    batchSizes(context),
    isSgd
      ? {
          name: 'weight_decay',
          range: logFloat(1e-5, 1e-3),
          why: 'SGD adds it to the gradient, where 1e-4 is usual',
        }
      : {
          name: 'weight_decay',
          range: logFloat(0.01, 0.3),
          why: 'AdamW: 0.1 is usual for transformers, 0.01 for small networks',
        },
    {
      name: 'warmup_ratio',
      range: stepped(0, 0.1, 0.01),
      why: 'a few percent of the steps; more only delays',
    },
    ...(isLarge
      ? []
      : [
          {
            name: 'dropout',
            range: stepped(0, modelType === 'nlp' ? 0.3 : 0.5, 0.05),
            why: 'below 1 B parameters, where data is seen more than once; larger models are trained without',
          },
        ]),
  ];
}

function learningRate(parameters: number | null, isSgd: boolean): TunedParameter {
  if (isSgd)
    return {
      name: 'lr',
      range: logFloat(1e-3, 1),
      why: 'SGD with momentum: 0.1 for a batch of 256 is usual',
    };
  if (parameters === null)
    return {
      name: 'lr',
      range: logFloat(1e-5, 1e-2),
      why: 'the size of the model is not known; AdamW learns within',
    };
  // Small networks learn at 1e-3 too: the rule is one of transformers from 125 M on.
  const middle = Math.min(1e-3, usualLearningRate(parameters));
  return {
    name: 'lr',
    range: logFloat(rounded(middle / 5), rounded(middle * 5)),
    why: `models of this size are trained at about ${rounded(middle)}; a fifth of it to five times as much`,
  };
}

function batchSizes({ training, compute }: TrainingContext): TunedParameter {
  const ranks = compute.gpuCount ?? 1;
  const middle = training.batchSize ?? 32 * ranks;
  const values = [middle / 2, middle, middle * 2].filter(
    (each) => Number.isInteger(each) && each % ranks === 0,
  );
  return {
    name: 'batch_size',
    range: values.length === 0 ? [middle] : values,
    why:
      training.batchSize === null
        ? `32 samples on each of ${ranks} GPUs, half and twice as many`
        : `half of ${middle}, ${middle}, and twice as much, as far as ${ranks} ranks divide it`,
  };
}

/** Trees of large data may be deeper before they overfit. @returns GB from which data is large */
const largeDataGb = 1;

function isLargeData({ dataSizeGb }: TrainingContext): boolean {
  return dataSizeGb !== null && dataSizeGb >= largeDataGb;
}

const eta = { range: logFloat(0.01, 0.3), why: 'smaller steps generalize better and need more trees' };
const sampleWhy = 'rows of each tree: below 1 it regularizes, and is faster';

function xgboost(context: TrainingContext): readonly TunedParameter[] {
  const depth = isLargeData(context) ? 12 : 10;
  return [
    { name: 'eta', ...eta },
    {
      name: 'max_depth',
      range: int(3, depth),
      why: `${isLargeData(context) ? 'at least' : 'less than'} 1 GB of data: up to ${depth}`,
    },
    {
      name: 'n_estimators',
      range: logInt(100, 2000),
      why: 'with early stopping on the validation set it is an upper limit',
    },
    { name: 'min_child_weight', range: logFloat(1, 20), why: 'the more, the less is learned from few rows' },
    { name: 'subsample', range: stepped(0.5, 1, 0.05), why: sampleWhy },
    {
      name: 'colsample_bytree',
      range: stepped(0.5, 1, 0.05),
      why: 'columns of each tree: below 1 it decorrelates trees',
    },
    { name: 'reg_lambda', range: logFloat(1e-3, 10), why: 'L2 on leaf weights; 1 is the default' },
  ];
}

function lightgbm(context: TrainingContext): readonly TunedParameter[] {
  const leaves = isLargeData(context) ? 1023 : 255;
  return [
    { name: 'learning_rate', ...eta },
    {
      name: 'num_leaves',
      range: logInt(15, leaves),
      why: `trees grow by leaves; 31 is the default, ${leaves} much`,
    },
    {
      name: 'n_estimators',
      range: logInt(100, 2000),
      why: 'with early stopping on the validation set it is an upper limit',
    },
    {
      name: 'min_child_samples',
      range: logInt(5, 200),
      why: 'the main guard of small data against overfitting',
    },
    { name: 'bagging_fraction', range: stepped(0.5, 1, 0.05), why: sampleWhy },
    {
      name: 'feature_fraction',
      range: stepped(0.5, 1, 0.05),
      why: 'columns of each tree: below 1 it decorrelates trees',
    },
    { name: 'lambda_l2', range: logFloat(1e-3, 10), why: 'L2 on leaf weights' },
  ];
}

function histGradientBoosting(context: TrainingContext): readonly TunedParameter[] {
  const leaves = isLargeData(context) ? 255 : 127;
  return [
    { name: 'learning_rate', ...eta },
    {
      name: 'max_leaf_nodes',
      range: logInt(7, leaves),
      why: 'HistGradientBoosting grows by leaves; 31 is the default',
    },
    { name: 'max_iter', range: logInt(100, 1000), why: 'trees; with early stopping it is an upper limit' },
    {
      name: 'min_samples_leaf',
      range: logInt(5, 200),
      why: 'the main guard of small data against overfitting',
    },
    { name: 'l2_regularization', range: logFloat(1e-3, 10), why: 'L2 on leaf values' },
  ];
}
