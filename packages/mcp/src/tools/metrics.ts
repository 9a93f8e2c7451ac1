/** Values of GPUs, trainings, nodes and the cluster over time. */
import { MusterError } from '@muster/common/errors';
import { metricNamed, namedMetrics } from '@muster/common/metricNames';
import { closest } from '@muster/common/spec/suggest';
import type { MetricPoint, MetricSeries } from '@muster/common/telemetry';
import type { MetricsQuery } from '@muster/common/wire/client';
import * as z from 'zod';
import { attempt, timeText, workloadId } from '../parameters.ts';
import { brief, cursorPosition, firstFitting, isoTime } from '../size.ts';
import { tool } from '../tool.ts';

const aggregations = ['mean', 'min', 'max', 'p95', 'last', 'sum'] as const;
const groups = ['gpu', 'rank', 'node', 'job', 'all'] as const;

const name = z.string().min(1).max(64);

const point = z.object({
  at: z.string(),
  value: z.number().nullable().describe('null: not read, or not a finite number'),
  step: z.number().nullable(),
});

/** Points of one series in an answer; a query with stepSeconds or aggregation has fewer. */
const pointsMax = 60;
/** Of all series of an answer. */
const pointsBytesMax = 5 * 1024;

const input = z.strictObject({
  metric: name.describe('name of the metric; a wrong one is answered with the names that there are'),
  workloadId: workloadId.optional().describe('only of this workload'),
  node: name.optional(),
  user: name.optional(),
  project: name.optional(),
  startTime: timeText.optional().describe('default: -30m. -2h before now, or an ISO 8601 moment'),
  endTime: timeText.optional().describe('default: now'),
  stepSeconds: z.int().min(1).max(86_400).optional().describe('one value for each so many seconds'),
  aggregation: z.enum(aggregations).optional().describe('how several values become one'),
  by: z.enum(groups).optional().describe('whose values become one together'),
  attempt,
  cursor: z.string().max(64).optional().describe('nextCursor of the answer before, for further series'),
});

type MetricsInput = z.output<typeof input>;

const output = z.object({
  metric: z.string(),
  unit: z.string(),
  series: z.array(
    z.object({
      workloadId: z.string().nullable(),
      attempt: z.number().nullable(),
      rank: z.number().nullable(),
      node: z.string().nullable(),
      gpu: z.string().nullable(),
      last: z.number().nullable(),
      mean: z.number().nullable().describe('of all its points'),
      points: z.array(point),
      omitted: z.number().describe('values that the coordinator does not keep'),
      pointsNotShown: z.number().describe('earlier points; ask with a later startTime, or stepSeconds'),
    }),
  ),
  seriesTotal: z.number(),
  sources: z.array(z.string()).describe('where the values come from: memory, rows, prometheus'),
  notes: z.array(z.string()).describe('what is missing, and why'),
  nextCursor: z.string().nullable(),
});

type MetricsOutput = z.input<typeof output>;

export const metricsQuery = tool({
  name: 'metrics_query',
  title: 'Query metrics',
  about:
    'Values of a metric over time: of GPUs (gpu_utilization, gpu_memory_used, gpu_power, gpu_temperature, sm_active …), of the training ' +
    '(train_loss, eval_loss, learning_rate, grad_norm, tokens_per_second …), of nodes and of the cluster. With aggregation and no ' +
    'stepSeconds one value for the whole time, such as the mean utilization of the last 30 minutes.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input,
  output,
  async run(given, { api }) {
    const metric = metricNamed(given.metric);
    if (metric === null) throw unknownMetric(given.metric);
    const isSampled =
      given.stepSeconds === undefined && given.aggregation === undefined && given.by === undefined;
    const isTraining = metric.subject === 'training';
    const { unit, series, origin } = await api.queryMetrics({
      ...queryOf(given),
      name: metric.name,
      ...(isTraining && isSampled ? { pointsMax } : {}),
    });
    const start = cursorPosition(given.cursor);
    const rest = series.slice(start).map((each) => seriesOf(each, given.workloadId ?? null));
    const page = firstFitting(rest, pointsBytesMax);
    const end = start + page.length;
    const data = {
      metric: metric.name,
      unit,
      series: [...page],
      seriesTotal: series.length,
      sources: [...new Set(origin?.sources.map(({ source }) => source) ?? [])],
      notes: [...firstFitting(origin?.notes.map((note) => brief(note, 200)) ?? [], 800)],
      nextCursor: end < series.length ? String(end) : null,
    };
    return { data, text: textOf(data) };
  },
});

function queryOf(given: MetricsInput): Omit<MetricsQuery, 'name'> {
  const { workloadId: jobId, node, user, project, startTime, endTime, stepSeconds, aggregation, by } = given;
  return {
    startTime: startTime ?? '-30m',
    ...(endTime === undefined ? {} : { endTime }),
    ...(jobId === undefined ? {} : { jobId }),
    ...(node === undefined ? {} : { node }),
    ...(user === undefined ? {} : { user }),
    ...(project === undefined ? {} : { project }),
    ...(stepSeconds === undefined ? {} : { stepMs: stepSeconds * 1000 }),
    ...(aggregation === undefined ? {} : { aggregation }),
    ...(by === undefined ? {} : { by }),
    ...(given.attempt === undefined ? {} : { attempt: given.attempt }),
  };
}

function unknownMetric(asked: string): MusterError {
  const names = [...namedMetrics.keys()];
  const near = closest(asked, names);
  const meant = near === null ? '' : ` Did you mean ${near}?`;
  return new MusterError(
    'invalid',
    `metric: there is no metric "${brief(asked, 64)}".${meant} There are: ${names.join(', ')}`,
  );
}

function seriesOf(series: MetricSeries, jobId: string | null): MetricsOutput['series'][number] {
  const { points, node, gpuUuid } = series;
  const values = points.flatMap(({ value }) => value ?? []);
  const shown = firstFitting([...points].reverse().slice(0, pointsMax).map(pointOf), pointsBytesMax / 2);
  return {
    workloadId: series.jobId ?? jobId,
    attempt: series.attempt,
    rank: series.nodeRank,
    node: node === '' ? null : node,
    gpu: gpuUuid === '' ? null : gpuUuid,
    last: values.at(-1) ?? null,
    mean: values.length === 0 ? null : rounded(values.reduce((sum, value) => sum + value, 0) / values.length),
    points: [...shown].reverse(),
    omitted: series.omitted ?? 0,
    pointsNotShown: points.length - shown.length,
  };
}

function pointOf({ atMs, value, step = null }: MetricPoint): z.input<typeof point> {
  return { at: isoTime(atMs), value: value === null ? null : rounded(value), step };
}

/** Six digits: a model reads no more out of them, and each costs. */
function rounded(value: number): number {
  return Number(value.toPrecision(6));
}

function textOf({ metric, unit, series, seriesTotal }: MetricsOutput): string {
  const [first] = series;
  if (first === undefined) return `No values of ${metric} in that time.`;
  const last = first.last === null ? 'unknown' : `${first.last} ${unit}`;
  return `${seriesTotal} series of ${metric}; the last value of the first is ${last}, its mean ${first.mean ?? 'unknown'}.`;
}
