/** `manage_compute`: which GPUs and how many, how long and for how much, on demand or spot, and how to scale. Pure. */
import { communicationOf, flopsPerParameterAndToken, utilisation } from './communication.ts';
import type { TrainingContext } from './contextFields.ts';
import { memorySources, planQuestion } from './distributed.ts';
import { type GpuModel, gpuOf, pricesAsOf } from './gpus.ts';
import { bytesPerParameter, type ParallelMethod } from './memory.ts';
import { parametersOf } from './modelShape.ts';
import { planParallel } from './parallelPlan.ts';

/** Part of the contract with scripts: exactly these members. */
export interface CostEstimate {
  readonly hourly_cost_usd: number;
  readonly estimated_duration_hours: number;
  readonly total_cost_usd: number;
}

/** From the highest assumed utilisation to the lowest. */
export type EstimateRange = readonly [least: number, most: number];

export interface ComputeOption extends CostEstimate {
  readonly gpu: string;
  readonly gpuCount: number;
  readonly method: ParallelMethod;
  readonly durationRangeHours: EstimateRange;
  readonly costRangeUsd: EstimateRange;
  /** How many times longer a step takes because of the exchange of data; 1: all of it happens during computing. */
  readonly slowdown: number;
  readonly isWithinLimits: boolean;
}

export interface SpotEstimate extends CostEstimate {
  readonly interruptions: number;
  /** Work that is done twice, and restarts. */
  readonly lostHours: number;
  readonly isCheaper: boolean;
}

export interface ScalingPolicy {
  readonly minGpus: number;
  readonly maxGpus: number;
  /** Counts in between that fit as well. */
  readonly counts: readonly number[];
  readonly reasons: readonly string[];
}

export interface ComputeAdvice {
  /** Of the recommendation, on demand. null: no GPUs fit. */
  readonly cost_estimate: CostEstimate | null;
  readonly recommended: ComputeOption | null;
  readonly reasons: readonly string[];
  /** What else fits: of each GPU model the fewest that do, the cheapest first. */
  readonly alternatives: readonly ComputeOption[];
  /** null: no GPUs fit, or interruptions would take more time than passes between them. */
  readonly spot: SpotEstimate | null;
  readonly checkpointIntervalMinutes: number | null;
  readonly checkpointBytes: number;
  readonly scalingPolicy: ScalingPolicy | null;
  readonly tokens: number;
  readonly flops: number;
  readonly pricesAsOf: string;
  readonly assumptions: readonly string[];
  readonly sources: readonly string[];
}

/** Text of most languages that models are trained on has about four bytes for each token. */
const bytesPerToken = 4;
const gpuCounts = [1, 2, 4, 8, 16, 32, 64, 128];

/** Samples of a step where none are given; a few hundred thousand tokens, as large models are trained with. */
const assumedBatch = 128;
/** More GPUs than those with which a step takes half as long again, because of the exchange of data, are a waste. */
const slowdownMax = 1.5;

/** What trainings of a size are usually given, before memory and limits are looked at. */
const usualGpus: readonly {
  readonly belowParameters: number;
  readonly memoryGb: number;
  readonly type: 'a100' | 'h100';
  readonly gpuCount: number;
}[] = [
  { belowParameters: 1e9, type: 'a100', memoryGb: 40, gpuCount: 1 },
  { belowParameters: 7e9, type: 'a100', memoryGb: 80, gpuCount: 1 },
  { belowParameters: 13e9, type: 'a100', memoryGb: 80, gpuCount: 4 },
  { belowParameters: 70e9, type: 'h100', memoryGb: 80, gpuCount: 8 },
  { belowParameters: Number.POSITIVE_INFINITY, type: 'h100', memoryGb: 80, gpuCount: 16 },
];

/** @param context has passed the checks of `readContext` with the same GPUs */
export function manageCompute(context: TrainingContext, gpus: readonly GpuModel[]): ComputeAdvice {
  const tokens = tokensOf(context);
  const parameters = parametersOf(context);
  const flops = flopsPerParameterAndToken * parameters * tokens;
  const options = optionsFor(context, gpus, flops);
  const { chosen, reasons } = recommendation(context, options);
  const intervalMinutes = chosen === null ? null : checkpointMinutes(chosen.estimated_duration_hours);
  const bytes = bytesPerParameter('bf16', context.training.optimizer);
  const checkpointBytes = parameters * (bytes.weights + bytes.optimizer);
  return {
    cost_estimate: chosen === null ? null : costOf(chosen),
    recommended: chosen,
    reasons,
    alternatives: fewestOfEach(options).filter((each) => each !== chosen),
    spot: chosen === null || intervalMinutes === null ? null : spotOf(chosen, context, intervalMinutes),
    checkpointIntervalMinutes: intervalMinutes,
    checkpointBytes,
    scalingPolicy: chosen === null ? null : scalingOf(chosen, context, options),
    tokens,
    flops,
    pricesAsOf,
    assumptions: assumptionsOf(context, tokens, checkpointBytes),
    sources: [...memorySources, 'Hoffmann and others 2022: the same 6·N·D rule for the cost of a training'],
  };
}

