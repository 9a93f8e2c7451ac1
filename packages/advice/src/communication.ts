/** How long gradients take between GPUs, compared with how long computing takes. */
import type { Interconnect, Precision, TrainingContext } from './contextFields.ts';
import { type GpuModel, pcieGbPerS, usualRateGbPerS } from './gpus.ts';
import type { ModelShape } from './modelShape.ts';
import type { ParallelPlan } from './parallelPlan.ts';

/** Share of the peak that trainings reach; the reports on large models are between 30 % and 50 %. */
export const utilisation = { low: 0.3, middle: 0.4, high: 0.5 } as const;

/** Forward and backward: 6 operations for each parameter and token (Kaplan and others 2020, section 2.1). */
export const flopsPerParameterAndToken = 6;

export interface Communication {
  /** The slowest between two GPUs of the job. */
  readonly link: Interconnect | 'pcie';
  /** Of a GPU for nvlink and pcie, of a node otherwise; one direction. */
  readonly rateGbPerS: number;
  /** Of one optimizer step. */
  readonly computeSeconds: number;
  /** Gradients, and weights of stage 3, over the slowest link. They are exchanged while others are computed. */
  readonly gradientSeconds: number;
  /** Activations of tensor parallelism, within a node. Computing waits for them. */
  readonly activationSeconds: number;
  /** Exchanging gradients takes more than half as long as computing. */
  readonly isBound: boolean;
}

/** The link of the job and its rate. */
export function linkOf(
  { compute }: TrainingContext,
  gpuCount: number,
  gpu: GpuModel,
): Pick<Communication, 'link' | 'rateGbPerS'> {
  const inside = gpu.nvlinkGbPerS === null ? 'pcie' : 'nvlink';
  const link = compute.interconnect ?? (gpuCount > compute.gpusPerNode ? 'ethernet' : inside);
  const usual = link === 'nvlink' || link === 'pcie' ? insideGbPerS(gpu) : usualRateGbPerS[link];
  return { link, rateGbPerS: compute.interconnectGbPerS ?? usual };
}

function insideGbPerS({ nvlinkGbPerS }: GpuModel): number {
  return nvlinkGbPerS ?? pcieGbPerS;
}

/**
 * How many times the weights' size moves over the slowest link in a step. Data parallelism and stage 1 reduce gradients once, which moves
 * them twice. Stage 2 keeps only its part of the gradients, so it scatters them after each microbatch, and gathers weights once. Stage 3
 * also gathers weights twice for each microbatch (Rajbhandari and others 2020, section 7).
 */
function passesOf({ method, accumulation }: ParallelPlan): number {
  switch (method) {
    case 'zero2':
      return accumulation + 1;
    case 'zero3':
    case 'fsdp':
      return 3 * accumulation;
    default:
      return 2;
  }
}

/**
 * Beside the gradients, tensor parallelism reduces the activations of a layer four times for each microbatch, each of which moves them
 * twice (Shoeybi and others 2019, section 3). Pipelines move little.
 */
export function communicationOf(
  plan: ParallelPlan,
  shape: ModelShape,
  gpu: GpuModel,
  context: TrainingContext,
  precision: Precision,
): Communication {
  const { degrees, microBatch, accumulation } = plan;
  const { link, rateGbPerS } = linkOf(context, degrees.data * degrees.tensor * degrees.pipeline, gpu);
  const own = shape.parameters / (degrees.tensor * degrees.pipeline);
  const passes = passesOf(plan);
  const bytes = precision === 'fp32' ? 4 : 2;
  const tokens = microBatch * accumulation * shape.sequenceLength;
  const flops = flopsPerParameterAndToken * own * tokens;
  const peak = (gpu.peakTflops[precision] ?? 0) * 1e12;
  const computeSeconds = flops / (peak * utilisation.middle);
  const gradientSeconds = (passes * own * bytes * (1 - 1 / degrees.data)) / (rateGbPerS * 1e9);
  const reduced = 4 * 2 * (shape.layers / degrees.pipeline) * tokens * shape.hiddenSize * bytes;
  const activationSeconds = (reduced * (1 - 1 / degrees.tensor)) / (insideGbPerS(gpu) * 1e9);
  return {
    link,
    rateGbPerS,
    computeSeconds,
    gradientSeconds,
    activationSeconds,
    isBound: gradientSeconds > computeSeconds / 2,
  };
}
