/** `configure_distributed`: a strategy that fits, with its arithmetic, files and tips. Pure. */
import type { Finding } from '@muster/common/spec/problems';
import type { StrategyWord } from './actionShape.ts';
import { type Communication, communicationOf, linkOf } from './communication.ts';
import { type ConfigFile, configFiles } from './configFiles.ts';
import type { Precision, TrainingContext } from './contextFields.ts';
import { contradiction } from './contradictions.ts';
import { type GpuModel, gpuOf, usualPrecision } from './gpus.ts';
import type { ParallelMethod } from './memory.ts';
import { type ModelShape, shapeOf } from './modelShape.ts';
import { type ParallelPlan, type PlanQuestion, planParallel, usableShare } from './parallelPlan.ts';
import { type AdviceTip, gigabytes, ibDisableOf, tipsFor } from './tips.ts';

/** Part of the contract with scripts: exactly these members. */
export interface DistributedConfig {
  readonly strategy: StrategyWord;
  readonly world_size: number;
  /** The one for GPUs. */
  readonly backend: 'nccl';
}

export interface SufficientGpus {
  readonly gpu: string;
  readonly gpuCount: number;
  readonly method: ParallelMethod;
}

export interface DistributedAdvice {
  /** null: the training does not fit; `sufficient` says where it would. */
  readonly distributed_config: DistributedConfig | null;
  /** The strategy that was chosen. null: none fits. */
  readonly plan: ParallelPlan | null;
  /** In sentences: the default by size, and why another one was chosen. */
  readonly reasons: readonly string[];
  /** What was looked at, in order. */
  readonly considered: readonly ParallelPlan[];
  readonly model: ModelShape;
  readonly gpu: string;
  readonly usableBytes: number;
  readonly precision: Precision;
  /** null: nothing fits. */
  readonly communication: Communication | null;
  readonly tips: readonly AdviceTip[];
  readonly files: readonly ConfigFile[];
  /** Where nothing fits: the least number of GPUs of each model that would do. */
  readonly sufficient: readonly SufficientGpus[];
  readonly assumptions: readonly string[];
  readonly sources: readonly string[];
}

export type AdviceResult<Advice> =
  | { readonly ok: true; readonly advice: Advice }
  | { readonly ok: false; readonly findings: readonly Finding[] };

const strategyWords: Readonly<Record<ParallelMethod, StrategyWord>> = {
  single: 'none',
  ddp: 'data_parallel',
  zero1: 'deepspeed',
  zero2: 'deepspeed',
  zero3: 'deepspeed',
  fsdp: 'fsdp',
  tensor: 'model_parallel',
  pipeline: 'pipeline_parallel',
};

export const methodNames: Readonly<Record<ParallelMethod, string>> = {
  single: 'one GPU',
  ddp: 'DDP',
  zero1: 'ZeRO stage 1',
  zero2: 'ZeRO stage 2',
  fsdp: 'FSDP',
  zero3: 'ZeRO stage 3',
  tensor: 'tensor parallelism',
  pipeline: 'pipeline and tensor parallelism',
};

/** A method with what it leaves to the memory of the node. */
export function planName({ method, offload }: Pick<ParallelPlan, 'method' | 'offload'>): string {
  const away = {
    none: '',
    optimizer: ' with the optimizer on the CPU',
    parameters: ' with weights and optimizer on the CPU',
  };
  return `${methodNames[method]}${away[offload]}`;
}

function strategyOf({ method, offload }: ParallelPlan): StrategyWord {
  // ZeRO-Offload, on one GPU too.
  return method === 'single' && offload !== 'none' ? 'deepspeed' : strategyWords[method];
}

export const memorySources: readonly string[] = [
  'Rajbhandari and others 2020, ZeRO: 2 + 2 + 12 bytes for each parameter with mixed-precision Adam, divided by stages 1 to 3',
  'Korthikanti and others 2022: activations of s·b·h·L·(34 + 5·a·s/h) bytes; 2·s·b·h·L with full recomputation',
  'Shoeybi and others 2019, Megatron-LM: four reductions of activations for each layer with tensor parallelism',
  'Kaplan and others 2020: 6 operations for each parameter and token; about 12 · layers · hidden_size² parameters',
];

