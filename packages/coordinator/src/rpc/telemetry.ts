/** The API's calls about what jobs, GPUs and hosts do. */
import { MusterError } from '@muster/common/errors';
import { metricsToWire, nodeTelemetryToWire, summaryToWire } from '@muster/common/wire/codec';
import type { RowRange } from '../rows/curve.ts';
import type { ClusterState } from '../state/state.ts';
import type { Store } from '../store/store.ts';
import { type MusterCalls, unary } from './calls.ts';
import { knownNode, type MetricQueryParts, queryMetrics } from './metricQueries.ts';
import { resolveJobId } from './references.ts';
import { summarizeRows } from './rowQueries.ts';

export interface TelemetryCallParts extends MetricQueryParts {
  readonly state: ClusterState;
  readonly store: Store;
}

type TelemetryCalls = Pick<MusterCalls, 'QueryMetrics' | 'SummarizeTraining' | 'ListTelemetry'>;

export function telemetryCalls(parts: TelemetryCallParts): TelemetryCalls {
  const { state, telemetry } = parts;
  const rowParts = { store: parts.store, rows: parts.rowKeeping.rows };
  return {
    QueryMetrics: unary(async (request, caller) => metricsToWire(await queryMetrics(parts, request, caller))),

    SummarizeTraining: unary(async ({ jobId: named, sinceMs, attempt }, caller) => {
      checkSince(sinceMs);
      const jobId = await resolveJobId(parts, named, caller);
      const range = rowRange(parts, sinceMs, attempt);
      const { metrics, ...more } = await summarizeRows(rowParts, jobId, range);
      return { metrics: metrics.map(summaryToWire), ...more };
    }),

    ListTelemetry: unary(async ({ node }) => {
      const names = node === undefined ? [...state.nodes.keys()].sort() : [knownNode({ state }, node)];
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
  return {
    fromMs: wallMs() - (sinceMs ?? Number.POSITIVE_INFINITY),
    toMs: Number.POSITIVE_INFINITY,
    attempt,
    superseded: false,
  };
}
