/** The API's stream of a metric: what arrives of it, as far as the caller may read it. */
import { MusterError } from '@muster/common/errors';
import type { WatchMetricsRequest__Output } from '@muster/common/gen/muster/v1/WatchMetricsRequest';
import type { JobId, NodeName } from '@muster/common/ids';
import type { HostMetricName } from '@muster/common/metricNames';
import { type JobMetricName, jobMetrics } from '@muster/common/telemetry';
import type { TrainingMetricName } from '@muster/common/training';
import { metricUpdateToWire } from '@muster/common/wire/codec';
import type { Identity } from '../caller.ts';
import type { CommitNotifier } from '../events/notices.ts';
import { type MetricPlan, planOf } from '../metricQuery/plan.ts';
import { Positions } from '../metricQuery/positions.ts';
import { ClosedSteps } from '../metricStream/closedSteps.ts';
import { followValues, type ValueSource } from '../metricStream/followValues.ts';
import { type OutputValueParts, OutputValues } from '../metricStream/outputValues.ts';
import { clusterValues, GpuValues, hostValues, type SampledParts } from '../metricStream/sampledValues.ts';
import type { Job } from '../model.ts';
import type { RowKeeping } from '../rows/rowKeeping.ts';
import type { Store } from '../store/store.ts';
import { type MusterCalls, serverStream } from './calls.ts';
import { knownNode, type MetricQueryParts } from './metricQueries.ts';
import { type ReferenceParts, resolveJobId } from './references.ts';
import { isVisibleTo, type VisibleParts } from './visibleJobs.ts';
import { whileVisible } from './whileVisible.ts';

export interface MetricStreamParts extends ReferenceParts, VisibleParts, SampledParts {
  readonly state: MetricQueryParts['state'];
  readonly store: ReferenceParts['store'] & Pick<Store, 'readJob'>;
  readonly arrivals: SampledParts['arrivals'];
  readonly rowKeeping: Pick<RowKeeping, 'rows'>;
  readonly committed: Pick<CommitNotifier, 'next'>;
}

export function metricStreamCalls(parts: MetricStreamParts): Pick<MusterCalls, 'WatchMetrics'> {
  return {
    WatchMetrics: serverStream(async (request, abort, caller) => {
      const { follow, position, startTime } = request;
      const nowMs = parts.wallMs();
      const plan = planOf({ ...request, ...(position === undefined ? {} : { startTime: undefined }) }, nowMs);
      const jobId = plan.job === null ? null : await resolveJobId(parts, plan.job, caller);
      const stepMs = stepMsOf(plan, request);
      const positions = positionsOf(plan, request, nowMs, stepMs);
      const values = valuesOf(parts, plan, jobId, caller, positions);
      const { wallMs } = parts;
      const perStep =
        plan.shape === null || stepMs === null
          ? {}
          : { perStep: { steps: new ClosedSteps({ ...plan.shape, stepMs }, positions.fromMs), wallMs } };
      // The first of the steps is a whole one.
      const withEarlier = position !== undefined || startTime !== undefined || stepMs !== null;
      const { unit } = plan.metric;
      const updates = (over: AbortSignal) =>
        followValues(values, positions, { follow, withEarlier, ...perStep }, over);
      return wireUpdates(whileVisible(parts, caller, jobId, abort, updates), unit);
    }),
  };
}

async function* wireUpdates(updates: ReturnType<typeof followValues>, unit: string) {
  for await (const update of updates) yield metricUpdateToWire({ ...update, unit });
}

/** @returns null: values are sent one by one */
function stepMsOf(
  { shape }: MetricPlan,
  { stepMs, aggregation, by }: WatchMetricsRequest__Output,
): number | null {
  if (stepMs !== undefined) return shape?.stepMs ?? null;
  const field = aggregation === undefined ? 'by' : 'aggregation';
  if ((aggregation ?? by) !== undefined)
    throw new MusterError('invalid', `${field}: a stream tells one value for each step; give step_ms too`);
  return null;
}

function positionsOf(
  { metric, fromMs }: MetricPlan,
  { position, startTime }: WatchMetricsRequest__Output,
  nowMs: number,
  stepMs: number | null,
): Positions {
  if (position !== undefined)
    return Positions.parse(position, metric.subject === 'training' && stepMs === null);
  if (startTime !== undefined) return new Positions(Math.max(0, fromMs));
  return new Positions(stepMs === null ? nowMs : Math.floor(nowMs / stepMs) * stepMs);
}

/** @throws {MusterError} `invalid`, `not_found` */
function valuesOf(
  parts: MetricStreamParts,
  plan: MetricPlan,
  jobId: JobId | null,
  caller: Identity,
  positions: Positions,
): ValueSource {
  const { metric, attempt } = plan;
  const { name } = metric;
  const node: NodeName | null = plan.node === null ? null : knownNode(parts, plan.node);
  switch (metric.subject) {
    case 'gpu': {
      const { field } = jobMetrics[name as JobMetricName];
      const isWanted = jobId === null ? isOf(parts, plan, caller) : () => true;
      return new GpuValues(parts, { field, jobId, attempt, node, isWanted }, positions);
    }
    case 'host':
      if (jobId !== null)
        throw new MusterError(
          'invalid',
          `job_id: ${name} is followed for nodes, not for jobs; name a node instead`,
        );
      return hostValues(parts, name as HostMetricName, node, positions);
    case 'cluster':
      return clusterValues(parts, name, positions);
    case 'training':
      break;
  }
  if (jobId === null)
    throw new MusterError('invalid', `job_id: ${name} is followed for one job; name the job`);
  const of = { jobId, name: name as TrainingMetricName, attempt };
  return new OutputValues({ ...parts, rows: parts.rowKeeping.rows, nodeOf: nodesOf(parts) }, of, positions);
}

/** Jobs that the caller may read, and that belong to the user and project of the request. */
function isOf(
  { state, store }: MetricStreamParts,
  { user, project }: MetricPlan,
  caller: Identity,
): (jobId: JobId) => boolean | Promise<boolean> {
  const isOfThem = (job: Job | undefined) =>
    job !== undefined &&
    isVisibleTo(state, caller, job) &&
    (user === null || job.user === user) &&
    (project === null || job.spec.project === project);
  return (jobId) => {
    const job = state.jobs.get(jobId);
    return job === undefined ? store.readJob(jobId).then((record) => isOfThem(record?.job)) : isOfThem(job);
  };
}

function nodesOf({ store }: MetricStreamParts): OutputValueParts['nodeOf'] {
  return async ({ jobId, attempt, nodeRank }) => {
    const attempts = (await store.readJob(jobId))?.attempts ?? [];
    return attempts.find(({ number }) => number === attempt)?.tasks[nodeRank]?.node ?? '';
  };
}
