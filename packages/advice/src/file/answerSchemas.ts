/**
 * What each question is answered with. The command line, the API and the tools give answers that these schemas have passed.
 * The results in snake_case are a contract with scripts, and have exactly these members.
 */
import * as z from 'zod';
import { strategies, type TrainingAction } from '../actionShape.ts';
import { automlModels } from '../automl/automlFields.ts';
import { offloads, parallelMethods, recomputations } from '../memory.ts';

const amount = z.number().min(0);
const count = z.int().min(0);
const range = z.tuple([amount, amount]);
const lines = z.array(z.string());

const distributedConfig = z.strictObject({
  strategy: z.enum(strategies),
  world_size: z.int().min(1),
  backend: z.literal('nccl'),
});

const costEstimate = z.strictObject({
  hourly_cost_usd: amount,
  estimated_duration_hours: amount,
  total_cost_usd: amount,
});

/** The results that a question has are replaced in its answer; the others are null. */
const noResults = {
  pipeline_config: z.null(),
  distributed_config: z.null(),
  tuning_results: z.null(),
  cost_estimate: z.null(),
};

const configFile = z.strictObject({
  name: z.string(),
  about: z.string(),
  text: z.string(),
  fits: z.boolean(),
});

const degrees = z.strictObject({ data: count, tensor: count, pipeline: count });

const plan = z.strictObject({
  method: z.enum(parallelMethods),
  degrees,
  microBatch: count,
  accumulation: count,
  recomputation: z.enum(recomputations),
  offload: z.enum(offloads).describe('what is in the memory of the nodes instead of the GPUs'),
  memory: z.strictObject({
    parametersBytes: amount,
    gradientsBytes: amount,
    optimizerBytes: amount,
    activationsBytes: amount,
    gatheredBytes: amount,
    totalBytes: amount,
  }),
  hostBytes: amount.describe('what the offload takes of the memory of each node'),
  fits: z.boolean(),
});

const distributedAnswer = z.strictObject({
  task_type: z.literal('configure_distributed'),
  ...noResults,
  distributed_config: distributedConfig.nullable().describe('null: the training does not fit'),
  plan: plan.nullable(),
  reasons: lines,
  considered: z.array(plan).describe('what was looked at, in order'),
  model: z.strictObject({
    parameters: count,
    layers: count,
    hiddenSize: count,
    attentionHeads: count,
    sequenceLength: count,
    isDerived: z.boolean().describe('whether layers or width follow from the parameters'),
  }),
  gpu: z.string(),
  usableBytes: amount.describe('of each GPU'),
  precision: z.enum(['fp32', 'fp16', 'bf16']),
  communication: z
    .strictObject({
      link: z.enum(['nvlink', 'infiniband', 'ethernet', 'pcie']),
      rateGbPerS: amount,
      computeSeconds: amount,
      gradientSeconds: amount,
      activationSeconds: amount,
      isBound: z.boolean(),
    })
    .nullable(),
  tips: z.array(z.strictObject({ tip: z.string(), because: z.string() })),
  files: z.array(configFile),
  sufficient: z
    .array(z.strictObject({ gpu: z.string(), gpuCount: count, method: z.enum(parallelMethods) }))
    .describe('where nothing fits without an offload: the least GPUs of each model that would do'),
  assumptions: lines,
  sources: lines,
});

const computeOption = costEstimate.extend({
  gpu: z.string(),
  gpuCount: count,
  method: z.enum(parallelMethods),
  durationRangeHours: range,
  costRangeUsd: range,
  slowdown: amount,
  isWithinLimits: z.boolean(),
});

const computeAnswer = z.strictObject({
  task_type: z.literal('manage_compute'),
  ...noResults,
  cost_estimate: costEstimate.nullable().describe('null: no GPUs fit'),
  recommended: computeOption.nullable(),
  reasons: lines,
  alternatives: z.array(computeOption),
  spot: costEstimate.extend({ interruptions: amount, lostHours: amount, isCheaper: z.boolean() }).nullable(),
  checkpointIntervalMinutes: amount.nullable(),
  checkpointBytes: amount,
  scalingPolicy: z
    .strictObject({ minGpus: count, maxGpus: count, counts: z.array(count), reasons: lines })
    .nullable(),
  tokens: amount,
  flops: amount,
  pricesAsOf: z.string(),
  assumptions: lines,
  sources: lines,
});

