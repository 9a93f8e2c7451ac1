/** What follows from the figures of a plan, each with the figure that led to it. */
import type { Communication } from './communication.ts';
import type { OptimizerName, Precision } from './contextFields.ts';
import { type GpuModel, pcieGbPerS } from './gpus.ts';
import { activationBytes, bytesPerParameter, isMegatronMethod, memoryOf } from './memory.ts';
import type { ModelShape } from './modelShape.ts';
import type { ParallelPlan } from './parallelPlan.ts';

export interface AdviceTip {
  readonly tip: string;
  /** The figure. */
  readonly because: string;
}

export interface TipFacts {
  readonly plan: ParallelPlan;
  readonly shape: ModelShape;
  readonly precision: Precision;
  readonly optimizer: OptimizerName;
  readonly gpu: GpuModel;
  readonly nodes: number;
  readonly communication: Communication;
}

/** One decimal where that says something. @param bytes of 1 GB = 1,000,000,000 */
export function gigabytes(bytes: number): string {
  const gb = bytes / 1e9;
  return `${gb >= 100 ? Math.round(gb) : gb >= 0.1 ? gb.toFixed(1) : gb.toPrecision(1)} GB`;
}

export function tipsFor(facts: TipFacts): readonly AdviceTip[] {
  return [
    ...checkpointingTip(facts),
    ...offloadTips(facts),
    ...accumulationTip(facts),
    ...compressionTip(facts),
    ...precisionTip(facts),
    ...networkTip(facts),
  ];
}

function checkpointingTip({ plan, shape, precision, gpu }: TipFacts): readonly AdviceTip[] {
  const { recomputation, degrees, microBatch, memory } = plan;
  if (recomputation === 'none') return [];
  const kept = activationBytes({ shape, precision, degrees, microBatch, recomputation: 'none' });
  const because = `activations would take ${gigabytes(kept)}, and a GPU has ${gpu.memoryGb} GB; so they take ${gigabytes(memory.activationsBytes)}`;
  if (recomputation === 'selective')
    return [{ tip: 'Recompute attention (FlashAttention does), not whole layers.', because }];
  return [{ tip: 'Turn gradient checkpointing on, for every layer; a step computes a third more.', because }];
}

/**
 * With an offload, gradients go to the CPU after each microbatch (of Megatron-LM once, in fp32) and weights come back once a step; where
 * weights are away too, they come twice for each microbatch (Ren and others 2021, section 3; Rajbhandari and others 2021, section 4).
 */
function offloadTips({ plan, shape, precision, optimizer, communication }: TipFacts): readonly AdviceTip[] {
  const { offload, method, degrees, accumulation, hostBytes } = plan;
  if (offload === 'none') return [];
  const { weights, gradients } = bytesPerParameter(precision, optimizer);
  const own = shape.parameters / (degrees.data * degrees.tensor * degrees.pipeline);
  const out = isMegatronMethod(method) ? 4 : gradients * accumulation;
  const back = offload === 'parameters' ? 2 * weights * accumulation : weights;
  const moved = own * (out + back);
  const seconds = (value: number) => `${Number(value.toPrecision(2))} s`;
  const because =
    `a step moves ${gigabytes(moved)} between each GPU and the memory of its node, which takes ` +
    `${seconds(moved / (pcieGbPerS * 1e9))} over PCIe of ${pcieGbPerS} GB/s, and computes for ${seconds(communication.computeSeconds)}`;
  const tips: AdviceTip[] = [
    {
      tip: 'Prefer more GPUs where there are some, or a larger batch at once: an offload slows each step down.',
      because,
    },
  ];
  const onCpu = `the optimizer takes its step in the memory of the node, on ${gigabytes(hostBytes)}`;
  const addTip = (tip: string, reason = onCpu) => tips.push({ tip, because: reason });
  if (method === 'fsdp')
    addTip('Begin with init_process_group("cpu:gloo,cuda:nccl"): gradients are clipped on the CPU.');
  else if (isMegatronMethod(method))
    addTip('Use a Megatron-LM that has --optimizer-cpu-offload: older ones do not.');
  else if (optimizer !== 'sgd')
    addTip('Use DeepSpeedCPUAdam, which DeepSpeed makes of the optimizer Adam in its settings.');
  if (method === 'fsdp' && accumulation > 1)
    addTip(
      'Accumulate within no_sync() of FSDP.',
      'outside it, FSDP with parameters on the CPU replaces gradients instead of adding to them',
    );
  return tips;
}

