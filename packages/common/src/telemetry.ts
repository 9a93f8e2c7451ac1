/** What GPUs and hosts did over time. A value that was not read is null, never 0. */
import type { TaskRef } from './ids.ts';

/** Length of an interval that agents send and the coordinator keeps. */
export const readingIntervalMs = 10_000;

/** One GPU over one interval: means, except where stated. */
export interface GpuReading {
  /** Of the device that is scheduled: the MIG instance where there is one. */
  readonly gpuUuid: string;
  /** Wall clock at the end of the interval. */
  readonly atMs: number;
  readonly intervalMs: number;
  /** The task that held the GPU at the end of the interval. */
  readonly task: TaskRef | null;
  /** Percent, 0 to 100. */
  readonly utilization: number | null;
  /** MiB, the most. */
  readonly memoryUsedMb: number | null;
  readonly powerWatts: number | null;
  /** Consumed in the interval. */
  readonly energyJoules: number | null;
  /** Ratio, 0 to 1; the other `…Active` too. */
  readonly smActive: number | null;
  readonly tensorActive: number | null;
  readonly dramActive: number | null;
  /** Degrees Celsius, the most. */
  readonly temperature: number | null;
  /** Bytes per second over all NVLinks of the GPU. */
  readonly nvlinkReceiveBytes: number | null;
  readonly nvlinkTransmitBytes: number | null;
}

export interface HostReading {
  readonly atMs: number;
  readonly intervalMs: number;
  /** Percent of all CPUs, 0 to 100. */
  readonly cpuUtilization: number | null;
  readonly memoryUsedMb: number | null;
  readonly load1: number | null;
  /** Bytes per second over all hardware interfaces. */
  readonly networkReceiveBytes: number | null;
  readonly networkTransmitBytes: number | null;
}

/** The metrics of a job that can be asked for by name, with the field of a reading and the unit. */
export const jobMetrics = {
  gpu_utilization: { field: 'utilization', unit: 'percent' },
  gpu_memory_used_mb: { field: 'memoryUsedMb', unit: 'MiB' },
  gpu_power_watts: { field: 'powerWatts', unit: 'watts' },
  gpu_energy_joules: { field: 'energyJoules', unit: 'joules' },
  gpu_temperature: { field: 'temperature', unit: 'celsius' },
  sm_active: { field: 'smActive', unit: 'ratio' },
  tensor_active: { field: 'tensorActive', unit: 'ratio' },
  dram_active: { field: 'dramActive', unit: 'ratio' },
  nvlink_receive_bytes_per_second: { field: 'nvlinkReceiveBytes', unit: 'bytes/s' },
  nvlink_transmit_bytes_per_second: { field: 'nvlinkTransmitBytes', unit: 'bytes/s' },
} as const satisfies Readonly<Record<string, { field: keyof GpuReading; unit: string }>>;
export type JobMetricName = keyof typeof jobMetrics;

export function isJobMetricName(name: string): name is JobMetricName {
  return Object.hasOwn(jobMetrics, name);
}

export interface MetricPoint {
  readonly atMs: number;
  /** null: it was not read, or is not a finite number. Of a bucket: the mean. */
  readonly value: number | null;
  /** Of what the output shows. null: the program printed none. Of a bucket: the last one. */
  readonly step?: number | null;
  /** How many of its rows had something that is not a finite number; absent: none. */
  readonly notFinite?: number;
  /** Several successive rows in one; absent: the point is one row. */
  readonly bucket?: MetricBucket;
}

export interface MetricBucket {
  readonly rows: number;
  readonly firstStep: number | null;
  /** null: no value is finite; the same of `max` and `last`. */
  readonly min: number | null;
  readonly max: number | null;
  readonly last: number | null;
}

/** One metric of one GPU of one rank, or what values of several became together. */
export interface MetricSeries {
  /** Absent where the question names the job, and where the values are of no job or of several. */
  readonly jobId?: string;
  /** null: of none, or of several; so are an empty `node` and `gpuUuid`. */
  readonly attempt: number | null;
  readonly nodeRank: number | null;
  readonly node: string;
  readonly gpuUuid: string;
  /** Oldest first. */
  readonly points: readonly MetricPoint[];
  /** Values of the attempt that are in none of its stored points; absent: none, or the values are not from output. */
  readonly omitted?: number;
  /** Stored points that stand for several rows; absent: none. */
  readonly mergedPoints?: number;
}

