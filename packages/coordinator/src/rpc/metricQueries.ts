/**
 * The API's queries of metrics over time, from memory and from the rows of a job, as they are or aggregated. As for every other
 * call, an answer contains only jobs that the caller may read.
 */
import { MusterError } from '@muster/common/errors';
import { isNodeName, type JobId, type NodeName } from '@muster/common/ids';
import type { HostMetricName } from '@muster/common/metricNames';
import {
  isJobMetricName,
  jobMetrics,
  type MetricSeries,
  type MetricSource,
  type MetricSourceName,
  type MetricsView,
} from '@muster/common/telemetry';
import { isTrainingMetricName } from '@muster/common/training';
import type { Identity } from '../caller.ts';
import { aggregated } from '../metricQuery/aggregate.ts';
import { type AskedMetrics, type MetricPlan, planOf, stepsMax } from '../metricQuery/plan.ts';
import type { Job } from '../model.ts';
import type { ReadHistory } from '../prometheus/metricHistory.ts';
import type { HistoryQuery } from '../prometheus/promql.ts';
import type { RowKeeping } from '../rows/rowKeeping.ts';
import type { Store } from '../store/store.ts';
import type { ClusterHistory } from '../telemetry/clusterHistory.ts';
import type { TelemetryStore } from '../telemetry/telemetryStore.ts';
import { anyJob, type ReferenceParts, resolveJobId } from './references.ts';
import { omittedNotes, queryRows } from './rowQueries.ts';
import { isVisibleTo, type VisibleParts, visibleTo } from './visibleJobs.ts';

/** Some 5 MB and half a second of work, in which nobody else is served: six hours of 115 GPUs. */
const readingsMax = 250_000;
/** Of which the rows are read for one answer: each is a file of up to 32 MiB. */
const rowJobsMax = 50;
/** Of each series that is aggregated: of more, neighbours are merged before. */
const rowPointsMax = 20_000;
/** Of which Prometheus is asked at once, newest first: more would not fit into a question. */
const historyJobsMax = 300;
/** Of each series: Prometheus answers 11,000 at most, and a chart has fewer columns. */
const historyStepsMax = 5_000;
/** What is not in memory for less than this is not worth a note: agents report every 10 s. */
const gapMs = 60_000;

export interface MetricQueryParts extends ReferenceParts, VisibleParts {
  readonly state: ReferenceParts['state'] &
    VisibleParts['state'] & { readonly nodes: ReadonlyMap<NodeName, unknown> };
  readonly store: ReferenceParts['store'] & Pick<Store, 'readJob'>;
  readonly telemetry: TelemetryStore;
  readonly clusterHistory: ClusterHistory;
  readonly rowKeeping: Pick<RowKeeping, 'rows'>;
  /** What memory no longer has; null: there is no Prometheus to ask. */
  readonly readHistory: ReadHistory | null;
  readonly wallMs: () => number;
}

export interface MetricsRequest extends AskedMetrics {
  readonly pointsMax?: number | undefined;
  readonly superseded: boolean;
  readonly skip: number;
}

/** @throws {MusterError} `invalid`, `not_found`, `resource_exhausted` */
export async function queryMetrics(
  parts: MetricQueryParts,
  request: MetricsRequest,
  caller: Identity,
): Promise<MetricsView> {
  const plan = planOf(request, parts.wallMs());
  const found = await collected(parts, request, plan, caller);
  const { series, notes, sources } = found;
  const { shape } = plan;
  if (shape?.stepMs != null) checkSteps(series, shape.stepMs);
  return {
    unit: plan.metric.unit,
    series: shape === null ? series : aggregated(series, shape),
    ...found.page,
    origin: { name: plan.metric.name, sources, notes },
  };
}

interface Found {
  readonly sources: readonly MetricSource[];
  readonly series: readonly MetricSeries[];
  readonly notes: readonly string[];
  readonly page: Pick<MetricsView, 'nextSkip' | 'thinned'>;
}