function accumulationTip({ plan, communication }: TipFacts): readonly AdviceTip[] {
  const { accumulation, microBatch, degrees } = plan;
  if (accumulation > 1)
    return [
      {
        tip: `Accumulate the gradients of ${accumulation} steps.`,
        because: `a batch of ${accumulation * microBatch * degrees.data} is ${microBatch} at a time on each of ${degrees.data} data-parallel ranks`,
      },
    ];
  if (!communication.isBound) return [];
  return [
    {
      tip: 'Use a larger batch with gradient accumulation, so that gradients are exchanged less often.',
      because: timesText(communication),
    },
  ];
}

function compressionTip({ plan, communication }: TipFacts): readonly AdviceTip[] {
  if (!communication.isBound || communication.link !== 'ethernet') return [];
  const because = timesText(communication);
  switch (plan.method) {
    case 'ddp':
      return [{ tip: 'Compress gradients: the hook powerSGD_hook, or fp16_compress_hook, of DDP.', because }];
    case 'zero3':
    case 'fsdp':
      return [
        { tip: 'Compress what is exchanged: ZeRO++ of DeepSpeed (zero_quantized_gradients).', because },
      ];
    case 'zero1':
      return [{ tip: 'Compress gradients: 1-bit Adam of DeepSpeed, which stage 1 allows.', because }];
    default:
      // Compressed optimizers of DeepSpeed exclude stages 2 and 3, and Megatron-LM has none.
      return [
        { tip: 'Use InfiniBand, or a larger batch: there is no compression for this strategy.', because },
      ];
  }
}

function timesText({ link, rateGbPerS, gradientSeconds, computeSeconds }: Communication): string {
  const seconds = (value: number) => `${Number(value.toPrecision(2))} s`;
  return `a step exchanges data for ${seconds(gradientSeconds)} over ${link} of ${rateGbPerS} GB/s, and computes for ${seconds(computeSeconds)}`;
}

function precisionTip({ plan, shape, precision, optimizer, gpu }: TipFacts): readonly AdviceTip[] {
  if (precision === 'fp16')
    return [
      {
        tip: 'Scale the loss (GradScaler): small gradients of fp16 become 0.',
        because:
          gpu.peakTflops.bf16 === null
            ? `a ${gpu.name} does not compute bf16`
            : 'the smallest normal fp16 is 6e-5',
      },
    ];
  if (precision === 'bf16') return [];
  const better = gpu.peakTflops.bf16 === null ? 'fp16' : 'bf16';
  const { method, degrees, microBatch, recomputation } = plan;
  const mixed = memoryOf({
    shape,
    precision: better,
    optimizer,
    method,
    degrees,
    microBatch,
    recomputation,
  });
  return [
    {
      tip: `Train in ${better}.`,
      because:
        `a ${gpu.name} computes up to ${gpu.peakTflops[better]} TFLOPS in ${better} and ${gpu.peakTflops.fp32} in fp32; ` +
        `memory would be ${gigabytes(mixed.totalBytes)} instead of ${gigabytes(plan.memory.totalBytes)}`,
    },
  ];
}

function networkTip({ nodes, communication }: TipFacts): readonly AdviceTip[] {
  if (nodes === 1) return [];
  const { link, rateGbPerS } = communication;
  return [
    {
      tip: `Set NCCL_IB_DISABLE=${ibDisableOf(communication.link, nodes)}.`,
      because: `the ${nodes} nodes are connected by ${link}, ${rateGbPerS} GB/s`,
    },
  ];
}

/** @returns null: one node, where it does not matter */
export function ibDisableOf(link: Communication['link'], nodes: number): '0' | '1' | null {
  if (nodes === 1) return null;
  return link === 'infiniband' ? '0' : '1';
}
