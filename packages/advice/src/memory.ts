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
 * - Offload: Ren and others, "ZeRO-Offload: Democratizing Billion-Scale Model Training" (2021), section 3: the GPU keeps the weights in 16
 *   bits, and gradients only until they are moved. Rajbhandari and others, "ZeRO-Infinity" (2021): with weights moved too, it keeps the
 *   layers that are computed. A node then holds 16 bytes for each parameter (gradients in fp32 and the 12 above), with weights 18, and
 *   half as much again in buffers, as DeepSpeed's own estimate of memory counts.
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

/** What is in the memory of the node instead of that of its GPUs: nothing, gradients and optimizer, or the weights too. */
export const offloads = ['none', 'optimizer', 'parameters'] as const;
export type Offload = (typeof offloads)[number];

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

const momentBytes: Readonly<Record<OptimizerName, number>> = { adam: 8, adamw: 8, sgd: 4, adam8bit: 2 };

/** In mixed precision the optimizer keeps a copy of the weights in fp32. Momentum and variance are fp32, of adam8bit one byte each. */
export function bytesPerParameter(precision: Precision, optimizer: OptimizerName): BytesPerParameter {
  const moments = momentBytes[optimizer];
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
  /** Absent: nothing. */
  readonly offload?: Offload;
}

export function memoryOf(question: MemoryQuestion): MemoryParts {
  const { shape, precision, optimizer, method, degrees, offload = 'none' } = question;
  const stage = stageOf[method];
  const isMegatron = isMegatronMethod(method);
  const bytes = bytesPerParameter(precision, optimizer);
  const gradients = isMegatron && precision === 'bf16' ? 4 : bytes.gradients;
  const own = shape.parameters / (degrees.tensor * degrees.pipeline);
  const share = (from: number) => (stage >= from ? degrees.data : 1);
  const twoLayers = Math.min(1, 2 / shape.layers);
  const areWeightsAway = offload === 'parameters';
  const kept = (own * gradients) / share(2);
  // Those of the layer that is computed, and of the one before it, which are moved meanwhile. Megatron-LM moves the optimizer alone.
  const moved = Math.min(kept, own * gradients * twoLayers);
  const gathered = own * bytes.weights * twoLayers;
  const parts = {
    parametersBytes: areWeightsAway ? 0 : (own * bytes.weights) / share(3),
    gradientsBytes: offload === 'none' || isMegatron ? kept : moved,
    optimizerBytes: offload === 'none' ? (own * bytes.optimizer) / share(1) : 0,
    activationsBytes: activationBytes(question),
    gatheredBytes: areWeightsAway ? gathered : stage === 3 ? gathered * (1 - 1 / degrees.data) : 0,
  };
  return { ...parts, totalBytes: Object.values(parts).reduce((sum, each) => sum + each, 0) };
}

/** Tensor and pipeline parallelism are those of Megatron-LM. */
export function isMegatronMethod(method: ParallelMethod): boolean {
  return method === 'tensor' || method === 'pipeline';
}

/** Buffers that are pinned for copies, as a share of what is offloaded. */
const hostBufferFactor = 1.5;

/** What an offload takes of the memory of each node. @param nodes among which the parts are divided */
export function hostBytesOf(
  { shape, precision, optimizer, offload = 'none' }: MemoryQuestion,
  nodes: number,
): number {
  if (offload === 'none') return 0;
  // Gradients and a copy of the weights, both in fp32, and the moments.
  const states = 4 + 4 + momentBytes[optimizer];
  const weights = offload === 'parameters' ? bytesPerParameter(precision, optimizer).weights : 0;
  return (hostBufferFactor * shape.parameters * (states + weights)) / nodes;
}

/**
 * ZeRO-Offload is of stages 2 and 3, on one GPU too, and moves weights with stage 3 only. FSDP moves all or nothing. Megatron-LM computes
 * Adam on the CPU, in mixed precision. Optimizers of 8 bits compute on GPUs alone.
 */
export function canOffload(
  offload: Offload,
  { method, precision, optimizer }: Pick<MemoryQuestion, 'method' | 'precision' | 'optimizer'>,
): boolean {
  if (offload === 'none') return true;
  if (optimizer === 'adam8bit') return false;
  if (isMegatronMethod(method)) return offload === 'optimizer' && precision !== 'fp32' && optimizer !== 'sgd';
  const methods: Readonly<Record<typeof offload, readonly ParallelMethod[]>> = {
    optimizer: ['single', 'zero2', 'zero3'],
    parameters: ['single', 'fsdp', 'zero3'],
  };
  return methods[offload].includes(method);
}

/** Full recomputation holds all activations of one layer at a time. They are counted here; the paper's formula omits them. */
export function activationBytes({
  shape,
  precision,
  degrees,
  microBatch,
  recomputation,
}: Omit<MemoryQuestion, 'method' | 'optimizer' | 'offload'>): number {
  const { sequenceLength, hiddenSize, attentionHeads, layers } = shape;
  const unit = sequenceLength * microBatch * hiddenSize * (precision === 'fp32' ? 2 : 1);
  const attention = (5 * attentionHeads * sequenceLength) / hiddenSize;
  const perLayer = { none: 34 + attention, selective: 34, full: 2 }[recomputation];
  const whole = recomputation === 'full' ? 34 + attention : 0;
  return (unit * (layers * perLayer + whole)) / degrees.tensor;
}
