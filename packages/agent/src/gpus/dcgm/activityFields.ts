/** DCGM's profiling fields: one table for both ways to ask for them. */
import { emptyActivity, type GpuActivity } from '../gpuSource.ts';

export interface ActivityField {
  readonly key: keyof GpuActivity;
  /** DCGM's number of the field; names change between its versions, numbers do not. */
  readonly id: number;
  /** Column of `dcgmi dmon`. */
  readonly column: string;
  /** Series of dcgm-exporter: the name until DCGM 4.5, and the one of DCGM 4.6 where that differs. */
  readonly series: readonly string[];
  readonly unit: 'ratio' | 'bytes per second';
}

export const activityFields: readonly ActivityField[] = [
  ratio('graphicsActive', 1001, 'GRACT', 'GR_ENGINE_ACTIVE', 'GR_ENGINE_UTIL_RATIO'),
  ratio('smActive', 1002, 'SMACT', 'SM_ACTIVE', 'SM_UTIL_RATIO'),
  ratio('smOccupancy', 1003, 'SMOCC', 'SM_OCCUPANCY', 'SM_OCCUPANCY_RATIO'),
  ratio('tensorActive', 1004, 'TENSO', 'PIPE_TENSOR_ACTIVE', 'TENSOR_UTIL_RATIO'),
  ratio('dramActive', 1005, 'DRAMA', 'DRAM_ACTIVE', 'DRAM_UTIL_RATIO'),
  ratio('fp64Active', 1006, 'FP64A', 'PIPE_FP64_ACTIVE', 'FP64_UTIL_RATIO'),
  ratio('fp32Active', 1007, 'FP32A', 'PIPE_FP32_ACTIVE', 'FP32_UTIL_RATIO'),
  ratio('fp16Active', 1008, 'FP16A', 'PIPE_FP16_ACTIVE', 'FP16_UTIL_RATIO'),
  rate('pcieTxBytes', 1009, 'PCITX', 'PCIE_TX_BYTES'),
  rate('pcieRxBytes', 1010, 'PCIRX', 'PCIE_RX_BYTES'),
  rate('nvlinkTxBytes', 1011, 'NVLTX', 'NVLINK_TX_BYTES'),
  rate('nvlinkRxBytes', 1012, 'NVLRX', 'NVLINK_RX_BYTES'),
];

function ratio(key: keyof GpuActivity, id: number, column: string, ...names: string[]): ActivityField {
  return { key, id, column, series: names.map(seriesName), unit: 'ratio' };
}

function rate(key: keyof GpuActivity, id: number, column: string, name: string): ActivityField {
  return { key, id, column, series: [seriesName(name)], unit: 'bytes per second' };
}

function seriesName(name: string): string {
  return `DCGM_FI_PROF_${name}`;
}

/** Busy cycles and all cycles are counted at slightly different moments, so a busy unit can come out just above 1. */
const ratioMax = 1.05;
/** DCGM's "no value" as a double, 2^47; those of 64-bit integers are above, and no bus moves as much in a second. */
const blankDouble = 2 ** 47;
/** DCGM's "no value", "not found", "not supported" and "not permitted" as 32-bit integers. */
const blankIntegers = new Set([0x7ffffff0, 0x7ffffff1, 0x7ffffff2, 0x7ffffff3]);

/** @returns null for what is no number, and for a number that means that there is none */
export function readActivity(unit: ActivityField['unit'], text: string): number | null {
  if (!/^\+?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?$/.test(text)) return null;
  const value = Number(text);
  if (unit === 'ratio') return value <= ratioMax ? Math.min(value, 1) : null;
  return value < blankDouble && !blankIntegers.has(value) ? value : null;
}

/** Collects values as they are found. */
export class ActivityBuilder {
  private values: GpuActivity = emptyActivity;

  set(key: keyof GpuActivity, value: number | null): void {
    if (value !== null) this.values = { ...this.values, [key]: value };
  }

  get activity(): GpuActivity {
    return this.values;
  }
}
