/** The first strategy that fits into the memory of the GPUs, in an order that depends on the size of the model. */
import type { StrategyWord } from './actionShape.ts';
import type { OptimizerName, Precision } from './contextFields.ts';
import {
  canOffload,
  hostBytesOf,
  type MemoryParts,
  type MemoryQuestion,
  memoryOf,
  type Offload,
  type ParallelDegrees,
  type ParallelMethod,
  type Recomputation,
} from './memory.ts';
import type { ModelShape } from './modelShape.ts';

/** Share of the memory that is planned with: CUDA's context, buffers of NCCL, logits and fragmentation take the rest. */
export const usableShare = 0.9;
const bytesPerGb = 1e9;

export interface PlanQuestion {
  readonly shape: ModelShape;
  readonly precision: Precision;
  readonly optimizer: OptimizerName;
  readonly gpuCount: number;
  readonly gpusPerNode: number;
  /** Of one GPU. */
  readonly memoryGb: number;
  /** Samples of one step on all GPUs; null: as many as the GPUs compute at once. */
  readonly batchSize: number | null;
  readonly preferred: StrategyWord;
  /** null: only if activations do not fit otherwise. */
  readonly gradientCheckpointing: boolean | null;
  /** Of a node, as far as the job has it. */
  readonly hostMemoryGb: number;
  /** Whether gradients and optimizer are in that. null: only if the training does not fit otherwise. */
  readonly cpuOffload: boolean | null;
  /** Horovod is all that is offered for TensorFlow. */
  readonly onlyDataParallel: boolean;
}

/** One strategy with what it needs. */
export interface ParallelPlan {
  readonly method: ParallelMethod;
  readonly degrees: ParallelDegrees;
  readonly microBatch: number;
  /** Steps whose gradients are added before the optimizer's. */
  readonly accumulation: number;
  readonly recomputation: Recomputation;
  readonly offload: Offload;
  readonly memory: MemoryParts;
  /** What the offload takes of the memory of each node; 0 without one. */
  readonly hostBytes: number;
  readonly fits: boolean;
}

/** null where the batch has too few samples for the GPUs, or leaves a remainder. */
export interface PlanAnswer {
  /** null: nothing fits. */
  readonly chosen: ParallelPlan | null;
  /** Every strategy that was looked at, in the order of preference; of each the first that fits, else the smallest. */
  readonly considered: readonly ParallelPlan[];
}

const fallback: readonly ParallelMethod[] = ['ddp', 'zero1', 'zero2', 'fsdp', 'tensor', 'pipeline'];

/** The default by size first, then what is tried when it does not fit. @param parameters of the model */
export function methodsBySize(parameters: number): readonly ParallelMethod[] {
  if (parameters < 1e9) return fallback;
  if (parameters < 10e9) return ['zero2', 'fsdp', 'tensor', 'pipeline'];
  if (parameters <= 100e9) return ['zero3', 'tensor', 'pipeline'];
  return ['pipeline', 'zero3'];
}

const preferredMethods: Readonly<Record<StrategyWord, readonly ParallelMethod[]>> = {
  none: [],
  data_parallel: ['ddp'],
  fsdp: ['fsdp'],
  deepspeed: ['zero1', 'zero2', 'zero3'],
  model_parallel: ['tensor'],
  pipeline_parallel: ['pipeline'],
};

/** Recomputing activations comes before a larger strategy, and every strategy before an offload, which slows each step down. */
export function planParallel(question: PlanQuestion): PlanAnswer {
  const considered: ParallelPlan[] = [];
  const methods = methodsOf(question);
  const asked = preferredMethods[question.preferred];
  const order = (method: ParallelMethod, offload: Offload) =>
    offload === 'none' ? 0 : asked.includes(method) ? 1 : 2;
  // The sort is stable: of the same order, what moves less comes first.
  const candidates = offloadsOf(question)
    .flatMap((offload) => methods.map((method) => ({ method, offload })))
    .sort((a, b) => order(a.method, a.offload) - order(b.method, b.offload));
  for (const { method, offload } of candidates) {
    if (!canOffload(offload, { ...question, method })) continue;
    const plan = bestOf(method, question, offload);
    if (plan === null) continue;
    considered.push(plan);
    if (plan.fits) return { chosen: plan, considered };
  }
  return { chosen: null, considered };
}

