/** The API's questions about rows of metrics. */
import { MusterError } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import type { MetricSeries, MetricsView } from '@muster/common/telemetry';
import { type TrainingMetricName, type TrainingSummary, trainingMetrics } from '@muster/common/training';
import { Curves, pageOf, type RowRange, reduced, rowFilter } from '../rows/curve.ts';
import type { OmittedOfTask } from '../rows/knownRows.ts';
import type { RowStore } from '../rows/rowStore.ts';
import { Summaries } from '../rows/summaries.ts';
import type { Store } from '../store/store.ts';

/** Some 1.5 MB on the wire, and less than 100 ms in which nobody else is served. */
const pagePointsMax = 50_000;

export interface RowQueryParts {
  readonly store: Pick<Store, 'readJob'>;
  readonly rows: Pick<RowStore, 'lookAt'>;
}

export interface RowQuery {
  readonly name: TrainingMetricName;
  readonly range: RowRange;
  /** Of each series, at least 1; undefined: all. */
  readonly pointsMax: number | undefined;
  /** Points to leave out, counted over all series; null: there are no pages, all of it at once. */
  readonly skip: number | null;
}

/** @throws {MusterError} `not_found`: the rows of earlier pages are gone */
export async function queryRows(
  { store, rows }: RowQueryParts,
  jobId: JobId,
  { name, range, pointsMax, skip }: RowQuery,
): Promise<MetricsView> {
  const unit = trainingMetrics[name];
  const looked = await rows.lookAt(jobId, async ({ firstSteps, isThinned, omitted, read }) => {
    const curves = new Curves(name, rowFilter(range, firstSteps));
    await read((frame) => curves.take(frame));
    return { curves: curves.curves, isThinned, omitted };
  });
  if (looked === null) {
    if (skip !== null && skip > 0)
      throw new MusterError(
        'not_found',
        `the metrics of ${jobId} were removed while they were read, after ${skip} points of ${name}`,
      );
    return { unit, series: [] };
  }
  const shown = looked.curves.map((curve) =>
    pointsMax === undefined ? curve : { ...curve, points: reduced(curve.points, pointsMax) },
  );
  const page = skip === null ? { curves: shown, nextSkip: null } : pageOf(shown, skip, pagePointsMax);
  const attempts = (await store.readJob(jobId))?.attempts ?? [];
  const nodeOf = (attempt: number, rank: number) =>
    attempts.find(({ number }) => number === attempt)?.tasks[rank]?.node ?? '';
  const omittedOf = (attempt: number, rank: number) =>
    looked.omitted.find((task) => task.attempt === attempt && task.nodeRank === rank)?.values[name]?.rows ??
    0;
  return {
    unit,
    series: page.curves.map(({ attempt, nodeRank, points, mergedPoints }) => {
      const lacking = omittedOf(attempt, nodeRank);
      return {
        attempt,
        nodeRank,
        node: nodeOf(attempt, nodeRank),
        gpuUuid: '',
        points,
        ...(lacking === 0 ? {} : { omitted: lacking }),
        ...(mergedPoints === 0 ? {} : { mergedPoints }),
      };
    }),
    ...(page.nextSkip === null ? {} : { nextSkip: page.nextSkip }),
    ...(looked.isThinned ? { thinned: true } : {}),
  };
}

export interface RowSummary {
  readonly metrics: readonly TrainingSummary[];
  readonly thinned: boolean;
  /** Output of the attempts in the range that was never read for metrics. */
  readonly unreadBytes: number;
}

export async function summarizeRows(
  { rows }: Pick<RowQueryParts, 'rows'>,
  jobId: JobId,
  range: RowRange,
): Promise<RowSummary> {
  const summary = await rows.lookAt(jobId, async ({ firstSteps, isThinned, omitted, read }) => {
    const summaries = new Summaries(rowFilter(range, firstSteps), omitted);
    await read((frame) => summaries.take(frame));
    return { metrics: summaries.metrics, thinned: isThinned, unreadBytes: unreadIn(range, omitted) };
  });
  return summary ?? { metrics: [], thinned: false, unreadBytes: 0 };
}

function unreadIn({ attempt }: RowRange, omitted: readonly OmittedOfTask[]): number {
  return omitted.reduce(
    (sum, task) => (attempt === null || task.attempt === attempt ? sum + task.unreadBytes : sum),
    0,
  );
}

/** @returns a sentence where values of the series are in none of their points */
export function omittedNotes(name: string, series: readonly MetricSeries[]): readonly string[] {
  const omitted = series.reduce((sum, each) => sum + (each.omitted ?? 0), 0);
  if (omitted === 0) return [];
  const { length } = series;
  const whose = length === 1 ? '' : ` of ${length} series`;
  return [
    `${omitted} values of ${name}${whose} are not kept (sent too fast, or thinned). First, last, least, greatest and the first NaN are exact.`,
  ];
}
