/** The API's calls about what jobs, GPUs and hosts do. */
import { MusterError } from '@muster/common/errors';
import type { MusterHandlers } from '@muster/common/gen/muster/v1/Muster';
import { isNodeName, type NodeName } from '@muster/common/ids';
import { closest } from '@muster/common/spec/suggest';
import { isJobMetricName, jobMetrics } from '@muster/common/telemetry';
import { isTrainingMetricName, trainingMetrics } from '@muster/common/training';
import { metricsToWire, nodeTelemetryToWire, summaryToWire } from '@muster/common/wire/codec';
import type { ArrayFiller } from '../reconcilers/arrayFiller.ts';
import type { RowRange } from '../rows/curve.ts';
import type { RowKeeping } from '../rows/rowKeeping.ts';
import type { ClusterState } from '../state/state.ts';
import type { Store } from '../store/store.ts';
import type { TelemetryStore } from '../telemetry/telemetryStore.ts';
import { unary } from './calls.ts';
import { resolveJobId } from './references.ts';
import { queryRows, summarizeRows } from './rowQueries.ts';

/** Some 5 MB and half a second of work, in which nobody else is served: six hours of 115 GPUs. */
const readingsMax = 250_000;

export interface TelemetryCallParts {
  readonly state: ClusterState;
  readonly store: Store;
  readonly arrays: Pick<ArrayFiller, 'complete' | 'member'>;
  readonly telemetry: TelemetryStore;
  readonly rowKeeping: Pick<RowKeeping, 'rows'>;
  readonly wallMs: () => number;
}

type TelemetryCalls = Pick<MusterHandlers, 'QueryMetrics' | 'SummarizeTraining' | 'ListTelemetry'>;

export function telemetryCalls(parts: TelemetryCallParts): TelemetryCalls {
  const { state, telemetry } = parts;
  const rowParts = { store: parts.store, rows: parts.rowKeeping.rows };
  return {
    QueryMetrics: unary(
      async ({ jobId: named, name, sinceMs, attempt, pointsMax, superseded, skip }, caller) => {
        checkSince(sinceMs);
        const jobId = await resolveJobId(parts, named, caller);
        if (isTrainingMetricName(name)) {
          const range = { ...rowRange(parts, sinceMs, attempt), superseded };
          return metricsToWire(await queryRows(rowParts, jobId, { name, range, pointsMax, skip }));
        }
        if (!isJobMetricName(name)) throw unknownMetric(name);
        const range = { jobId, sinceMs: sinceMs ?? Number.POSITIVE_INFINITY, attempt: attempt ?? null };
        const points = telemetry.countPoints(range);
        if (points > readingsMax) {
          throw new MusterError(
            'resource_exhausted',
            `${jobId} has ${points} readings in that time and at most ${readingsMax} are answered at once; ` +
              'ask for less time (--since) or for one attempt',
          );
        }
        const { field, unit } = jobMetrics[name];
        return metricsToWire({ unit, series: telemetry.query({ ...range, field }) });
      },
    ),

    SummarizeTraining: unary(async ({ jobId: named, sinceMs, attempt }, caller) => {
      checkSince(sinceMs);
      const jobId = await resolveJobId(parts, named, caller);
      const { metrics, thinned } = await summarizeRows(rowParts, jobId, rowRange(parts, sinceMs, attempt));
      return { metrics: metrics.map(summaryToWire), thinned };
    }),

    ListTelemetry: unary(async ({ node }) => {
      const names = node === undefined ? [...state.nodes.keys()].sort() : [knownNode(state, node)];
      return { nodes: names.map((name) => nodeTelemetryToWire(telemetry.newest(name))) };
    }),
  };
}

function checkSince(sinceMs = 0): void {
  if (sinceMs < 0) throw new MusterError('invalid', `since_ms: invalid length of time ${sinceMs}`);
}

function rowRange(
  { wallMs }: TelemetryCallParts,
  sinceMs: number | undefined,
  attempt: number | null = null,
): RowRange {
  return { fromMs: wallMs() - (sinceMs ?? Number.POSITIVE_INFINITY), attempt, superseded: false };
}

/** With the names there are. */
function unknownMetric(name: string): MusterError {
  const known = [...Object.keys(jobMetrics), ...Object.keys(trainingMetrics)];
  const meant = closest(name, known);
  const hint = meant === null ? '' : `did you mean ${meant}? `;
  return new MusterError(
    'invalid',
    `there is no metric "${name}"; ${hint}The metrics are ${known.join(', ')}`,
  );
}

function knownNode(state: ClusterState, name: string): NodeName {
  if (isNodeName(name) && state.nodes.has(name)) return name;
  throw new MusterError('not_found', `there is no node ${name}; \`muster nodes\` lists them`);
}