/** What moves least first. */
function offloadsOf({ cpuOffload, onlyDataParallel }: PlanQuestion): readonly Offload[] {
  if (cpuOffload === false || onlyDataParallel) return ['none'];
  return cpuOffload === true ? ['optimizer', 'parameters'] : ['none', 'optimizer', 'parameters'];
}

function methodsOf({
  shape,
  gpuCount,
  preferred,
  onlyDataParallel,
}: PlanQuestion): readonly ParallelMethod[] {
  if (gpuCount === 1) return ['single'];
  if (onlyDataParallel) return ['ddp'];
  return [...new Set([...preferredMethods[preferred], ...methodsBySize(shape.parameters)])];
}

/** @returns null: the GPUs cannot be divided so */
function bestOf(method: ParallelMethod, question: PlanQuestion, offload: Offload): ParallelPlan | null {
  const plans = degreesOf(method, question).map((degrees) => planWith(method, degrees, question, offload));
  return plans.find(({ fits }) => fits) ?? plans.at(-1) ?? null;
}

/** The plan of one method for these degrees. */
export function planWith(
  method: ParallelMethod,
  degrees: ParallelDegrees,
  question: PlanQuestion,
  offload: Offload = 'none',
): ParallelPlan {
  const { shape, precision, optimizer, memoryGb, batchSize, gpuCount, gpusPerNode, hostMemoryGb } = question;
  const limitBytes = usableShare * memoryGb * bytesPerGb;
  const asked = (microBatch: number, recomputation: Recomputation): MemoryQuestion => {
    const training = { shape, precision, optimizer };
    return { ...training, method, degrees, microBatch, recomputation, offload };
  };
  const with_ = (microBatch: number, recomputation: Recomputation) =>
    memoryOf(asked(microBatch, recomputation));
  const modes = recomputationsOf(question.gradientCheckpointing);
  const mode = modes.find((each) => with_(1, each).totalBytes <= limitBytes) ?? modes.at(-1) ?? 'full';
  const perRank = Math.max(1, Math.floor((batchSize ?? degrees.data) / degrees.data));
  let microBatch = 1;
  while (perRank % (2 * microBatch) === 0 && with_(2 * microBatch, mode).totalBytes <= limitBytes)
    microBatch *= 2;
  const memory = with_(microBatch, mode);
  const hostBytes = hostBytesOf(asked(microBatch, mode), Math.ceil(gpuCount / gpusPerNode));
  return {
    method,
    degrees,
    microBatch,
    accumulation: perRank / microBatch,
    recomputation: mode,
    offload,
    memory,
    hostBytes,
    fits: memory.totalBytes <= limitBytes && hostBytes <= hostMemoryGb * bytesPerGb,
  };
}

function recomputationsOf(gradientCheckpointing: boolean | null): readonly Recomputation[] {
  if (gradientCheckpointing === null) return ['none', 'selective', 'full'];
  return gradientCheckpointing ? ['full'] : ['none', 'selective'];
}

/** Ways to divide the GPUs, the ones that communicate least first. */
function degreesOf(method: ParallelMethod, question: PlanQuestion): readonly ParallelDegrees[] {
  const { gpuCount, gpusPerNode, shape } = question;
  if (method !== 'tensor' && method !== 'pipeline') return [{ data: gpuCount, tensor: 1, pipeline: 1 }];
  // Tensor parallelism communicates in every layer, so it stays within a node.
  const tensors = divisors(gpuCount).filter(
    (tensor) => tensor <= gpusPerNode && gpusPerNode % tensor === 0 && shape.attentionHeads % tensor === 0,
  );
  if (method === 'tensor')
    return tensors
      .filter((tensor) => tensor > 1)
      .map((tensor) => ({ data: gpuCount / tensor, tensor, pipeline: 1 }));
  const tensor = tensors.at(-1) ?? 1;
  return divisors(gpuCount / tensor)
    .filter((pipeline) => pipeline > 1 && shape.layers % pipeline === 0)
    .map((pipeline) => ({ data: gpuCount / (tensor * pipeline), tensor, pipeline }));
}

function divisors(count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => index + 1).filter((each) => count % each === 0);
}
