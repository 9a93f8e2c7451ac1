/** Metrics as CSV, a line per point: what a spreadsheet or pandas reads. Pure. */
import type { MetricPoint, MetricSeries, MetricsView } from '@muster/common/telemetry';

export interface ExportedMetric {
  readonly jobId: string;
  readonly name: string;
  readonly view: MetricsView;
}

const columns = [
  ...['job', 'metric', 'unit', 'attempt', 'rank', 'node', 'gpu', 'step', 'time', 'value'],
  ...['not_finite', 'rows', 'first_step', 'min', 'max', 'last'],
];

/** With a header. `rows` is how many rows a point stands for; where it is 1, `min`, `max` and `last` are empty. */
export function csvOf(metrics: readonly ExportedMetric[]): readonly string[] {
  return [
    columns.join(','),
    ...metrics.flatMap(({ jobId, name, view }) =>
      view.series.flatMap((series) =>
        series.points.map((point) => line(jobId, name, view.unit, series, point)),
      ),
    ),
  ];
}

function line(jobId: string, name: string, unit: string, series: MetricSeries, point: MetricPoint): string {
  const { atMs, value, step = null, notFinite = 0, bucket } = point;
  return [
    ...[jobId, name, unit, series.attempt, series.nodeRank, series.node, series.gpuUuid, step],
    ...[new Date(atMs).toISOString(), value, notFinite, bucket?.rows ?? 1],
    ...[bucket?.firstStep, bucket?.min, bucket?.max, bucket?.last],
  ]
    .map((field) => fieldText(field ?? null))
    .join(',');
}

function fieldText(field: string | number | null): string {
  const text = field === null ? '' : String(field);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
