/**
 * Memory of one GPU in bytes, by the published arithmetic:
 *
 * - Weights, gradients, optimizer: Rajbhandari, Rasley, Ruwase, He, "ZeRO: Memory Optimizations Toward Training Trillion Parameter
 *   Models" (2020), section 3.1 and figure 1. Mixed precision with Adam has 2 + 2 + 12 bytes for each parameter. Stage 1 divides the
 *   optimizer by the data-parallel GPUs, stage 2 the gradients too, stage 3 (and FSDP) the weights too.
 * - Tensor and pipeline parallelism divide all of them by their degrees; Megatron-LM keeps gradients of bf16 in fp32 (4 bytes), and
 *   its distributed optimizer is stage 1.
 * - Activations: Korthikanti and others, "Reducing Activation Recomputation in Large Transformer Models" (2022), equations 1 to 6, for
 *   16 bits: s·b·h·L·(34 + 5·a·s/h); 34·s·b·h·L if attention is recomputed; 2·s·b·h·L if everything is. Tensor with sequence
 *   parallelism divides them; a pipeline does not, because its first stage keeps a microbatch for each stage.
 */
import type { OptimizerName, Precision } from './contextFields.ts';
import type { ModelShape } from './modelShape.ts';

export const parallelMethods = [
  'single',
  'ddp',
  'zero1',
  'zero2',
  'fsdp',
  'zero3',
  'tensor',
  'pipeline',
] as const;
export type ParallelMethod = (typeof parallelMethods)[number];

/** What is computed a second time instead of being kept: nothing, attention, or every layer. */
export const recomputations = ['none', 'selective', 'full'] as const;
export type Recomputation = (typeof recomputations)[number];

/** Their product is the world size. */
export interface ParallelDegrees {
  readonly data: number;
  readonly tensor: number;
  readonly pipeline: number;
}

export interface MemoryParts {
  readonly parametersBytes: number;
  readonly gradientsBytes: number;
  readonly optimizerBytes: number;
  readonly activationsBytes: number;
  /** Of stage 3: the weights of the layer that is computed, and of the next one, which is fetched meanwhile. */
  readonly gatheredBytes: number;
  readonly totalBytes: number;
}

interface BytesPerParameter {
  readonly weights: number;
  readonly gradients: number;
  readonly optimizer: number;
}

/** In mixed precision the optimizer keeps a copy of the weights in fp32. Momentum and variance are fp32, of adam8bit one byte each. */
export function bytesPerParameter(precision: Precision, optimizer: OptimizerName): BytesPerParameter {
  const moments = { adam: 8, adamw: 8, sgd: 4, adam8bit: 2 }[optimizer];
  if (precision === 'fp32') return { weights: 4, gradients: 4, optimizer: moments };
  return { weights: 2, gradients: 2, optimizer: 4 + moments };
}

/** By what weights, gradients and optimizer are divided among the data-parallel GPUs. */
const stageOf: Readonly<Record<ParallelMethod, 0 | 1 | 2 | 3>> = {
  single: 0,
  ddp: 0,
  zero1: 1,
  zero2: 2,
  fsdp: 3,
  zero3: 3,
  tensor: 1,
  pipeline: 1,
};

export interface MemoryQuestion {
  readonly shape: ModelShape;
  readonly precision: Precision;
  readonly optimizer: OptimizerName;
  readonly method: ParallelMethod;
  readonly degrees: ParallelDegrees;
  /** Samples that a GPU computes at once. */
  readonly microBatch: number;
  readonly recomputation: Recomputation;
}

export function memoryOf(question: MemoryQuestion): MemoryParts {
  const { shape, precision, optimizer, method, degrees } = question;
  const stage = stageOf[method];
  const isMegatron = method === 'tensor' || method === 'pipeline';
  const bytes = bytesPerParameter(precision, optimizer);
  const gradients = isMegatron && precision === 'bf16' ? 4 : bytes.gradients;
  const own = shape.parameters / (degrees.tensor * degrees.pipeline);
  const share = (from: number) => (stage >= from ? degrees.data : 1);
  const parts = {
    parametersBytes: (own * bytes.weights) / share(3),
    gradientsBytes: (own * gradients) / share(2),
    optimizerBytes: (own * bytes.optimizer) / share(1),
    activationsBytes: activationBytes(question),
    gatheredBytes:
      stage === 3 ? own * bytes.weights * Math.min(1, 2 / shape.layers) * (1 - 1 / degrees.data) : 0,
  };
  return { ...parts, totalBytes: Object.values(parts).reduce((sum, each) => sum + each, 0) };
}

/** With full recomputation one layer is whole at a time: it is counted, which the formula of the paper leaves out. */
export function activationBytes({
  shape,
  precision,
  degrees,
  microBatch,
  recomputation,
}: Omit<MemoryQuestion, 'method' | 'optimizer'>): number {
  const { sequenceLength, hiddenSize, attentionHeads, layers } = shape;
  const unit = sequenceLength * microBatch * hiddenSize * (precision === 'fp32' ? 2 : 1);
  const attention = (5 * attentionHeads * sequenceLength) / hiddenSize;
  const perLayer = { none: 34 + attention, selective: 34, full: 2 }[recomputation];
  const whole = recomputation === 'full' ? 34 + attention : 0;
  return (unit * (layers * perLayer + whole)) / degrees.tensor;
}