const pipelineConfig = z.strictObject({
  orchestrator: z.literal('muster'),
  steps: z.array(z.strictObject({ name: z.string(), needs: lines, command: lines, outputs: lines })),
  triggers: z.array(z.strictObject({ kind: z.literal('manual'), value: z.null() })),
});

const pipelineAnswer = z.strictObject({
  task_type: z.literal('design_pipeline'),
  ...noResults,
  pipeline_config: pipelineConfig,
  files: z.array(configFile).describe('the pipeline file, and the programs that it runs'),
  reasons: lines,
  assumptions: lines,
});

const tunedValue = z.union([z.number(), z.string(), z.boolean()]);

const tuningResults = z.strictObject({
  best_params: z.record(z.string(), tunedValue),
  best_score: z.number().nullable(),
  trials_completed: count,
});

/** As a sweep file has it. */
const searchRange = z.union([z.record(z.string(), z.unknown()), z.array(tunedValue)]);
const ashaRule = z.strictObject({ rule: z.literal('asha'), min_steps: count, reduction: count });

const tuningAnswer = z.strictObject({
  task_type: z.literal('tune_hyperparameters'),
  ...noResults,
  tuning_results: tuningResults,
  cost_estimate: costEstimate.nullable().describe('of all trials; null: it is not known how long one takes'),
  costRangeUsd: range.nullable(),
  parameters: z.array(
    z.strictObject({
      name: z.string(),
      range: searchRange.describe('as a sweep file has it'),
      why: z.string(),
    }),
  ),
  sampler: z.enum(['tpe', 'halton']),
  earlyStopping: ashaRule.nullable(),
  trials: count,
  parallel: count.nullable().describe('null: as many as there is room for'),
  trialHours: amount.nullable(),
  reasons: lines,
  files: z.array(configFile).describe('a sweep file'),
  pricesAsOf: z.string(),
  assumptions: lines,
  sources: lines,
});

const automlAnswer = z.strictObject({
  task_type: z.literal('setup_automl'),
  ...noResults,
  pipeline_config: pipelineConfig,
  tuning_results: tuningResults,
  cost_estimate: costEstimate
    .nullable()
    .describe('of all trials, at most; null: time or parallel is not given'),
  name: z.string(),
  dir: z.string(),
  models: z.array(z.enum(automlModels)),
  metric: z.string().nullable().describe('null: log_loss or rmse, by the target'),
  trials: count,
  parallel: count.nullable().describe('null: as many as there is room for'),
  earlyStopping: ashaRule,
  parameters: z.array(z.strictObject({ name: z.string(), range: searchRange })),
  reports: lines,
  reasons: lines,
  files: z.array(configFile).describe('a task file'),
  pricesAsOf: z.string(),
  assumptions: lines,
  sources: lines,
});

export const answerSchemas = {
  design_pipeline: pipelineAnswer,
  configure_distributed: distributedAnswer,
  tune_hyperparameters: tuningAnswer,
  manage_compute: computeAnswer,
  setup_automl: automlAnswer,
} satisfies Readonly<Record<TrainingAction, z.ZodObject>>;

export type AnswerOf<Task extends TrainingAction> = z.output<(typeof answerSchemas)[Task]>;
export type AdviceAnswer = AnswerOf<TrainingAction>;

/** The JSON Schema of every answer, by its `task_type`. */
export function answerJsonSchema(): Record<string, unknown> {
  const answer = z.discriminatedUnion('task_type', [
    pipelineAnswer,
    distributedAnswer,
    tuningAnswer,
    computeAnswer,
    automlAnswer,
  ]);
  return z.toJSONSchema(answer, {
    target: 'draft-2020-12',
    io: 'output',
  });
}
