/** Telemetry messages ↔ domain words. Absent fields are null; numbers that are not finite count as not read. */
import type { GpuReading__Output, GpuReading as WireGpuReading } from '../gen/muster/v1/GpuReading.ts';
import type { GpuUsage__Output, GpuUsage as WireGpuUsage } from '../gen/muster/v1/GpuUsage.ts';
import type { HostReading__Output, HostReading as WireHostReading } from '../gen/muster/v1/HostReading.ts';
import type { MetricBucket__Output, MetricBucket as WireBucket } from '../gen/muster/v1/MetricBucket.ts';
import type { MetricPoint__Output, MetricPoint as WirePoint } from '../gen/muster/v1/MetricPoint.ts';
import type {
  NodeTelemetry__Output,
  NodeTelemetry as WireNodeTelemetry,
} from '../gen/muster/v1/NodeTelemetry.ts';
import type {
  QueryMetricsResponse,
  QueryMetricsResponse__Output,
} from '../gen/muster/v1/QueryMetricsResponse.ts';
import type {
  TrainingSummary__Output,
  TrainingSummary as WireSummary,
} from '../gen/muster/v1/TrainingSummary.ts';
import type {
  GpuReading,
  GpuUsage,
  HostReading,
  MetricBucket,
  MetricPoint,
  MetricsView,
  NodeTelemetry,
} from '../telemetry.ts';
import { isTrainingMetricName, type TrainingSummary } from '../training.ts';
import { taskRefFromWire, taskRefToWire } from './taskRef.ts';

/** What is null is left out: on the wire, absent and 0 are different things. */
function present<T extends Readonly<Record<string, number | null>>>(values: T): { [K in keyof T]?: number } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null)) as {
    [K in keyof T]?: number;
  };
}

function orNull(value: number | undefined): number | null {
  return value === undefined || !Number.isFinite(value) ? null : value;
}

export function gpuUsageToWire(usage: GpuUsage | null): WireGpuUsage | null {
  return usage === null ? null : present({ ...usage });
}

export function gpuUsageFromWire(wire: GpuUsage__Output | null): GpuUsage | null {
  if (wire === null) return null;
  return {
    gpus: wire.gpus,
    observedGpuSeconds: orNull(wire.observedGpuSeconds) ?? 0,
    utilizationMean: orNull(wire.utilizationMean),
    utilizationPeak: orNull(wire.utilizationPeak),
    memoryPeakMb: orNull(wire.memoryPeakMb),
    energyKwh: orNull(wire.energyKwh),
    idleGpuSeconds: orNull(wire.idleGpuSeconds),
    smActiveMean: orNull(wire.smActiveMean),
    tensorActiveMean: orNull(wire.tensorActiveMean),
  };
}

export function gpuReadingToWire(reading: GpuReading): WireGpuReading {
  const { gpuUuid, task, ...values } = reading;
  return { gpuUuid, task: task === null ? null : taskRefToWire(task), ...present(values) };
}

export function gpuReadingFromWire(wire: GpuReading__Output): GpuReading {
  return {
    gpuUuid: wire.gpuUuid,
    atMs: wire.atMs,
    intervalMs: wire.intervalMs,
    task: taskRefFromWire(wire.task),
    utilization: orNull(wire.utilization),
    memoryUsedMb: orNull(wire.memoryUsedMb),
    powerWatts: orNull(wire.powerWatts),
    energyJoules: orNull(wire.energyJoules),
    smActive: orNull(wire.smActive),
    tensorActive: orNull(wire.tensorActive),
    dramActive: orNull(wire.dramActive),
    temperature: orNull(wire.temperature),
  };
}

export function hostReadingToWire(reading: HostReading): WireHostReading {
  return present({ ...reading });
}

export function hostReadingFromWire(wire: HostReading__Output): HostReading {
  return {
    atMs: wire.atMs,
    intervalMs: wire.intervalMs,
    cpuUtilization: orNull(wire.cpuUtilization),
    memoryUsedMb: orNull(wire.memoryUsedMb),
    load1: orNull(wire.load1),
    networkReceiveBytes: orNull(wire.networkReceiveBytes),
    networkTransmitBytes: orNull(wire.networkTransmitBytes),
  };
}

export function nodeTelemetryToWire(telemetry: NodeTelemetry): WireNodeTelemetry {
  return {
    node: telemetry.node,
    host: telemetry.host === null ? null : hostReadingToWire(telemetry.host),
    gpus: telemetry.gpus.map(gpuReadingToWire),
  };
}

export function nodeTelemetryFromWire(wire: NodeTelemetry__Output): NodeTelemetry {
  return {
    node: wire.node,
    host: wire.host === null ? null : hostReadingFromWire(wire.host),
    gpus: wire.gpus.map(gpuReadingFromWire),
  };
}

export function metricsToWire({ unit, series, nextSkip = 0, thinned }: MetricsView): QueryMetricsResponse {
  return {
    unit,
    series: series.map(({ points, ...labels }) => ({ ...labels, points: points.map(pointToWire) })),
    nextSkip,
    thinned: thinned === true,
  };
}

export function metricsFromWire(wire: QueryMetricsResponse__Output): MetricsView {
  const { unit, series, nextSkip, thinned } = wire;
  return {
    unit,
    series: series.map(({ points, attempt, nodeRank, node, gpuUuid }) => ({
      ...{ attempt, nodeRank, node, gpuUuid },
      points: points.map(pointFromWire),
    })),
    ...(nextSkip === 0 ? {} : { nextSkip }),
    ...(thinned ? { thinned } : {}),
  };
}

function pointToWire({ atMs, value, step = null, notFinite = 0, bucket }: MetricPoint): WirePoint {
  return {
    atMs,
    ...(value === null ? {} : { value }),
    ...(step === null ? {} : { step }),
    ...(notFinite === 0 ? {} : { notFinite }),
    ...(bucket === undefined ? {} : { bucket: { rows: bucket.rows, ...bucketToWire(bucket) } }),
  };
}

function bucketToWire({ firstStep, min, max, last }: MetricBucket): Omit<WireBucket, 'rows'> {
  return present({ firstStep, min, max, last });
}

function pointFromWire({ atMs, value, step, notFinite, bucket }: MetricPoint__Output): MetricPoint {
  return {
    atMs,
    value: orNull(value),
    ...(step === undefined ? {} : { step: orNull(step) }),
    ...(notFinite === 0 ? {} : { notFinite }),
    ...(bucket === null ? {} : { bucket: bucketFromWire(bucket) }),
  };
}

function bucketFromWire({ rows, firstStep, min, max, last }: MetricBucket__Output): MetricBucket {
  return {
    rows,
    firstStep: orNull(firstStep),
    min: orNull(min),
    max: orNull(max),
    last: orNull(last),
  };
}

export function summaryToWire(summary: TrainingSummary): WireSummary {
  const { name, unit, rows, notFinite, ...values } = summary;
  return { name, unit, rows, notFinite, ...present(values) };
}

/** null: a metric that this version does not know. */
export function summaryFromWire(wire: TrainingSummary__Output): TrainingSummary | null {
  const { name, unit, rows, notFinite } = wire;
  if (!isTrainingMetricName(name)) return null;
  return {
    ...{ name, unit, rows, notFinite },
    last: orNull(wire.last),
    best: orNull(wire.best),
    firstStep: orNull(wire.firstStep),
    lastStep: orNull(wire.lastStep),
    bestStep: orNull(wire.bestStep),
    notFiniteStep: orNull(wire.notFiniteStep),
  };
}
