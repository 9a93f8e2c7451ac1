/** The series of dcgm-exporter that can be told from a sample: names, types and help texts are its own. */
import type { GpuActivity, GpuSample } from '../gpus/gpuSource.ts';

export interface GpuSeries {
  /** Without the prefix `DCGM_FI_`. */
  readonly name: string;
  readonly type: 'gauge' | 'counter';
  readonly help: string;
  /** DCGM's own type of the field, and with it how the exporter writes the number. */
  readonly format: 'integer' | 'double';
  readonly value: (sample: GpuSample) => number | null;
}

type Pick = GpuSeries['value'];

const withHeaders = '- including both protocol headers and data payloads - in bytes per second.';

/** In the order of the exporter's own list of counters; the second half is off by default there. */
export const gpuSeries: readonly GpuSeries[] = [
  gauge('DEV_SM_CLOCK', 'SM clock frequency (in MHz).', (s) => s.smClockMhz),
  gauge('DEV_MEM_CLOCK', 'Memory clock frequency (in MHz).', (s) => s.memoryClockMhz),
  gauge('DEV_MEMORY_TEMP', 'Memory temperature (in C).', (s) => s.memoryTemperature),
  gauge('DEV_GPU_TEMP', 'GPU temperature (in C).', (s) => s.temperature),
  double('DEV_POWER_USAGE', 'Power draw (in W).', (s) => s.powerWatts),
  counter(
    'DEV_TOTAL_ENERGY_CONSUMPTION',
    'Total energy consumption since boot (in mJ).',
    (s) => s.energyMillijoules,
  ),
  counter('DEV_PCIE_REPLAY_COUNTER', 'Total number of PCIe retries.', (s) => s.pcieReplays),
  gauge('DEV_GPU_UTIL', 'GPU utilization (in %).', (s) => s.utilization),
  gauge('DEV_MEM_COPY_UTIL', 'Memory utilization (in %).', (s) => s.memoryUtilization),
  gauge('DEV_ENC_UTIL', 'Encoder utilization (in %).', (s) => s.encoderUtilization),
  gauge('DEV_DEC_UTIL', 'Decoder utilization (in %).', (s) => s.decoderUtilization),
  gauge('DEV_FB_FREE', 'Framebuffer memory free (in MiB).', (s) => s.memoryFreeMb),
  gauge('DEV_FB_USED', 'Framebuffer memory used (in MiB).', (s) => s.memoryUsedMb),
  gauge('DEV_FB_RESERVED', 'Framebuffer memory reserved (in MiB).', (s) => s.memoryReservedMb),
  counter(
    'DEV_UNCORRECTABLE_REMAPPED_ROWS',
    'Number of remapped rows for uncorrectable errors',
    (s) => s.rows?.uncorrectable ?? null,
  ),
  counter(
    'DEV_CORRECTABLE_REMAPPED_ROWS',
    'Number of remapped rows for correctable errors',
    (s) => s.rows?.correctable ?? null,
  ),
  gauge('DEV_ROW_REMAP_FAILURE', 'Whether remapping of rows has failed', (s) => flag(s.rows?.failed ?? null)),
  activity('GR_ENGINE_ACTIVE', 'Ratio of time the graphics engine is active.', 'graphicsActive'),
  activity('PIPE_TENSOR_ACTIVE', 'Ratio of cycles the tensor (HMMA) pipe is active.', 'tensorActive'),
  activity(
    'DRAM_ACTIVE',
    'Ratio of cycles the device memory interface is active sending or receiving data.',
    'dramActive',
  ),
  traffic('PCIE_TX_BYTES', `The rate of data transmitted over the PCIe bus ${withHeaders}`, 'pcieTxBytes'),
  traffic('PCIE_RX_BYTES', `The rate of data received over the PCIe bus ${withHeaders}`, 'pcieRxBytes'),

  gauge(
    'DEV_CLOCKS_EVENT_REASONS',
    'Reasons why clocks are held down (bitmask).',
    (s) => s.clockEventReasons,
  ),
  gauge('DEV_FB_TOTAL', 'Framebuffer memory total (in MiB).', (s) => s.memoryTotalMb),
  double('DEV_ENFORCED_POWER_LIMIT', 'Power limit in effect (in W).', (s) => s.powerLimitWatts),
  counter(
    'DEV_ECC_SBE_VOL_TOTAL',
    'Total number of single-bit volatile ECC errors.',
    (s) => s.ecc?.correctedVolatile ?? null,
  ),
  counter(
    'DEV_ECC_DBE_VOL_TOTAL',
    'Total number of double-bit volatile ECC errors.',
    (s) => s.ecc?.uncorrectedVolatile ?? null,
  ),
  counter(
    'DEV_ECC_SBE_AGG_TOTAL',
    'Total number of single-bit persistent ECC errors.',
    (s) => s.ecc?.correctedAggregate ?? null,
  ),
  counter(
    'DEV_ECC_DBE_AGG_TOTAL',
    'Total number of double-bit persistent ECC errors.',
    (s) => s.ecc?.uncorrectedAggregate ?? null,
  ),
  counter(
    'DEV_RETIRED_SBE',
    'Total number of retired pages due to single-bit errors.',
    (s) => s.retiredPages?.singleBit ?? null,
  ),
  counter(
    'DEV_RETIRED_DBE',
    'Total number of retired pages due to double-bit errors.',
    (s) => s.retiredPages?.doubleBit ?? null,
  ),
  counter('DEV_RETIRED_PENDING', 'Total number of pages pending retirement.', (s) =>
    flag(s.retiredPages?.pending ?? null),
  ),
  gauge('DEV_ROW_REMAP_PENDING', 'Whether remapping of rows waits for a reset', (s) =>
    flag(s.rows?.pending ?? null),
  ),
  counter(
    'DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL',
    'Total number of NVLink retries.',
    (s) => s.nvlinkErrors?.replay ?? null,
  ),
  counter(
    'DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL',
    'Total number of NVLink recovery errors.',
    (s) => s.nvlinkErrors?.recovery ?? null,
  ),
  activity('SM_ACTIVE', 'The ratio of cycles an SM has at least 1 warp assigned.', 'smActive'),
  activity('SM_OCCUPANCY', 'The ratio of number of warps resident on an SM.', 'smOccupancy'),
  activity('PIPE_FP64_ACTIVE', 'Ratio of cycles the fp64 pipes are active.', 'fp64Active'),
  activity('PIPE_FP32_ACTIVE', 'Ratio of cycles the fp32 pipes are active.', 'fp32Active'),
  activity('PIPE_FP16_ACTIVE', 'Ratio of cycles the fp16 pipes are active.', 'fp16Active'),
  traffic(
    'NVLINK_TX_BYTES',
    'The rate of data transmitted over NVLink in bytes per second.',
    'nvlinkTxBytes',
  ),
  traffic('NVLINK_RX_BYTES', 'The rate of data received over NVLink in bytes per second.', 'nvlinkRxBytes'),
];

function gauge(name: string, help: string, value: Pick): GpuSeries {
  return { name, type: 'gauge', help, format: 'integer', value };
}

function double(name: string, help: string, value: Pick): GpuSeries {
  return { name, type: 'gauge', help, format: 'double', value };
}

function counter(name: string, help: string, value: Pick): GpuSeries {
  return { name, type: 'counter', help, format: 'integer', value };
}

function activity(name: string, help: string, key: keyof GpuActivity): GpuSeries {
  return double(`PROF_${name}`, help, (sample) => sample.activity?.[key] ?? null);
}

function traffic(name: string, help: string, key: keyof GpuActivity): GpuSeries {
  return gauge(`PROF_${name}`, help, (sample) => sample.activity?.[key] ?? null);
}

function flag(value: boolean | null): number | null {
  return value === null ? null : Number(value);
}