function tokensOf({ training, dataSizeGb }: TrainingContext): number {
  return training.targetTokens ?? ((dataSizeGb ?? 0) * 1e9 * training.epochs) / bytesPerToken;
}

/** Everything that fits into memory, in the order of the table of GPUs, smaller counts first. */
function optionsFor(
  context: TrainingContext,
  gpus: readonly GpuModel[],
  flops: number,
): readonly ComputeOption[] {
  const { compute, training } = context;
  const only = compute.gpuType === null ? null : gpuOf(compute, gpus);
  const offered = gpus.filter((gpu) =>
    compute.memoryGb === null ? compute.gpuType === null || gpu.type === compute.gpuType : gpu === only,
  );
  const counts = compute.gpuCount === null ? gpuCounts : [compute.gpuCount];
  return offered.flatMap((gpu) =>
    counts.flatMap((gpuCount) => {
      const batchSize = training.batchSize ?? Math.ceil(assumedBatch / gpuCount) * gpuCount;
      // An offload makes steps longer than these figures can tell.
      const question = { ...planQuestion(context, gpu, gpuCount), batchSize, cpuOffload: false };
      const peak = gpu.peakTflops[question.precision];
      const isFilled = gpuCount <= compute.gpusPerNode || gpuCount % compute.gpusPerNode === 0;
      if (peak === null || !isFilled) return [];
      const { chosen } = planParallel(question);
      if (chosen === null) return [];
      if (training.batchSize !== null && training.batchSize % chosen.degrees.data !== 0) return [];
      const { shape, precision } = question;
      const exchange = communicationOf(chosen, shape, gpu, context, precision);
      const { computeSeconds, gradientSeconds, activationSeconds } = exchange;
      const slowdown = Math.max(1, gradientSeconds / computeSeconds) + activationSeconds / computeSeconds;
      const peakHours = (flops * slowdown) / (gpuCount * peak * 1e12 * 3_600);
      return [optionOf(gpu, gpuCount, { method: chosen.method, slowdown, peakHours }, context)];
    }),
  );
}

/** @param peakHours at the peak of all GPUs */
function optionOf(
  gpu: GpuModel,
  gpuCount: number,
  {
    method,
    slowdown,
    peakHours,
  }: Pick<ComputeOption, 'method' | 'slowdown'> & { readonly peakHours: number },
  { budget }: TrainingContext,
): ComputeOption {
  const hourly = gpu.usdPerHour * gpuCount;
  const hours = peakHours / utilisation.middle;
  const range: EstimateRange = [peakHours / utilisation.high, peakHours / utilisation.low];
  const total = hourly * hours;
  return {
    gpu: gpu.name,
    gpuCount,
    method,
    hourly_cost_usd: hourly,
    estimated_duration_hours: hours,
    total_cost_usd: total,
    durationRangeHours: range,
    costRangeUsd: [hourly * range[0], hourly * range[1]],
    slowdown,
    // The most that it may take has to be within them, or the estimate promises what it cannot keep.
    isWithinLimits:
      (budget.usd === null || hourly * range[1] <= budget.usd) &&
      (budget.hours === null || range[1] <= budget.hours),
  };
}

function costOf({ hourly_cost_usd, estimated_duration_hours, total_cost_usd }: CostEstimate): CostEstimate {
  return { hourly_cost_usd, estimated_duration_hours, total_cost_usd };
}

function recommendation(
  { compute, budget, ...context }: TrainingContext,
  options: readonly ComputeOption[],
): { readonly chosen: ComputeOption | null; readonly reasons: readonly string[] } {
  if (options.length === 0)
    return {
      chosen: null,
      reasons: [
        compute.gpuCount === null
          ? `No GPUs of the table fit, up to ${gpuCounts.at(-1)} of them.`
          : `${compute.gpuCount} GPUs do not fit; leave gpu_count out to see how many do, or change batch_size.`,
      ],
    };
  const parameters = parametersOf(context);
  const usual = usualGpus.find(({ belowParameters }) => parameters < belowParameters);
  const isUsual = ({ gpu, gpuCount }: ComputeOption) =>
    usual !== undefined &&
    gpu.toLowerCase().startsWith(usual.type) &&
    gpu.includes(`${usual.memoryGb}GB`) &&
    gpuCount >= usual.gpuCount;
  const first = options.find(isUsual) ?? null;
  const size = `${Number((parameters / 1e9).toPrecision(3))} B parameters`;
  const within = options.filter((each) => each.isWithinLimits);
  const hasLimits = budget.usd !== null || budget.hours !== null;
  if (first !== null && (!hasLimits || first.isWithinLimits))
    return { chosen: first, reasons: [`The usual GPUs for ${size} that fit into memory.`] };
  const cheapest = byCost(within)[0];
  if (cheapest !== undefined)
    return {
      chosen: cheapest,
      reasons: [`The cheapest that fit ${size} into memory${hasLimits ? ' and the limits' : ''}.`],
    };
  const least = byCost(options)[0] ?? null;
  if (!hasLimits || least === null) return { chosen: least, reasons: ['The cheapest that fit into memory.'] };
  const fastest = options.toSorted((a, b) => a.durationRangeHours[1] - b.durationRangeHours[1])[0] ?? least;
  return {
    chosen: least,
    reasons: [
      'Nothing is within the limits; this is the cheapest that fits into memory.',
      `It may cost up to ${Math.ceil(least.costRangeUsd[1])} USD; the fastest, ${fastest.gpuCount} × ${fastest.gpu}, ` +
        `may take up to ${fastest.durationRangeHours[1].toFixed(1)} h.`,
    ],
  };
}

