/** What Prometheus is asked for a metric of the table of names, and what its answer means. Pure. */
import type { NamedMetric } from '@muster/common/metricNames';
import { type MetricPoint, type MetricSeries, readingIntervalMs } from '@muster/common/telemetry';

/** How the values within a step become one before they are sent. */
export type Condensed = 'mean' | 'min' | 'max' | 'p95' | 'last' | 'sum';

export interface HistoryQuery {
  readonly metric: NamedMetric;
  /** null: whichever job. Of metrics of GPUs only. */
  readonly jobIds: readonly string[] | null;
  /** null: whichever node. */
  readonly nodes: readonly string[] | null;
  readonly attempt: number | null;
  readonly stepMs: number;
  /** null: the values as they were scraped. */
  readonly condensed: Condensed | null;
}

const overTime = {
  mean: 'avg_over_time',
  min: 'min_over_time',
  max: 'max_over_time',
  last: 'last_over_time',
  // Of energy only, which is an increase.
  sum: 'sum_over_time',
} as const;

/** Shorter than two scrapes there is no rate. */
const rateMsMin = 60_000;
const mebibyte = 1024 * 1024;

export function promQlOf(question: HistoryQuery): string {
  const { metric, condensed, stepMs } = question;
  const { text, isSelector } = expressionOf(question);
  if (condensed === null || metric.name === 'gpu_energy_joules') return text;
  const range = isSelector
    ? `${text}[${seconds(stepMs)}]`
    : `(${text})[${seconds(stepMs)}:${seconds(resolutionMs(stepMs))}]`;
  return condensed === 'p95' ? `quantile_over_time(0.95, ${range})` : `${overTime[condensed]}(${range})`;
}

/** The lookup of one selector, or something that is computed. */
interface Expression {
  readonly text: string;
  readonly isSelector: boolean;
}

function expressionOf(question: HistoryQuery): Expression {
  const { metric, stepMs } = question;
  const { prometheus } = metric;
  if (prometheus === null) throw new Error(`${metric.name} is not in Prometheus`);
  const matchers = matchersOf(question);
  const window = seconds(Math.max(rateMsMin, stepMs));
  const selector = (name: string, more = '') => {
    const all = [more, matchers].filter((each) => each !== '').join(',');
    return `${name}${all === '' ? '' : `{${all}}`}`;
  };
  const computed = (text: string): Expression => ({ text, isSelector: false });
  switch (metric.name) {
    case 'gpu_energy_joules':
      // A counter in millijoules.
      return computed(`increase(${selector(prometheus)}[${window}]) / 1000`);
    case 'node_cpu_utilization': {
      const all = `sum by (node) (rate(${selector(prometheus)}[${window}]))`;
      const idle = `sum by (node) (rate(${selector(prometheus, 'mode=~"idle|iowait"')}[${window}]))`;
      return computed(`100 * (1 - ${idle} / ${all})`);
    }
    case 'node_memory_used_mb':
      return computed(
        `(${selector(prometheus)} - ${selector('muster_host_memory_available_bytes')}) / ${mebibyte}`,
      );
    case 'network_receive_bytes_per_second':
    case 'network_transmit_bytes_per_second':
      return computed(`sum by (node) (rate(${selector(prometheus)}[${window}]))`);
    default:
      if (metric.subject === 'cluster') return computed(`sum(${prometheus})`);
      return { text: selector(prometheus), isSelector: true };
  }
}

/** Ids and names of nodes have no characters with a meaning in a pattern, and none that ends a text. */
function matchersOf({ jobIds, nodes, attempt }: HistoryQuery): string {
  return [
    ...(jobIds === null ? [] : [`muster_job=~"${jobIds.join('|')}"`]),
    ...(nodes === null ? [] : [`node=~"${nodes.join('|')}"`]),
    ...(attempt === null ? [] : [`muster_attempt="${attempt}"`]),
  ].join(',');
}

function resolutionMs(stepMs: number): number {
  return Math.max(15_000, Math.ceil(stepMs / 20_000) * 1_000);
}

function seconds(ms: number): string {
  return `${Math.max(1, Math.round(ms / 1_000))}s`;
}

/** A series of an answer of Prometheus. */
export interface HistorySeries {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [seconds: number, value: string])[];
}

/**
 * As series of ours. What Prometheus has in several series because a label changed, such as the version of the driver, is one.
 * @param withJobs they say whose they are
 */
export function seriesOfHistory(
  found: readonly HistorySeries[],
  { stepMs, withJobs }: { readonly stepMs: number; readonly withJobs: boolean },
): readonly MetricSeries[] {
  const merged = new Map<string, { of: Omit<MetricSeries, 'points'>; points: MetricPoint[] }>();
  for (const { metric, values } of found) {
    const of = identityOf(metric, withJobs);
    const key = JSON.stringify(of);
    const points = values.map(([atSeconds, value]) => pointOf(atSeconds * 1_000, Number(value), stepMs));
    const known = merged.get(key);
    if (known === undefined) merged.set(key, { of, points });
    else known.points.push(...points);
  }
  return Array.from(merged.values(), ({ of, points }) => ({
    ...of,
    points: points.toSorted((a, b) => a.atMs - b.atMs),
  }));
}

function identityOf(metric: HistorySeries['metric'], withJobs: boolean): Omit<MetricSeries, 'points'> {
  const { muster_job: jobId, node = '', UUID: card = '', muster_device: device } = metric;
  return {
    ...(withJobs && jobId !== undefined ? { jobId } : {}),
    attempt: numberOf(metric['muster_attempt']),
    nodeRank: numberOf(metric['muster_rank']),
    node,
    // Of an instance of MIG the label of the card is not enough.
    gpuUuid: device ?? card,
  };
}

function numberOf(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;
}

/** It stands for as many readings as would be in memory for its time, and counts as many where values become one. */
function pointOf(atMs: number, value: number, stepMs: number): MetricPoint {
  if (!Number.isFinite(value)) return { atMs, value: null };
  const rows = Math.max(1, Math.round(stepMs / readingIntervalMs));
  if (rows === 1) return { atMs, value };
  return { atMs, value, bucket: { rows, firstStep: null, min: value, max: value, last: value } };
}
