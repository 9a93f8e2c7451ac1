/** What the GPUs of a job did, for a person. Pure. */
import {
  type JobMetricName,
  type MetricSeries,
  type MetricsView,
  readingIntervalMs,
} from '@muster/common/telemetry';
import type { TrainingMetricName } from '@muster/common/training';
import { makeColours } from '../output/colours.ts';
import { type Column, formatTable, type View } from '../output/table.ts';
import { textWidth } from '../output/text.ts';
import { durationText } from '../output/times.ts';
import { sparkline, valueText } from '../output/units.ts';
import { bucketMeans, bySteps, type SeriesSummary, summarize, summarizeAll, timeSpan } from './summary.ts';
import { tickText } from './ticks.ts';

export type MetricName = JobMetricName | TrainingMetricName;

/** Wider charts say no more, narrower ones nothing. */
const chartColumnsMax = 60;
const chartColumnsMin = 8;

/** Enough of a UUID to tell GPUs apart on sight. */
const shortUuidLength = 12;

/** A line per GPU: its values in numbers and as a chart. */
export function formatMetric({ unit, series }: MetricsView, options: View): string {
  const { width } = options;
  const inOrder = series.toSorted(
    (a, b) =>
      (a.attempt ?? 0) - (b.attempt ?? 0) ||
      (a.nodeRank ?? 0) - (b.nodeRank ?? 0) ||
      (a.node < b.node ? -1 : a.node > b.node ? 1 : a.gpuUuid < b.gpuUuid ? -1 : 1),
  );
  const numbers = numberColumns(inOrder, unit);
  const plain = formatTable(inOrder, numbers, { width, colours: makeColours(false) });
  const taken = Math.max(...plain.split('\n').map(textWidth));
  const chartColumns = Math.min(chartColumnsMax, (width ?? 120) - taken - 2);
  const chart =
    chartColumns < chartColumnsMin ? [] : chartColumn(inOrder, unit, chartColumns, options.unicode);
  return formatTable(inOrder, [...numbers, ...chart], options);
}

function numberColumns(series: readonly MetricSeries[], unit: string): readonly Column<MetricSeries>[] {
  const summaries = new Map(series.map((each) => [each, summarize(each.points)]));
  const number = (header: string, key: keyof SeriesSummary): Column<MetricSeries> => ({
    header,
    cell: (each) => valueText(summaries.get(each)?.[key] ?? null, unit),
    align: 'right',
  });
  const kind = kindOf(unit);
  return [
    ...identityColumns(series),
    ...(kind === 'sum' ? [number('TOTAL', 'total')] : [number('LAST', 'last')]),
    ...(kind === 'level' ? [number('MIN', 'min'), number('MEAN', 'mean'), number('MAX', 'max')] : []),
  ];
}

/** What tells the series apart. */
export function identityColumns(series: readonly MetricSeries[]): readonly Column<MetricSeries>[] {
  const attempts = new Set(series.map(({ attempt }) => attempt));
  const gpuText = shortUuids(series.map(({ gpuUuid }) => gpuUuid));
  const columns: readonly (readonly [isThere: boolean, Column<MetricSeries>])[] = [
    [series.some(({ jobId }) => jobId !== undefined), { header: 'JOB', cell: ({ jobId = '' }) => jobId }],
    [attempts.size > 1, { header: 'ATTEMPT', cell: ({ attempt }) => String(attempt ?? ''), align: 'right' }],
    [
      series.some(({ nodeRank }) => nodeRank !== null),
      { header: 'RANK', cell: ({ nodeRank }) => String(nodeRank ?? ''), align: 'right' },
    ],
    [
      series.some(({ node }) => node !== ''),
      { header: 'NODE', cell: ({ node }) => node, narrow: { cutTo: 12 } },
    ],
    [
      series.some(({ gpuUuid }) => gpuUuid !== ''),
      { header: 'GPU', cell: ({ gpuUuid }) => gpuText(gpuUuid), narrow: { cutTo: shortUuidLength } },
    ],
  ];
  return columns.filter(([isThere]) => isThere).map(([, column]) => column);
}

/**
 * What a number says of its values. A `level` has a mean and a peak. A `position` only ever grows, so that the newest value is
 * all there is to say. Energy is what was consumed in each interval: a `sum`.
 */
function kindOf(unit: string): 'level' | 'position' | 'sum' {
  if (unit === 'joules') return 'sum';
  return unit === 'steps' || unit === 'epochs' ? 'position' : 'level';
}

/** Beginnings of UUIDs where these are enough to tell them apart. */
function shortUuids(uuids: readonly string[]): (uuid: string) => string {
  const shorten = (uuid: string) => uuid.slice(0, shortUuidLength);
  const whole = new Set(uuids);
  const enough = new Set(Array.from(whole, shorten)).size === whole.size;
  return enough ? shorten : (uuid) => uuid;
}

/** All on one scale and one stretch of time or of steps, so that they can be compared. */
function chartColumn(
  series: readonly MetricSeries[],
  unit: string,
  columns: number,
  unicode: boolean,
): readonly Column<MetricSeries>[] {
  const stepped = bySteps(series);
  const placed = new Map(series.map((each, index) => [each, (stepped ?? series)[index]?.points ?? []]));
  const span = timeSpan(stepped ?? series);
  if (span === null) return [];
  const extent = span.toMs - span.fromMs;
  const between = stepped === null ? readingIntervalMs : 1;
  const buckets = Math.min(columns, Math.floor(extent / between) + 1);
  const top = scaleTop(series, unit);
  const stretch =
    stepped === null
      ? durationText(extent + readingIntervalMs)
      : `steps ${tickText(span.fromMs)} to ${tickText(span.toMs)}`;
  const header = `${stretch}, 0 to ${valueText(top, unit)}`;
  const cell = (each: MetricSeries) =>
    sparkline(bucketMeans(placed.get(each) ?? [], span, buckets), top, unicode);
  return [{ header, cell, style: () => 'cyan', narrow: { cutTo: chartColumnsMin } }];
}

function scaleTop(series: readonly MetricSeries[], unit: string): number {
  if (unit === 'percent') return 100;
  return unit === 'ratio' ? 1 : (summarizeAll(series).max ?? 0);
}

/** A line per metric, over all GPUs. */
export function formatGpuMetrics(views: ReadonlyMap<JobMetricName, MetricsView>, options: View): string {
  type Row = readonly [JobMetricName, ReturnType<typeof summarizeAll>];
  const rows = Array.from(views, ([name, { series }]): Row => [name, summarizeAll(series)]).filter(
    // Most cards have no NVLink, and two lines without a value say nothing about them.
    ([name, { last }]) => last !== null || !name.startsWith('nvlink_'),
  );
  const cellOf = ([name, summary]: Row, key: 'mean' | 'max' | 'last'): string => {
    const unit = views.get(name)?.unit ?? '';
    const kind = kindOf(unit);
    if (kind === 'sum')
      return key === 'last' && summary.total !== null ? `${valueText(summary.total, unit)} in all` : '';
    return kind === 'level' || key === 'last' ? valueText(summary[key], unit) : '';
  };
  const number = (header: string, key: 'mean' | 'max' | 'last'): Column<Row> => ({
    header,
    cell: (row) => cellOf(row, key),
    align: 'right',
  });
  const columns: readonly Column<Row>[] = [
    { header: 'METRIC', cell: ([name]) => name },
    number('MEAN', 'mean'),
    number('PEAK', 'max'),
    number('LAST', 'last'),
  ];
  return formatTable(rows, columns, options);
}
