/** The rows of jobs for programs: `muster metrics -o csv` and `-o json`. */
import type { MetricPoint, MetricSeries, MetricsView } from '@muster/common/telemetry';
import type { MetricsQuery, MusterApi } from '@muster/common/wire/client';
import type { Output } from '../io.ts';
import { writeJson } from '../output/json.ts';

export interface Exported {
  readonly ids: readonly string[];
  readonly names: readonly MetricsQuery['name'][];
  /** Of a single job it is the answer itself. */
  readonly isOneMetric: boolean;
  readonly range: Pick<MetricsQuery, 'sinceMs' | 'attempt'>;
}

/** Of one text of CSV: a million lines would be more than a string may hold. */
const linesAtOnce = 10_000;

export async function exportMetrics(
  output: Output,
  api: Pick<MusterApi, 'queryMetrics'>,
  { ids, names, isOneMetric, range }: Exported,
  format: 'csv' | 'json',
): Promise<void> {
  const read = async (jobId: string): Promise<readonly ExportedMetric[]> => {
    const metrics: ExportedMetric[] = [];
    for (const name of names)
      metrics.push({ jobId, name, view: await queryAll(api, { jobId, name, ...range }) });
    return metrics;
  };
  if (format === 'csv') {
    for (const [position, id] of ids.entries()) {
      await writeLines(output, csvOf(await read(id)).slice(position === 0 ? 0 : 1));
    }
    return;
  }
  const byJob: [string, Readonly<Record<string, MetricsView>>][] = [];
  for (const id of ids)
    byJob.push([id, Object.fromEntries((await read(id)).map(({ name, view }) => [name, view]))]);
  const [only, ...others] = byJob;
  if (only === undefined || others.length > 0) await writeJson(output, Object.fromEntries(byJob));
  else await writeJson(output, isOneMetric ? Object.values(only[1])[0] : only[1]);
}

export async function writeLines(output: Output, lines: readonly string[]): Promise<void> {
  for (let from = 0; from < lines.length; from += linesAtOnce)
    await output.write(`${lines.slice(from, from + linesAtOnce).join('\n')}\n`);
}

/** Metrics as CSV, a line per point: what a spreadsheet or pandas reads. Pure. */
interface ExportedMetric {
  readonly jobId: string;
  readonly name: string;
  readonly view: MetricsView;
}

const columns = [
  'job',
  'metric',
  'unit',
  'attempt',
  'rank',
  'node',
  'gpu',
  'step',
  'time',
  'value',
  'not_finite',
  'rows',
  'first_step',
  'min',
  'max',
  'last',
];

/** With a header. `rows` is how many rows a point stands for; where it is 1, `min`, `max` and `last` are empty. */
export function csvOf(metrics: readonly ExportedMetric[]): readonly string[] {
  return [
    columns.join(','),
    ...metrics.flatMap(({ jobId, name, view }) =>
      view.series.flatMap((series) =>
        series.points.map((point) => line(series.jobId ?? jobId, name, view.unit, series, point)),
      ),
    ),
  ];
}

function line(jobId: string, name: string, unit: string, series: MetricSeries, point: MetricPoint): string {
  const { atMs, value, step = null, notFinite = 0, bucket } = point;
  return [
    jobId,
    name,
    unit,
    series.attempt,
    series.nodeRank,
    series.node,
    series.gpuUuid,
    step,
    new Date(atMs).toISOString(),
    value,
    notFinite,
    bucket?.rows ?? 1,
    bucket?.firstStep,
    bucket?.min,
    bucket?.max,
    bucket?.last,
  ]
    .map((field) => fieldText(field ?? null))
    .join(',');
}

function fieldText(field: string | number | null): string {
  const text = field === null ? '' : String(field);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @returns all pages as one */
export async function queryAll(
  api: Pick<MusterApi, 'queryMetrics'>,
  query: MetricsQuery,
): Promise<MetricsView> {
  const { nextSkip, ...first } = await api.queryMetrics(query);
  let view: MetricsView = first;
  for (let skip = nextSkip; skip !== undefined; ) {
    const { nextSkip: next, ...page } = await api.queryMetrics({ ...query, skip });
    view = { ...view, ...page, series: joined(view.series, page.series) };
    skip = next;
  }
  return view;
}

/** A series that one page has cut continues in the next one: both parts become one series. */
function joined(before: readonly MetricSeries[], after: readonly MetricSeries[]): readonly MetricSeries[] {
  const [first, ...others] = after;
  const last = before.at(-1);
  if (first === undefined || last === undefined || !isSame(last, first)) return [...before, ...after];
  return [...before.slice(0, -1), { ...last, points: [...last.points, ...first.points] }, ...others];
}

function isSame(a: MetricSeries, b: MetricSeries): boolean {
  return a.attempt === b.attempt && a.nodeRank === b.nodeRank && a.gpuUuid === b.gpuUuid;
}