async function collected(
  parts: MetricQueryParts,
  request: MetricsRequest,
  plan: MetricPlan,
  caller: Identity,
): Promise<Found> {
  const node = plan.node === null ? null : knownNode(parts, plan.node);
  const jobId = plan.job === null ? null : await resolveJobId(parts, plan.job, caller);
  switch (plan.metric.subject) {
    case 'training':
      break;
    case 'gpu': {
      const jobs = jobId === null ? await readableJobs(parts, plan, caller) : [jobId];
      const recent = gpuSeries(parts, plan, jobs, node);
      return withHistory(parts, plan, recent, async () => ({
        jobIds: jobId === null ? await historyJobs(parts, plan, caller) : jobs,
        nodes: node === null ? null : [node],
      }));
    }
    case 'host': {
      const spans =
        jobId === null ? wholeTime(parts, plan, node) : await timesOnNodes(parts, plan, jobId, node);
      const isOfAll = jobId === null && node === null;
      const nodes = isOfAll ? null : [...new Set(spans.map((span) => span.node))];
      const found = await withHistory(parts, plan, hostSeries(parts, plan, spans), () => ({
        jobIds: null,
        nodes,
      }));
      return jobId === null ? found : { ...found, series: within(found.series, spans) };
    }
    case 'cluster': {
      const points = parts.clusterHistory.points(plan.metric.name, plan.fromMs, plan.toMs);
      const recent = points.length === 0 ? [] : [{ ...nobody, points }];
      return withHistory(parts, plan, recent, () => ({ jobIds: null, nodes: null }));
    }
  }
  return jobId === null ? rowsOfJobs(parts, plan, caller) : rowsOfJob(parts, request, plan, jobId);
}

const nobody = { attempt: null, nodeRank: null, node: '', gpuUuid: '' } as const;

// ---- In memory

type HistoryOwners = Pick<HistoryQuery, 'jobIds' | 'nodes'>;

/** @param whose asked only where there is a question about earlier values */
async function withHistory(
  parts: MetricQueryParts,
  plan: MetricPlan,
  recent: readonly MetricSeries[],
  whose: () => HistoryOwners | Promise<HistoryOwners>,
): Promise<Found> {
  const { telemetry, readHistory } = parts;
  const memoryFromMs = telemetry.fromMs;
  const found = { sources: sourcesOf('memory', recent), series: recent, notes: [], page: {} };
  // Who names no beginning gets what is at hand.
  if (plan.fromMs === Number.NEGATIVE_INFINITY || plan.fromMs >= memoryFromMs - gapMs) return found;
  const { metric, attempt, shape } = plan;
  if (readHistory === null) {
    const since = new Date(memoryFromMs).toISOString();
    return {
      ...found,
      notes: [`values before ${since} are not in memory, and there is no --prometheus-url`],
    };
  }
  const of = await whose();
  if (of.jobIds?.length === 0 || of.nodes?.length === 0) return found;
  const toMs = Math.min(plan.toMs, memoryFromMs);
  const stepMs = historyStepMs(toMs - plan.fromMs, shape?.stepMs ?? null);
  const question = { metric, ...of, attempt, stepMs, condensed: shape?.aggregation ?? null };
  const history = await readHistory(question, { fromMs: plan.fromMs, toMs, withJobs: plan.job === null });
  if (typeof history === 'string') return { ...found, notes: [history] };
  return {
    ...found,
    sources: [...sourcesOf('prometheus', history), ...found.sources],
    series: joined(history, recent),
  };
}

/** Not finer than agents report, and no more than Prometheus answers. */
function historyStepMs(spanMs: number, stepMs: number | null): number {
  const leastMs = Math.max(10_000, Math.ceil(spanMs / historyStepsMax / 1_000) * 1_000);
  return stepMs === null ? leastMs : Math.max(stepMs, leastMs);
}

/** The earlier part of a series and its later part are one. */
function joined(earlier: readonly MetricSeries[], later: readonly MetricSeries[]): readonly MetricSeries[] {
  const keyOf = ({ jobId, attempt, nodeRank, node, gpuUuid }: MetricSeries) =>
    JSON.stringify([jobId, attempt, nodeRank, node, gpuUuid]);
  const rest = new Map(later.map((series) => [keyOf(series), series]));
  const both = earlier.map((series) => {
    const key = keyOf(series);
    const points = rest.get(key)?.points ?? [];
    rest.delete(key);
    return points.length === 0 ? series : { ...series, points: [...series.points, ...points] };
  });
  return [...both, ...rest.values()];
}