/** Counts of one GPU model cost the same, so the fewest come first. */
function byCost(options: readonly ComputeOption[]): readonly ComputeOption[] {
  return options.toSorted(
    (a, b) => Math.round(100 * (a.total_cost_usd - b.total_cost_usd)) || a.gpuCount - b.gpuCount,
  );
}

function fewestOfEach(options: readonly ComputeOption[]): readonly ComputeOption[] {
  return byCost(
    [...Map.groupBy(options, ({ gpu }) => gpu).values()].flatMap((each) => {
      const fewest = each.toSorted((a, b) => a.gpuCount - b.gpuCount);
      return fewest.find(({ isWithinLimits }) => isWithinLimits) ?? fewest[0] ?? [];
    }),
  );
}

/** Longer jobs save more seldom: 10 minutes below an hour, 30 up to 4 hours, 1 hour up to a day, then 2 hours. */
export function checkpointMinutes(hours: number): number {
  if (hours < 1) return 10;
  if (hours < 4) return 30;
  return hours <= 24 ? 60 : 120;
}

/** Each interruption of any node ends the gang: it loses half an interval on average, and a restart. */
function spotOf(
  {
    estimated_duration_hours: hours,
    hourly_cost_usd: hourly,
    gpuCount,
    total_cost_usd: total,
  }: ComputeOption,
  { spot, compute }: TrainingContext,
  intervalMinutes: number,
): SpotEstimate | null {
  const nodes = Math.ceil(gpuCount / compute.gpusPerNode);
  const perHour = (spot.interruptionsPerDay * nodes) / 24;
  // A job that is interrupted within its first interval has lost what it did and not half an interval.
  const lostEach = Math.min(intervalMinutes / 60, hours) / 2 + spot.restartMinutes / 60;
  const lostShare = perHour * lostEach;
  if (lostShare >= 1) return null;
  // Lost time can be interrupted too, which is the sum of a geometric series.
  const duration = hours / (1 - lostShare);
  const spotHourly = hourly * spot.priceFactor;
  return {
    hourly_cost_usd: spotHourly,
    estimated_duration_hours: duration,
    total_cost_usd: spotHourly * duration,
    interruptions: perHour * duration,
    lostHours: duration - hours,
    isCheaper: spotHourly * duration < total,
  };
}

function scalingOf(
  chosen: ComputeOption,
  { training, compute }: TrainingContext,
  options: readonly ComputeOption[],
): ScalingPolicy {
  const counts = options
    .filter(({ gpu, slowdown }) => gpu === chosen.gpu && slowdown <= slowdownMax)
    .map(({ gpuCount }) => gpuCount);
  const minGpus = Math.min(chosen.gpuCount, ...counts);
  const maxGpus = Math.max(chosen.gpuCount, ...counts);
  return {
    minGpus,
    maxGpus,
    counts,
    reasons: [
      compute.gpuCount === null
        ? `fewer than ${minGpus} do not hold the training in memory`
        : 'only this number of GPUs was asked about',
      `with more than ${maxGpus}, the batch of ${training.batchSize ?? assumedBatch} samples does not divide, ` +
        'or a step takes half as long again because of the exchange of data',
    ],
  };
}

function assumptionsOf(context: TrainingContext, tokens: number, checkpointBytes: number): readonly string[] {
  const { training, spot, compute, dataSizeGb } = context;
  const neededGb = (dataSizeGb ?? 0) + (2 * checkpointBytes) / 1e9;
  const source =
    training.targetTokens === null
      ? `${dataSizeGb} GB of text with ${bytesPerToken} bytes a token, ${training.epochs} times`
      : 'as given';
  return [
    `${Math.round(tokens)} tokens: ${source}`,
    `${utilisation.low * 100} to ${utilisation.high * 100} % of the peak is reached; the estimate stands at ${utilisation.middle * 100} %`,
    `a step has ${training.batchSize ?? assumedBatch} samples, and exchanges data while it computes`,
    `nodes are connected by ${compute.interconnect === 'infiniband' ? 'infiniband' : 'ethernet'}, GPUs of one node by nvlink, or pcie where they have none`,
    `spot costs ${spot.priceFactor} of on-demand, with ${spot.interruptionsPerDay} interruptions a day and node, and ${spot.restartMinutes} minutes to restart`,
    ...(compute.storageGb !== null && compute.storageGb < neededGb
      ? [
          `storage of ${compute.storageGb} GB is too small for the data and two checkpoints: ${Math.ceil(neededGb)} GB`,
        ]
      : []),
  ];
}
