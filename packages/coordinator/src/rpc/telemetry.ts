/** The API's calls about what GPUs and hosts do. */
import { MusterError } from '@muster/common/errors';
import type { MusterHandlers } from '@muster/common/gen/muster/v1/Muster';
import { isNodeName, type NodeName } from '@muster/common/ids';
import { closest } from '@muster/common/spec/suggest';
import { isJobMetricName, type JobMetricName, jobMetrics } from '@muster/common/telemetry';
import { metricsToWire, nodeTelemetryToWire } from '@muster/common/wire/telemetryCodec';
import type { ClusterState } from '../state.ts';
import type { Store } from '../store/store.ts';
import type { TelemetryStore } from '../telemetry/telemetryStore.ts';
import { unary } from './calls.ts';
import { resolveJobId } from './jobs.ts';

/** Some 5 MB and half a second of work, in which nobody else is served: six hours of 115 GPUs. */
const pointsMax = 250_000;

export interface TelemetryCallParts {
  readonly state: ClusterState;
  readonly store: Store;
  readonly telemetry: TelemetryStore;
}

type TelemetryCalls = Pick<MusterHandlers, 'QueryMetrics' | 'ListTelemetry'>;

export function telemetryCalls(parts: TelemetryCallParts): TelemetryCalls {
  const { state, telemetry } = parts;
  return {
    QueryMetrics: unary(async ({ jobId: named, name: wanted, sinceMs, attempt }) => {
      const name = knownMetric(wanted);
      if (sinceMs < 0) throw new MusterError('invalid', `since_ms: ${sinceMs} is no length of time`);
      const jobId = await resolveJobId(parts, named);
      const { field, unit } = jobMetrics[name];
      const query = {
        jobId,
        field,
        sinceMs: sinceMs === 0 ? Number.POSITIVE_INFINITY : sinceMs,
        attempt: attempt === 0 ? null : attempt,
      };
      const points = telemetry.countPoints(query);
      if (points > pointsMax) {
        throw new MusterError(
          'resource_exhausted',
          `${jobId} has ${points} readings in that time and at most ${pointsMax} are answered at once; ` +
            'ask for less time (--since) or for one attempt',
        );
      }
      return metricsToWire({ unit, series: telemetry.query(query) });
    }),

    ListTelemetry: unary(async ({ node }) => {
      const names = node === '' ? [...state.nodes.keys()].sort() : [knownNode(state, node)];
      return { nodes: names.map((name) => nodeTelemetryToWire(telemetry.newest(name))) };
    }),
  };
}

/** @throws {MusterError} `invalid`, with the names there are */
function knownMetric(name: string): JobMetricName {
  if (isJobMetricName(name)) return name;
  const known = Object.keys(jobMetrics);
  const meant = closest(name, known);
  const hint = meant === null ? '' : `did you mean ${meant}? `;
  throw new MusterError(
    'invalid',
    `there is no metric "${name}"; ${hint}The metrics are ${known.join(', ')}`,
  );
}

function knownNode(state: ClusterState, name: string): NodeName {
  if (isNodeName(name) && state.nodes.has(name)) return name;
  throw new MusterError('not_found', `there is no node ${name}; \`muster nodes\` lists them`);
}