const offloadSources: readonly string[] = [
  'Ren and others 2021, ZeRO-Offload: 2 bytes for each parameter stay on the GPU, gradients until they are moved',
  'Rajbhandari and others 2021, ZeRO-Infinity: with weights moved too, the layers that are computed stay',
  'the estimate of memory in DeepSpeed: 16 bytes for each parameter in the memory of the nodes, 18 with weights, times 1.5 for buffers',
];

/** @param context has passed the checks of `readContext` with the same GPUs */
export function configureDistributed(
  context: TrainingContext,
  gpus: readonly GpuModel[],
): AdviceResult<DistributedAdvice> {
  const gpu = gpuOf(context.compute, gpus);
  const { gpuCount } = context.compute;
  if (gpu === null || gpuCount === null) throw new TypeError('not a checked context: no GPUs');
  const question = planQuestion(context, gpu, gpuCount);
  const { chosen, considered } = planParallel(question);
  const { shape, precision } = question;
  const isOffloadAsked = considered.some(({ offload }) => offload !== 'none');
  const usableBytes = usableShare * gpu.memoryGb * 1e9;
  const base = {
    considered,
    model: shape,
    gpu: gpu.name,
    usableBytes,
    precision,
    assumptions: assumptionsOf(context, question, gpu, isOffloadAsked),
    sources: isOffloadAsked ? [...memorySources, ...offloadSources] : memorySources,
  };
  if (chosen === null) {
    const advice: DistributedAdvice = {
      ...base,
      distributed_config: null,
      plan: null,
      reasons: reasonsOf(considered, null, question, usableBytes),
      communication: null,
      tips: [],
      files: [],
      sufficient: sufficientGpus(context, gpus),
    };
    return { ok: true, advice };
  }
  const wrongBatch = batchProblem(chosen, question.batchSize);
  if (wrongBatch !== null) return { ok: false, findings: [wrongBatch] };
  const nodes = Math.ceil(gpuCount / question.gpusPerNode);
  const communication = communicationOf(chosen, shape, gpu, context, precision);
  const facts = {
    plan: chosen,
    shape,
    precision,
    optimizer: context.training.optimizer,
    gpu,
    nodes,
    communication,
  };
  const advice: DistributedAdvice = {
    ...base,
    distributed_config: {
      strategy: strategyOf(chosen),
      world_size: gpuCount,
      backend: 'nccl',
    },
    plan: chosen,
    reasons: reasonsOf(considered, chosen, question, usableBytes),
    communication,
    tips: tipsFor(facts),
    files: configFiles({
      ...facts,
      gpusPerNode: Math.min(gpuCount, question.gpusPerNode),
      ibDisable: ibDisableOf(communication.link, nodes),
      framework: context.framework === 'tensorflow' ? 'tensorflow' : 'pytorch',
    }),
    sufficient: chosen.offload === 'none' ? [] : sufficientGpus(context, gpus),
  };
  return { ok: true, advice };
}

/** What a plan is asked for on these GPUs. */
export function planQuestion(context: TrainingContext, gpu: GpuModel, gpuCount: number): PlanQuestion {
  const { training, compute } = context;
  return {
    shape: shapeOf(context),
    precision: training.precision ?? usualPrecision(gpu),
    optimizer: training.optimizer,
    gpuCount,
    gpusPerNode: compute.gpusPerNode,
    memoryGb: gpu.memoryGb,
    batchSize: training.batchSize,
    preferred: training.distributedStrategy,
    gradientCheckpointing: training.gradientCheckpointing,
    hostMemoryGb: compute.hostMemoryGb ?? gpu.hostGbPerGpu * Math.min(gpuCount, compute.gpusPerNode),
    cpuOffload: training.cpuOffload,
    onlyDataParallel: context.framework === 'tensorflow',
  };
}

function batchProblem({ degrees }: ParallelPlan, batchSize: number | null): Finding | null {
  if (batchSize === null || batchSize % degrees.data === 0) return null;
  const path = ['training_context', 'training_config', 'batch_size'];
  if (batchSize < degrees.data)
    return contradiction(
      path,
      `${batchSize} samples are fewer than the ${degrees.data} data-parallel ranks`,
      `${degrees.data} or a multiple of it, or fewer GPUs`,
    );
  const below = Math.floor(batchSize / degrees.data) * degrees.data;
  return contradiction(
    path,
    `${batchSize} samples do not divide among ${degrees.data} data-parallel ranks`,
    `a multiple, such as ${below} or ${below + degrees.data}`,
  );
}

