/** The API's calls about what jobs, GPUs and hosts do. */
import { MusterError } from '@muster/common/errors';
import type { MusterHandlers } from '@muster/common/gen/muster/v1/Muster';
import { isNodeName, type NodeName } from '@muster/common/ids';
import { closest } from '@muster/common/spec/suggest';
import { isJobMetricName, jobMetrics, type MetricSeries } from '@muster/common/telemetry';
import { isTrainingMetricName, trainingMetrics } from '@muster/common/training';
import { metricsToWire, nodeTelemetryToWire } from '@muster/common/wire/telemetryCodec';
import type { ClusterState } from '../state.ts';
import type { Store } from '../store/store.ts';
import type { ArrayFiller } from '../tasks/arrayFiller.ts';
import type { MetricRange } from '../telemetry/jobReadings.ts';
import type { TelemetryStore } from '../telemetry/telemetryStore.ts';
import { unary } from './calls.ts';
import { resolveJobId } from './references.ts';

/** Some 5 MB and half a second of work, in which nobody else is served: six hours of 115 GPUs. */
const pointsMax = 250_000;

export interface TelemetryCallParts {
  readonly state: ClusterState;
  readonly store: Store;
  readonly arrays: Pick<ArrayFiller, 'complete'>;
  readonly telemetry: TelemetryStore;
}

type TelemetryCalls = Pick<MusterHandlers, 'QueryMetrics' | 'ListTelemetry'>;

export function telemetryCalls(parts: TelemetryCallParts): TelemetryCalls {
  const { state, telemetry } = parts;
  return {
    QueryMetrics: unary(async ({ jobId: named, name: wanted, sinceMs, attempt }) => {
      if (sinceMs < 0) throw new MusterError('invalid', `since_ms: ${sinceMs} is no length of time`);
      const jobId = await resolveJobId(parts, named);
      const range = {
        jobId,
        sinceMs: sinceMs === 0 ? Number.POSITIVE_INFINITY : sinceMs,
        attempt: attempt === 0 ? null : attempt,
      };
      const { unit, points, series } = askedOf(telemetry, wanted, range);
      if (points > pointsMax) {
        throw new MusterError(
          'resource_exhausted',
          `${jobId} has ${points} readings in that time and at most ${pointsMax} are answered at once; ` +
            'ask for less time (--since) or for one attempt',
        );
      }
      return metricsToWire({ unit, series: series() });
    }),

    ListTelemetry: unary(async ({ node }) => {
      const names = node === '' ? [...state.nodes.keys()].sort() : [knownNode(state, node)];
      return { nodes: names.map((name) => nodeTelemetryToWire(telemetry.newest(name))) };
    }),
  };
}

interface Asked {
  readonly unit: string;
  /** To answer, or a few more. */
  readonly points: number;
  readonly series: () => readonly MetricSeries[];
}

/** @throws {MusterError} `invalid`, with the names there are */
function askedOf(telemetry: TelemetryStore, name: string, range: MetricRange): Asked {
  if (isJobMetricName(name)) {
    const { field, unit } = jobMetrics[name];
    return { unit, points: telemetry.countPoints(range), series: () => telemetry.query({ ...range, field }) };
  }
  if (isTrainingMetricName(name)) {
    return {
      unit: trainingMetrics[name],
      points: telemetry.countTrainingPoints(range),
      series: () => telemetry.queryTraining({ ...range, field: name }),
    };
  }
  const known = [...Object.keys(jobMetrics), ...Object.keys(trainingMetrics)];
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
