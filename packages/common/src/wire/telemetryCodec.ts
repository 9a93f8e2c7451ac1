/** Messages of telemetry ↔ words of the domain. */
import type {
  GpuReading,
  GpuUsage,
  HostReading,
  MetricBucket,
  MetricPoint,
  MetricSeries,
  MetricsView,
  NodeTelemetry,
} from '../telemetry.ts';
import { type TrainingSummary, trainingMetricNames } from '../training.ts';
import { knownWord, message, needed, sparse } from './mapping.ts';
import { taskRef } from './taskRef.ts';

export const gpuUsage = message<GpuUsage>()('GpuUsage');
const gpuReading = message<GpuReading>()('GpuReading', { task: taskRef });
const hostReading = message<HostReading>()('HostReading');
const bucket = message<MetricBucket>()('MetricBucket');
const point = message<MetricPoint>()('MetricPoint', {
  step: sparse(),
  notFinite: sparse(),
  bucket: sparse(bucket),
});
const series = message<MetricSeries>()('MetricSeries', { points: point });

export const { toWire: gpuReadingToWire, fromWire: gpuReadingFromWire } = gpuReading;
export const { toWire: hostReadingToWire, fromWire: hostReadingFromWire } = hostReading;
export const { toWire: nodeTelemetryToWire, fromWire: nodeTelemetryFromWire } = message<NodeTelemetry>()(
  'NodeTelemetry',
  { host: hostReading, gpus: gpuReading },
);
export const { toWire: metricsToWire, fromWire: metricsFromWire } = message<MetricsView>()(
  'QueryMetricsResponse',
  { series, nextSkip: sparse(), thinned: sparse() },
);
/** Of a metric that this version does not know it is null. */
export const { toWire: summaryToWire, fromWire: summaryFromWire } = message<TrainingSummary>()(
  'TrainingSummary',
  { name: needed(knownWord(trainingMetricNames)) },
);