function reasonsOf(
  considered: readonly ParallelPlan[],
  chosen: ParallelPlan | null,
  { shape, preferred, gpuCount, hostMemoryGb }: PlanQuestion,
  usableBytes: number,
): readonly string[] {
  const size = `${Number((shape.parameters / 1e9).toPrecision(3))} B parameters`;
  const [first] = considered;
  const why =
    gpuCount === 1
      ? 'There is one GPU.'
      : preferred === 'none'
        ? `For ${size} on ${gpuCount} GPUs ${first === undefined ? 'nothing' : planName(first)} comes first.`
        : `${preferred} was asked for.`;
  const refused = considered
    .filter((plan) => plan !== chosen)
    .map((plan) => `${planName(plan)} does not fit${missingOf(plan, usableBytes, hostMemoryGb)}`);
  const fits =
    chosen === null
      ? 'Nothing fits.'
      : `${planName(chosen)} fits${recomputedText(chosen)}: ${ofGpu(chosen, usableBytes)}.${hostText(chosen)}`;
  return [why, ...refused, fits];
}

function missingOf(plan: ParallelPlan, usableBytes: number, hostMemoryGb: number): string {
  if (plan.memory.totalBytes > usableBytes) return `${recomputedText(plan)}: ${ofGpu(plan, usableBytes)}.`;
  return `: it takes ${gigabytes(plan.hostBytes)} of the ${gigabytes(hostMemoryGb * 1e9)} of memory of each node.`;
}

function ofGpu({ memory }: ParallelPlan, usableBytes: number): string {
  return `${gigabytes(memory.totalBytes)} of ${gigabytes(usableBytes)} that can be used of each GPU`;
}

function hostText({ hostBytes }: ParallelPlan): string {
  return hostBytes === 0 ? '' : ` It takes ${gigabytes(hostBytes)} of the memory of each node.`;
}

function recomputedText({ recomputation }: ParallelPlan): string {
  return { none: '', selective: ' with attention recomputed', full: ' with every layer recomputed' }[
    recomputation
  ];
}

/** Beyond that the question is another one. */
const gpuCountMax = 8_192;

function sufficientGpus(context: TrainingContext, gpus: readonly GpuModel[]): readonly SufficientGpus[] {
  const { precision } = context.training;
  return gpus.flatMap((gpu) => {
    if (precision !== null && gpu.peakTflops[precision] === null) return [];
    for (let gpuCount = 1; gpuCount <= gpuCountMax; gpuCount *= 2) {
      const { chosen } = planParallel({
        ...planQuestion(context, gpu, gpuCount),
        batchSize: null,
        cpuOffload: false,
      });
      if (chosen !== null) return [{ gpu: gpu.name, gpuCount, method: chosen.method }];
    }
    return [];
  });
}

function assumptionsOf(
  context: TrainingContext,
  { shape, gpuCount, hostMemoryGb }: PlanQuestion,
  gpu: GpuModel,
  isOffloadAsked: boolean,
): readonly string[] {
  const { link, rateGbPerS } = linkOf(context, gpuCount, gpu);
  const { compute } = context;
  const isGiven = compute.interconnect !== null && compute.interconnectGbPerS !== null;
  return [
    `${usableShare * 100} % of a GPU's memory can be used; 1 GB is 1,000,000,000 bytes`,
    ...(shape.isDerived
      ? [
          `${shape.layers} layers with a hidden size of ${shape.hiddenSize}, from the parameters; ${shape.sequenceLength} tokens a sample`,
        ]
      : []),
    ...(isOffloadAsked && compute.hostMemoryGb === null
      ? [`a node has ${hostMemoryGb} GB of memory for the job; host_memory_gb says how much it has`]
      : []),
    ...(gpuCount > 1 && !isGiven ? [`the GPUs are connected by ${link} of ${rateGbPerS} GB/s`] : []),
  ];
}
