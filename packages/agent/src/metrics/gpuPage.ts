/**
 * The GPUs on the agent's Prometheus page, as dcgm-exporter would show them: dashboards and alert rules that were written
 * for it work on this page too.
 *
 * Labels of ours come last. They are not called `job`, `attempt` and `rank`: `job` belongs to Prometheus, which would
 * rename ours to `exported_job`. `hpc_job` is dcgm-exporter's own word for the same id.
 */
import { cardUuid, type Gpu } from '@muster/common/hardware';
import type { GpuSample } from '../gpus/gpuSource.ts';
import type { GpuObservation } from '../gpus/observation.ts';
import { gpuSeries } from './gpuSeries.ts';
import type { Family, Labels, MetricSample } from './textFormat.ts';

export interface GpuPageParts {
  readonly observation: GpuObservation;
  /** Of this node, for the label that tells nodes apart. */
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
  const rows = (value: (sample: GpuSample) => number | null): readonly MetricSample[] =>
    devices.flatMap(({ gpu, labels }) => {
      const sample = observation.samples.get(gpu.uuid);
      const read = sample === undefined ? null : value(sample);
      return read === null ? [] : [{ labels, value: read }];
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
    value: ({ nvlinkErrors }: GpuSample) => nvlinkErrors?.crc ?? null,
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
    value: ({ ecc }: GpuSample) => {
      const exceeded = ecc?.sramThresholdExceeded ?? null;
      return exceeded === null ? null : Number(exceeded);
    },
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
