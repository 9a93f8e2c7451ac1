/**
 * The GPUs on the agent's Prometheus page, as dcgm-exporter would show them: dashboards and alert rules that were written
 * for it work on this page too.
 *
 * Labels of ours come last. They are not called `job`, `attempt` and `rank`: `job` belongs to Prometheus, which would
 * rename ours to `exported_job`. `hpc_job` is dcgm-exporter's own word for the same id.
 */
import { cardUuid, type Gpu } from '@muster/common/hardware';
import type { GpuActivity, GpuObservation, GpuSample } from '../gpus/gpuSource.ts';
import type { Family, Labels, MetricSample } from './textFormat.ts';

export interface GpuPageParts {
  readonly observation: GpuObservation;
  /** Of this node, for the label that distinguishes nodes. */
  readonly nodeName: string;
  readonly hostnameLabel: 'Hostname' | 'hostname';
  /** The last Xid of each card since the agent runs, by UUID of the card; null: nobody watches for Xids. */
  readonly lastXids: ReadonlyMap<string, LastXid> | null;
}

export interface LastXid {
  readonly xid: number;
  /** A few words: `GPU has fallen off the bus`. */
  readonly message: string;
}

export function gpuFamilies(parts: GpuPageParts): readonly Family[] {
  const { observation } = parts;
  // Before the first reading nothing is known, also not that there was no Xid.
  if (observation.atMs === 0) return [];
  const devices = observation.gpus.map((gpu) => ({ gpu, labels: labelsOf(gpu, parts) }));
  const rows = (value: Pick): readonly MetricSample[] =>
    devices.flatMap(({ gpu, labels }) => {
      const sample = observation.samples.get(gpu.uuid);
      const read = sample === undefined ? null : value(sample);
      return read == null ? [] : [{ labels, value: Number(read) }];
    });
  return [
    ...gpuSeries.map(({ name, type, help, format, value }) => ({
      name: `DCGM_FI_${name}`,
      type,
      help,
      format: format === 'integer' ? formatInteger : formatDouble,
      rows: rows(value),
    })),
    xidFamily(devices, parts.lastXids),
    ...ownSeries.map(({ value, ...family }) => ({ ...family, rows: rows(value).map(withoutModel) })),
  ];
}

/** What dcgm-exporter has no name for. */
const ownSeries = [
  {
    name: 'muster_gpu_nvlink_crc_errors_total',
    type: 'counter',
    help: 'NVLink CRC errors of all links since the driver was loaded.',
    value: ({ nvlinkErrors }: GpuSample) => nvlinkErrors?.crc,
  },
  {
    name: 'muster_gpu_recovery_action',
    type: 'gauge',
    help: 'What the driver asks for: 0 none, 1 GPU reset, 2 reboot, 3 drain P2P, 4 drain and reset, 5 recover IMEX domain.',
    value: ({ recoveryAction }: GpuSample) => recoveryAction,
  },
  {
    name: 'muster_gpu_sram_threshold_exceeded',
    type: 'gauge',
    help: 'Whether the card itself says that its SRAM has had too many errors.',
    value: ({ ecc }: GpuSample) => ecc?.sramThresholdExceeded,
  },
] as const;

/** `modelName` is a name after NVIDIA's taste; promtool has nothing to say about the others. */
function withoutModel({ labels, value }: MetricSample): MetricSample {
  return { labels: labels.filter(([name]) => name !== 'modelName'), value };
}

function xidFamily(
  devices: readonly { readonly gpu: Gpu; readonly labels: Labels }[],
  lastXids: GpuPageParts['lastXids'],
): Family {
  return {
    name: 'DCGM_FI_DEV_XID_ERRORS',
    type: 'gauge',
    help: 'Value of the last XID error encountered.',
    format: formatInteger,
    rows: devices.flatMap(({ gpu, labels }) => {
      // A simulated card has no driver that could announce one.
      if (lastXids === null || gpu.simulated) return [];
      const { xid, message } = lastXids.get(cardUuid(gpu)) ?? { xid: 0, message: 'No Error' };
      return [{ labels: [...labels, ['err_code', String(xid)], ['err_msg', message]], value: xid }];
    }),
  };
}