function gpuSeries(
  { telemetry, wallMs }: MetricQueryParts,
  { metric, job, attempt, fromMs, toMs }: MetricPlan,
  jobs: readonly JobId[],
  node: NodeName | null,
): readonly MetricSeries[] {
  if (!isJobMetricName(metric.name)) return [];
  const { field } = jobMetrics[metric.name];
  const range = { sinceMs: wallMs() - fromMs, attempt };
  const readings = jobs.reduce((sum, jobId) => sum + telemetry.countPoints({ ...range, jobId }), 0);
  if (readings > readingsMax) {
    throw new MusterError(
      'resource_exhausted',
      `there are ${readings} readings in that time and at most ${readingsMax} are looked at for one answer; ` +
        'ask for less time (--since), for one job or for one attempt',
    );
  }
  return jobs.flatMap((jobId) =>
    telemetry.query({ ...range, jobId, field }).flatMap((series) => {
      if (node !== null && series.node !== node) return [];
      const points = series.points.filter(({ atMs }) => atMs <= toMs);
      return points.length === 0 ? [] : [{ ...(job === null ? { jobId } : {}), ...series, points }];
    }),
  );
}

/** Jobs with readings that the caller may read, and that belong to the user and project of the request. */
async function readableJobs(
  { telemetry, state, store }: MetricQueryParts,
  { user, project }: MetricPlan,
  caller: Identity,
): Promise<readonly JobId[]> {
  const readable: JobId[] = [];
  for (const jobId of telemetry.jobIds) {
    const job: Job | undefined = state.jobs.get(jobId) ?? (await store.readJob(jobId))?.job;
    if (job === undefined || !isVisibleTo(state, caller, job)) continue;
    if ((user === null || job.user === user) && (project === null || job.spec.project === project))
      readable.push(jobId);
  }
  return readable;
}

/** Jobs that the caller may read, newest first: whose GPUs Prometheus may have seen. */
async function historyJobs(
  { state, store }: MetricQueryParts,
  { user, project }: MetricPlan,
  caller: Identity,
): Promise<readonly JobId[]> {
  const also = {
    visible: visibleTo(state, caller),
    ...(user === null ? {} : { user }),
    ...(project === null ? {} : { project }),
  };
  return (await store.listJobIds({ ...anyJob, limit: historyJobsMax, also })).map(({ id }) => id);
}

/** When which node counts; wall clock. */
interface NodeSpan {
  readonly node: NodeName;
  readonly fromMs: number;
  readonly toMs: number;
}

function wholeTime(
  { telemetry }: MetricQueryParts,
  { fromMs, toMs }: MetricPlan,
  node: NodeName | null,
): NodeSpan[] {
  const nodes = node === null ? telemetry.hostNames.toSorted() : [node];
  return nodes.map((each) => ({ node: each, fromMs, toMs }));
}

/** Of a job its nodes, while its attempts held them. */
async function timesOnNodes(
  { store }: MetricQueryParts,
  { fromMs, toMs, attempt }: MetricPlan,
  jobId: JobId,
  node: NodeName | null,
): Promise<readonly NodeSpan[]> {
  const attempts = (await store.readJob(jobId))?.attempts ?? [];
  return attempts
    .filter(({ number }) => attempt === null || number === attempt)
    .flatMap(({ allocatedAtMs, endedAtMs, tasks }) =>
      tasks
        .filter((task) => node === null || task.node === node)
        .map((task) => ({
          node: task.node,
          fromMs: Math.max(fromMs, allocatedAtMs),
          toMs: Math.min(toMs, endedAtMs ?? toMs),
        })),
    );
}

/** Of nodes only what happened while they counted. */
function within(series: readonly MetricSeries[], spans: readonly NodeSpan[]): readonly MetricSeries[] {
  return series.flatMap((each) => {
    const own = spans.filter(({ node }) => node === each.node);
    const points = each.points.filter(({ atMs }) =>
      own.some(({ fromMs, toMs }) => atMs >= fromMs && atMs <= toMs),
    );
    return points.length === 0 ? [] : [{ ...each, points }];
  });
}

