/** What `muster metrics` asks the coordinator for. */
import type { MetricSeries, MetricsView } from '@muster/common/telemetry';
import type { MetricsQuery, MusterApi } from '@muster/common/wire/client';

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

/** A series that a page has cut goes on in the next one. */
function joined(before: readonly MetricSeries[], after: readonly MetricSeries[]): readonly MetricSeries[] {
  const [first, ...others] = after;
  const last = before.at(-1);
  if (first === undefined || last === undefined || !isSame(last, first)) return [...before, ...after];
  return [...before.slice(0, -1), { ...last, points: [...last.points, ...first.points] }, ...others];
}

function isSame(a: MetricSeries, b: MetricSeries): boolean {
  return a.attempt === b.attempt && a.nodeRank === b.nodeRank && a.gpuUuid === b.gpuUuid;
}
