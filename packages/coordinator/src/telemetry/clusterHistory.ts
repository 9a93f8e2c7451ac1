/** What the queue and the cluster as a whole were like in the last hours. Sampled at a steady pace, in memory. */
import { clusterMetricNames } from '@muster/common/metricNames';
import type { MetricPoint } from '@muster/common/telemetry';
import { historyIntervalMs, RowHistory } from './rowHistory.ts';

export interface ClusterHistoryParts {
  /** What each of `clusterMetricNames` is now; what is missing is 0. */
  readonly sample: () => ReadonlyMap<string, number>;
  readonly monotonicMs: () => number;
  readonly wallMs: () => number;
}

export const clusterKey = 'cluster';

export class ClusterHistory {
  private readonly parts: ClusterHistoryParts;
  /** One ring. */
  readonly rows = new RowHistory<typeof clusterKey>(clusterMetricNames.length, 0);
  /** Told of each sample. */
  onSampled: () => void = () => {};
  private sampledMs = Number.NEGATIVE_INFINITY;

  constructor(parts: ClusterHistoryParts) {
    this.parts = parts;
  }

  /** May be called at any time; twice a minute it does something. */
  run(): void {
    const nowMs = this.parts.monotonicMs();
    if (nowMs - this.sampledMs < historyIntervalMs) return;
    this.sampledMs = nowMs;
    const values = this.parts.sample();
    const row = clusterMetricNames.map((name) => values.get(name) ?? 0);
    this.rows.add(clusterKey, nowMs, row);
    this.onSampled();
  }

  /** Where its values are in `rows`. @param name of `clusterMetricNames` */
  column(name: string): number {
    return clusterMetricNames.indexOf(name);
  }

  /** @param name of `clusterMetricNames` @param fromMs wall clock, as `toMs` */
  points(name: string, fromMs: number, toMs: number): readonly MetricPoint[] {
    const wallOffsetMs = this.parts.wallMs() - this.parts.monotonicMs();
    return this.rows.points(
      clusterKey,
      this.column(name),
      fromMs - wallOffsetMs,
      toMs - wallOffsetMs,
      wallOffsetMs,
    );
  }
}