function hostSeries(
  { telemetry }: MetricQueryParts,
  { metric }: MetricPlan,
  spans: readonly NodeSpan[],
): readonly MetricSeries[] {
  const byNode = new Map<NodeName, MetricSeries['points']>();
  for (const { node, fromMs, toMs } of spans) {
    const points = telemetry.hostPoints(node, metric.name as HostMetricName, fromMs, toMs);
    byNode.set(node, [...(byNode.get(node) ?? []), ...points]);
  }
  return [...byNode].flatMap(([node, points]) => (points.length === 0 ? [] : [{ ...nobody, node, points }]));
}

// ---- Rows

async function rowsOfJob(
  parts: MetricQueryParts,
  { pointsMax, superseded, skip }: MetricsRequest,
  plan: MetricPlan,
  jobId: JobId,
): Promise<Found> {
  const { metric, attempt, fromMs, toMs, shape } = plan;
  if (!isTrainingMetricName(metric.name)) throw new Error(`${metric.name} is not in the output`);
  const { series, nextSkip, thinned } = await queryRows(
    { store: parts.store, rows: parts.rowKeeping.rows },
    jobId,
    {
      name: metric.name,
      range: { fromMs, toMs, attempt, superseded },
      // What is aggregated comes whole: a page of it would be a part of a step.
      pointsMax: shape === null ? pointsMax : rowPointsMax,
      skip: shape === null ? skip : null,
    },
  );
  const page = {
    ...(nextSkip === undefined ? {} : { nextSkip }),
    ...(thinned === undefined ? {} : { thinned }),
  };
  return { sources: sourcesOf('rows', series), series, notes: omittedNotes(metric.name, series), page };
}

async function rowsOfJobs(parts: MetricQueryParts, plan: MetricPlan, caller: Identity): Promise<Found> {
  const { store, state } = parts;
  const { user, project, metric } = plan;
  const also = {
    visible: visibleTo(state, caller),
    ...(user === null ? {} : { user }),
    ...(project === null ? {} : { project }),
  };
  const listed = await store.listJobIds({ ...anyJob, limit: rowJobsMax + 1, also });
  const request = { jobId: '', name: metric.name, superseded: false, skip: 0 };
  const series: MetricSeries[] = [];
  for (const { id } of listed.slice(0, rowJobsMax)) {
    const found = await rowsOfJob(parts, request, plan, id);
    series.push(...found.series.map((each) => ({ jobId: id, ...each })));
  }
  const notes =
    listed.length > rowJobsMax
      ? [`only the ${rowJobsMax} newest jobs were looked at; name a user, a project or one job for others`]
      : [];
  return {
    sources: sourcesOf('rows', series),
    series,
    notes: [...notes, ...omittedNotes(metric.name, series)],
    page: {},
  };
}

// ---- About the answer

function checkSteps(series: readonly MetricSeries[], stepMs: number): void {
  for (const { points } of series) {
    const spanMs = (points.at(-1)?.atMs ?? 0) - (points[0]?.atMs ?? 0);
    if (spanMs / stepMs <= stepsMax) continue;
    const enough = Math.ceil(spanMs / stepsMax / 1_000) * 1_000;
    throw new MusterError(
      'invalid',
      `step_ms: ${stepMs} gives more than ${stepsMax} values of a series; use ${enough} or more, or ask for less time`,
    );
  }
}

function sourcesOf(source: MetricSourceName, series: readonly MetricSeries[]): readonly MetricSource[] {
  let fromMs = Number.POSITIVE_INFINITY;
  let toMs = Number.NEGATIVE_INFINITY;
  for (const { points } of series) {
    for (const { atMs } of points) {
      fromMs = Math.min(fromMs, atMs);
      toMs = Math.max(toMs, atMs);
    }
  }
  return fromMs > toMs ? [] : [{ source, fromMs, toMs }];
}

/** @throws {MusterError} `not_found` */
export function knownNode({ state }: Pick<MetricQueryParts, 'state'>, name: string): NodeName {
  if (isNodeName(name) && state.nodes.has(name)) return name;
  throw unknownNode(name);
}

function unknownNode(name: string): MusterError {
  return new MusterError('not_found', `there is no node ${name}; \`muster nodes\` lists them`);
}
