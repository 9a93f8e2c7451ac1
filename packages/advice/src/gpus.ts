/** GPUs, their prices and what is assumed of links: data with a date, which callers may replace. */
import type { GpuType } from './actionShape.ts';
import type { Precision } from './contextFields.ts';

export interface GpuModel {
  /** As nvidia-smi shows it, shortened; prices are found by a part of it. */
  readonly name: string;
  readonly type: GpuType;
  /** 1 GB = 1,000,000,000 bytes: a little less than the driver shows. */
  readonly memoryGb: number;
  /** Dense, without sparsity, from the data sheets of NVIDIA, in 10¹² operations a second. null: it does not compute that format. */
  readonly peakTflops: Readonly<Record<Precision, number | null>>;
  /** One direction, of one GPU, as the data sheet says. null: it has none, and GPUs of a node exchange data over PCIe. */
  readonly nvlinkGbPerS: number | null;
  /** Memory of a node for each of its GPUs: the least of the usual machines that clouds rent with this GPU. */
  readonly hostGbPerGpu: number;
  /** On demand, one GPU for one hour. */
  readonly usdPerHour: number;
}

/** The day on which the prices below were recorded. */
export const pricesAsOf = '2026-11-24';

export const gpuTable: readonly GpuModel[] = [
  {
    name: 'T4',
    type: 't4',
    memoryGb: 16,
    peakTflops: { fp32: 8.1, fp16: 65, bf16: null },
    nvlinkGbPerS: null,
    hostGbPerGpu: 48,
    usdPerHour: 0.35,
  },
  {
    name: 'V100-SXM2-32GB',
    type: 'v100',
    memoryGb: 32,
    peakTflops: { fp32: 15.7, fp16: 125, bf16: null },
    nvlinkGbPerS: 150,
    hostGbPerGpu: 96,
    usdPerHour: 2.5,
  },
  {
    name: 'A100-SXM4-40GB',
    type: 'a100',
    memoryGb: 40,
    peakTflops: { fp32: 19.5, fp16: 312, bf16: 312 },
    nvlinkGbPerS: 300,
    hostGbPerGpu: 85,
    usdPerHour: 3.5,
  },
  {
    name: 'A100-SXM4-80GB',
    type: 'a100',
    memoryGb: 80,
    peakTflops: { fp32: 19.5, fp16: 312, bf16: 312 },
    nvlinkGbPerS: 300,
    hostGbPerGpu: 144,
    usdPerHour: 5,
  },
  {
    name: 'H100-SXM5-80GB',
    type: 'h100',
    memoryGb: 80,
    peakTflops: { fp32: 67, fp16: 989, bf16: 989 },
    nvlinkGbPerS: 450,
    hostGbPerGpu: 234,
    usdPerHour: 8,
  },
];

/** On demand, a node without GPUs: eight cores for one hour. */
export const cpuNode = { cores: 8, usdPerHour: 0.4 } as const;

/** What a GPU costs by a part of its name, as in the settings of a coordinator: the longest fitting name counts. */
export interface PriceOfType {
  readonly name: string;
  readonly usdPerHour: number;
}

/** The same GPUs with other prices; those that no price fits keep theirs. */
export function withPrices(gpus: readonly GpuModel[], prices: readonly PriceOfType[]): readonly GpuModel[] {
  const longestFirst = prices.toSorted((a, b) => b.name.length - a.name.length);
  return gpus.map((gpu) => {
    const price = longestFirst.find(({ name }) => gpu.name.toLowerCase().includes(name.toLowerCase()));
    return price === undefined ? gpu : { ...gpu, usdPerHour: price.usdPerHour };
  });
}

/** One direction of a node, GB/s: 200 Gbit/s InfiniBand, 25 Gbit/s Ethernet. */
export const usualRateGbPerS = { infiniband: 25, ethernet: 3.125 } as const;

/** One direction of a GPU over PCIe 3.0 with 16 lanes, GB/s: what is reached of 16. */
export const pcieGbPerS = 12;

/** The GPU of a context: of its type the largest memory, or the one that is named. null: there is none, or no type is given. */
export function gpuOf(
  { gpuType, memoryGb }: { readonly gpuType: GpuType | null; readonly memoryGb: number | null },
  gpus: readonly GpuModel[],
): GpuModel | null {
  const fitting = gpus.filter(
    (gpu) => gpu.type === gpuType && (memoryGb === null || gpu.memoryGb === memoryGb),
  );
  return fitting.toSorted((a, b) => b.memoryGb - a.memoryGb)[0] ?? null;
}

/** bf16 where the GPU computes it. */
export function usualPrecision(gpu: GpuModel): Precision {
  return gpu.peakTflops.bf16 === null ? 'fp16' : 'bf16';
}