/** In the exporter's order. What is not known has no label, which to Prometheus is the same as an empty one. */
function labelsOf(gpu: Gpu, { observation, nodeName, hostnameLabel }: GpuPageParts): Labels {
  const { index, pciBusId, mig } = gpu;
  const { driverVersion } = observation.gpuDriver;
  const task = observation.holders.get(gpu.uuid);
  return known([
    ['gpu', index],
    ['UUID', cardUuid(gpu)],
    ['pci_bus_id', pciBusId?.toUpperCase() ?? null],
    ['device', index === null ? null : `nvidia${index}`],
    ['modelName', gpu.model],
    ['GPU_I_PROFILE', mig?.profile ?? null],
    ['GPU_I_ID', mig?.gpuInstanceId ?? null],
    [hostnameLabel, nodeName],
    ['DCGM_FI_DRIVER_VERSION', driverVersion],
    ['hpc_job', task?.jobId ?? null],
    // The exporter knows no compute instances; several of one GPU instance would be the same series.
    ['muster_device', mig === null ? null : gpu.uuid],
    ['muster_job', task?.jobId ?? null],
    ['muster_attempt', task?.attempt ?? null],
    ['muster_rank', task?.nodeRank ?? null],
    ['simulated', gpu.simulated ? 'true' : null],
  ]);
}

function known(labels: readonly (readonly [string, string | number | null])[]): Labels {
  return labels.flatMap(([name, value]) =>
    value === null || value === '' ? [] : [[name, String(value)] as const],
  );
}

function formatInteger(value: number): string {
  return String(Math.round(value));
}

function formatDouble(value: number): string {
  return value.toFixed(6);
}

/** A series of dcgm-exporter that follows from a sample: name, type and help text are its own. */
interface GpuSeries {
  /** Without the prefix `DCGM_FI_`. */
  readonly name: string;
  readonly type: 'gauge' | 'counter';
  readonly help: string;
  /** DCGM's own type of the field, and with it how the exporter writes the number. */
  readonly format: 'integer' | 'double';
  /** null or undefined: not read. */
  readonly value: (sample: GpuSample) => number | boolean | null | undefined;
}

type Pick = GpuSeries['value'];

const withHeaders = '- including both protocol headers and data payloads - in bytes per second.';

/** In the order of the exporter's own list of counters; the second half is off by default there. */
const gpuSeries: readonly GpuSeries[] = [
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
    (s) => s.rows?.uncorrectable,
  ),
  counter(
    'DEV_CORRECTABLE_REMAPPED_ROWS',
    'Number of remapped rows for correctable errors',
    (s) => s.rows?.correctable,
  ),
  gauge('DEV_ROW_REMAP_FAILURE', 'Whether remapping of rows has failed', (s) => s.rows?.failed),
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
    (s) => s.ecc?.correctedVolatile,
  ),
  counter(
    'DEV_ECC_DBE_VOL_TOTAL',
    'Total number of double-bit volatile ECC errors.',
    (s) => s.ecc?.uncorrectedVolatile,
  ),
  counter(
    'DEV_ECC_SBE_AGG_TOTAL',
    'Total number of single-bit persistent ECC errors.',
    (s) => s.ecc?.correctedAggregate,
  ),
  counter(
    'DEV_ECC_DBE_AGG_TOTAL',
    'Total number of double-bit persistent ECC errors.',
    (s) => s.ecc?.uncorrectedAggregate,
  ),
  counter(
    'DEV_RETIRED_SBE',
    'Total number of retired pages due to single-bit errors.',
    (s) => s.retiredPages?.singleBit,
  ),
  counter(
    'DEV_RETIRED_DBE',
    'Total number of retired pages due to double-bit errors.',
    (s) => s.retiredPages?.doubleBit,
  ),
  counter('DEV_RETIRED_PENDING', 'Total number of pages pending retirement.', (s) => s.retiredPages?.pending),
  gauge('DEV_ROW_REMAP_PENDING', 'Whether remapping of rows waits for a reset', (s) => s.rows?.pending),
  counter(
    'DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL',
    'Total number of NVLink retries.',
    (s) => s.nvlinkErrors?.replay,
  ),
  counter(
    'DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL',
    'Total number of NVLink recovery errors.',
    (s) => s.nvlinkErrors?.recovery,
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
  return double(`PROF_${name}`, help, (sample) => sample.activity?.[key]);
}

function traffic(name: string, help: string, key: keyof GpuActivity): GpuSeries {
  return gauge(`PROF_${name}`, help, (sample) => sample.activity?.[key]);
}