export interface MetricsView {
  readonly unit: string;
  readonly series: readonly MetricSeries[];
  /** Ask for the rest with this `skip`; absent: this is all. */
  readonly nextSkip?: number;
  /** Not every value that was printed is kept any longer; absent: they are. */
  readonly thinned?: true;
  /** Absent in the answers of older coordinators. */
  readonly origin?: MetricOrigin;
}

/** What has arrived of a metric. */
export interface MetricUpdate {
  readonly unit: string;
  /** With the points that no earlier update had. */
  readonly series: readonly MetricSeries[];
  /** Where to resume after it, also after a restart of the coordinator. */
  readonly position: string;
}

/** Where the values of an answer were found. */
export interface MetricOrigin {
  /** The name in full. */
  readonly name: string;
  /** The earlier first. */
  readonly sources: readonly MetricSource[];
  /** What is missing in the answer and why, a sentence each. */
  readonly notes: readonly string[];
}

export const metricSourceNames = ['memory', 'rows', 'prometheus'] as const;
export type MetricSourceName = (typeof metricSourceNames)[number];

/** Which values one source gave: those from one time to another. */
export interface MetricSource {
  readonly source: MetricSourceName;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface NodeTelemetry {
  readonly node: string;
  readonly host: HostReading | null;
  /** The newest of each GPU. */
  readonly gpus: readonly GpuReading[];
}

/** What the GPUs of a task, or of all tasks of an attempt, did while it ran. */
export interface GpuUsage {
  readonly gpus: number;
  /** Seconds with readings, summed over the GPUs. */
  readonly observedGpuSeconds: number;
  /** Percent of time, 0 to 100. */
  readonly utilizationMean: number | null;
  /** Of any GPU, in the mean of an interval. */
  readonly utilizationPeak: number | null;
  /** Of the fullest GPU. */
  readonly memoryPeakMb: number | null;
  readonly energyKwh: number | null;
  /** Seconds below 1 % utilisation, summed over the GPUs. */
  readonly idleGpuSeconds: number | null;
  readonly smActiveMean: number | null;
  readonly tensorActiveMean: number | null;
}

/** The usage of several tasks as one. @returns null when there is none */
export function mergeGpuUsage(parts: readonly GpuUsage[]): GpuUsage | null {
  if (parts.length === 0) return null;
  const sum = (pick: (usage: GpuUsage) => number | null) => combine(parts.map(pick), (a, b) => a + b);
  const most = (pick: (usage: GpuUsage) => number | null) => combine(parts.map(pick), Math.max);
  /** Weighted by how long each was observed. */
  const mean = (pick: (usage: GpuUsage) => number | null) => {
    const known = parts.filter((usage) => pick(usage) !== null && usage.observedGpuSeconds > 0);
    const seconds = known.reduce((total, usage) => total + usage.observedGpuSeconds, 0);
    if (seconds === 0) return null;
    return known.reduce((total, usage) => total + (pick(usage) ?? 0) * usage.observedGpuSeconds, 0) / seconds;
  };
  return {
    gpus: parts.reduce((total, { gpus }) => total + gpus, 0),
    observedGpuSeconds: parts.reduce((total, usage) => total + usage.observedGpuSeconds, 0),
    utilizationMean: mean((usage) => usage.utilizationMean),
    utilizationPeak: most((usage) => usage.utilizationPeak),
    memoryPeakMb: most((usage) => usage.memoryPeakMb),
    energyKwh: sum((usage) => usage.energyKwh),
    idleGpuSeconds: sum((usage) => usage.idleGpuSeconds),
    smActiveMean: mean((usage) => usage.smActiveMean),
    tensorActiveMean: mean((usage) => usage.tensorActiveMean),
  };
}

function combine(values: readonly (number | null)[], join: (a: number, b: number) => number): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((a, b) => join(a, b));
}
